// Ops that combine tensors element by element under NumPy's broadcasting, and ops that map one
// tensor.
#pragma once

#include "graph/op_def.h"
#include "ops/support/check.h"
#include "ops/support/dtypes.h"
#include "ops/support/strides.h"

namespace ferry::ops {

// Every input has one dtype that can be calculated with; the output has it too.
Result<Types> infer_arithmetic(const graph::InferArgs& args);
// The same inputs (bool is allowed); the output is bool.
Result<Types> infer_comparison(const graph::InferArgs& args);
// Bool inputs, bool output.
Result<Types> infer_logic(const graph::InferArgs& args);
// One f32 input, the output like it.
Result<Types> infer_f32_map(const graph::InferArgs& args);
// One input of numbers, the output like it.
Result<Types> infer_number_map(const graph::InferArgs& args);

// output = f(…f(f(input 0, input 1), input 2)…); f is called with two values of one C++ type and
// returns that type.
template <class F>
Status eval_arithmetic(const graph::EvalArgs& args, F f) {
  graph::Tensor& output = *args.outputs[0];
  return with_number(output.dtype(), [&]<class T>() -> Status {
    const auto out = output.mut<T>();
    const auto place = [](int64_t i) { return static_cast<size_t>(i); };
    const graph::Shape first = broadcast_strides(args.inputs[0]->shape(), output.shape());
    const auto a = args.inputs[0]->as<T>();
    if (args.inputs.size() == 1) {
      walk<1>(output.shape(), {first},
              [&](int64_t i, const auto& at) { out[place(i)] = a[place(at[0])]; });
    }
    for (size_t k = 1; k < args.inputs.size(); ++k) {
      const auto b = args.inputs[k]->as<T>();
      const graph::Shape strides = broadcast_strides(args.inputs[k]->shape(), output.shape());
      walk<2>(output.shape(), {first, strides}, [&](int64_t i, const auto& at) {
        const T left = k == 1 ? a[place(at[0])] : out[place(i)];
        out[place(i)] = static_cast<T>(f(left, b[place(at[1])]));
      });
    }
    return {};
  });
}

// output = f(input 0, input 1) as bool. Bool inputs are compared as 0 and 1.
template <class F>
Status eval_comparison(const graph::EvalArgs& args, F f) {
  const graph::Tensor& a = *args.inputs[0];
  const graph::Tensor& b = *args.inputs[1];
  const auto out = mut_bool_bytes(*args.outputs[0]);
  const graph::Shape& shape = args.outputs[0]->shape();
  const std::array<graph::Shape, 2> strides = {broadcast_strides(a.shape(), shape),
                                               broadcast_strides(b.shape(), shape)};
  const auto place = [](int64_t i) { return static_cast<size_t>(i); };
  if (a.dtype() == graph::DType::kBool) {
    const auto as = bool_bytes(a), bs = bool_bytes(b);
    walk<2>(shape, strides, [&](int64_t i, const auto& at) {
      out[place(i)] = f(as[place(at[0])] != 0, bs[place(at[1])] != 0);
    });
    return {};
  }
  return with_number(a.dtype(), [&]<class T>() -> Status {
    const auto as = a.as<T>();
    const auto bs = b.as<T>();
    walk<2>(shape, strides, [&](int64_t i, const auto& at) {
      out[place(i)] = f(as[place(at[0])], bs[place(at[1])]);
    });
    return {};
  });
}

// output = f(input), f32.
template <class F>
Status eval_f32_map(const graph::EvalArgs& args, F f) {
  const auto x = args.inputs[0]->as<float>();
  const auto y = args.outputs[0]->mut<float>();
  for (size_t i = 0; i < y.size(); ++i) y[i] = f(x[i]);
  return {};
}

// output = f(input) for any numbers; f is called with the C++ type and returns it.
template <class F>
Status eval_number_map(const graph::EvalArgs& args, F f) {
  return with_number(args.inputs[0]->dtype(), [&]<class T>() -> Status {
    const auto x = args.inputs[0]->as<T>();
    const auto y = args.outputs[0]->mut<T>();
    for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<T>(f(x[i]));
    return {};
  });
}

}  // namespace ferry::ops

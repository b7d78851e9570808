// Reductions over axes: what reduce_mean, reduce_sum and their like share.
#pragma once

#include <limits>
#include <type_traits>

#include "graph/op_def.h"
#include "ops/support/check.h"
#include "ops/support/dtypes.h"
#include "ops/support/strides.h"

namespace ferry::ops {

extern const graph::AttrDef kReduceAttrs[2];  // axes (none: all), keepdims

// Numbers in, the same dtype out. Reducing nothing (a dimension of 0) to something is an error.
Result<Types> infer_reduce(const graph::InferArgs& args);
// Axes as an attribute or, in later opsets, an input.
Result<graph::Converted> reduce_from_onnx(const graph::ForeignNode& node);

// The output's shape with every reduced axis as 1, whatever keepdims says. REQUIRES: infer_reduce
// has accepted the node.
Result<graph::Shape> kept_shape(const graph::Node& node, const graph::Shape& x);

// Combines in f64 for floats and in i64 for integers, beginning with `first`: acc = f(acc, x); then
// y = finish(acc, n) where n is how many elements met. f and finish are called with double or
// int64_t.
template <class First, class F, class Finish>
Status eval_reduce(const graph::EvalArgs& args, First first, F f, Finish finish) {
  const graph::Tensor& x = *args.inputs[0];
  graph::Tensor& y = *args.outputs[0];
  FERRY_TRY(kept, kept_shape(args.node, x.shape()));
  if (y.size() == 0) return {};
  const int64_t count = x.size() / y.size();
  return with_number(x.dtype(), [&]<class T>() -> Status {
    using Sum = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
    const auto place = [](int64_t i) { return static_cast<size_t>(i); };
    std::vector<Sum> sums(place(y.size()), first.template operator()<Sum>());
    const auto xs = x.as<T>();
    const auto ys = y.mut<T>();
    walk<1>(x.shape(), {broadcast_strides(kept, x.shape())}, [&](int64_t i, const auto& at) {
      Sum& sum = sums[place(at[0])];
      sum = f(sum, static_cast<Sum>(xs[place(i)]));
    });
    for (size_t i = 0; i < ys.size(); ++i) ys[i] = static_cast<T>(finish(sums[i], count));
    return {};
  });
}

}  // namespace ferry::ops

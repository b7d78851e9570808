// linear: y[..., o] = bias[o] + sum over i of x[..., i] * weight[o, i] (PyTorch's Linear).
#include "ops/support/check.h"
#include "ops/support/onnx_form.h"

namespace ferry::ops {

using namespace graph;

namespace {

constexpr size_t kX = 0, kWeight = 1, kBias = 2;

Result<Types> infer(const InferArgs& args) {
  FERRY_CHECK_OK(need_f32(args));
  FERRY_CHECK_OK(need_rank(args, kWeight, 2, "weight"));
  Shape x = args.inputs[kX]->shape;
  const Shape& w = args.inputs[kWeight]->shape;
  if (x.empty() || x.back() != w[1]) {
    return error(Code::kInvalid, "weight {} does not fit an input of {}", shape_text(w),
                 shape_text(x));
  }
  FERRY_CHECK_OK(need_shape(args, kBias, {w[0]}, "bias"));
  x.back() = w[0];
  return one_output(DType::kF32, std::move(x));
}

Status eval(const EvalArgs& args) {
  const int64_t out_c = args.inputs[kWeight]->shape()[0], in_c = args.inputs[kWeight]->shape()[1];
  const float* x = args.inputs[kX]->as<float>().data();
  const float* weight = args.inputs[kWeight]->as<float>().data();
  const Tensor* bias = input_or_null(args, kBias);
  const auto y = args.outputs[0]->mut<float>();
  const int64_t rows = out_c == 0 ? 0 : static_cast<int64_t>(y.size()) / out_c;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t o = 0; o < out_c; ++o) {
      float sum = bias ? bias->as<float>()[static_cast<size_t>(o)] : 0.0f;
      for (int64_t i = 0; i < in_c; ++i) sum += x[row * in_c + i] * weight[o * in_c + i];
      y[static_cast<size_t>(row * out_c + o)] = sum;
    }
  }
  return {};
}

int64_t macs(const InferArgs& args) {
  const int64_t outputs = output_elements(args);
  return outputs == 0 ? 0 : saturating_product(outputs, args.inputs[kWeight]->shape[1]);
}

// Gemm takes matrices only.
Status to_onnx(OnnxForm& form) {
  const Ref x = form.input(kX), weight = form.input(kWeight);
  if (form.shape(kX).size() == 2) return write_as(form, "Gemm", {{"transB", int64_t{1}}});
  const Ref transposed = form.add("Transpose", {weight}, {{"perm", Ints{1, 0}}});
  const Ref y = form.add("MatMul", {x, transposed});
  if (form.has_input(kBias)) form.add("Add", {y, form.input(kBias)});
  return {};
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,7,16]
      const w: f32[24,16] = uniform(1, -1, 1)
      const b: f32[24] = uniform(2, -1, 1)
      y = linear(x, w, b)
      output y
    })"},
    {R"(graph {
      input x: f32[3,5]
      const w: f32[2,5] = uniform(1, -1, 1)
      y = linear(x, w)
      output y
    })"},
};

}  // namespace

extern const OpDef op_linear;
const OpDef op_linear = {
    .name = "linear",
    .summary = "multiplies the last axis by weight[out, in], adds an optional bias",
    .min_inputs = 2,
    .max_inputs = 3,
    .infer = infer,
    .eval = eval,
    .macs = macs,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

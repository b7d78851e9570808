// dequantize_linear: (x - zero_point) * scale (ONNX DequantizeLinear).
#include "ops/support/onnx_form.h"
#include "ops/support/quant.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {{"axis", int64_t{1}, "of scales that are one for each channel"}};

Result<Types> infer(const InferArgs& args) {
  const TensorType& x = *args.inputs[kQuantX];
  if (!is_quantised(x.dtype)) {
    return error(Code::kUnsupported, "input is {}, needs u8, i8, u16, i16 or i32", type_text(x));
  }
  FERRY_CHECK_OK(check_scales(args));
  const TensorType* zero = input_or_null(args, kQuantZero);
  if (zero != nullptr && zero->dtype != x.dtype) {
    return error(Code::kInvalid, "input is {}, zero point {}", type_text(x), type_text(*zero));
  }
  return one_output(DType::kF32, x.shape);
}

Status eval(const EvalArgs& args) {
  FERRY_TRY(index, ScaleIndex::of(args));
  FERRY_TRY(x, args.inputs[kQuantX]->to_ints());
  const auto scale = args.inputs[kQuantScale]->as<float>();
  const Tensor* zero = input_or_null(args, kQuantZero);
  std::vector<int64_t> zeros(scale.size(), 0);
  if (zero != nullptr) {
    FERRY_TRY(given, zero->to_ints());
    zeros = std::move(given);
  }
  const auto y = args.outputs[0]->mut<float>();
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t k = index(i);
    y[i] = static_cast<float>(x[i] - zeros[k]) * scale[k];
  }
  return {};
}

const OnnxRow kOnnx[] = {{"DequantizeLinear", quant_from_onnx}};

Status to_onnx(OnnxForm& form) {
  return quant_to_onnx(form, "DequantizeLinear", form.type(kQuantX).dtype);
}

const OpCase kCases[] = {
    {R"(graph {
      const x: i8[2,3] = {-128, -1, 0, 1, 5, 127}
      const scale: f32[3] = {0.5, 0.25, 2}
      const zero: i8[3] = {0, 1, -2}
      y = dequantize_linear(x, scale, zero)
      output y
    })"},
    {R"(graph {
      input x: u8[2,3,4]
      const scale: f32[] = {0.125}
      y = dequantize_linear(x, scale)
      output y
    })"},
};

}  // namespace

extern const OpDef op_dequantize_linear;
const OpDef op_dequantize_linear = {
    .name = "dequantize_linear",
    .summary = "integers to real numbers by scale and zero point",
    .min_inputs = 2,
    .max_inputs = 3,
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

// quantize_linear: saturate(round(x / scale) + zero_point), halves to the even integer (ONNX
// QuantizeLinear).
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/support/dtypes.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/quant.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {
    {"axis", int64_t{1}, "of scales that are one for each channel"},
    {"dtype", std::string("u8"), "of the output, when there is no zero point to tell"},
};

Result<Types> infer(const InferArgs& args) {
  const TensorType& x = *args.inputs[kQuantX];
  if (x.dtype != DType::kF32)
    return error(Code::kUnsupported, "input is {}, needs f32", type_text(x));
  FERRY_CHECK_OK(check_scales(args));
  FERRY_TRY(dtype, dtype_from_name(attr<std::string>(args.node, "dtype")));
  const TensorType* zero = input_or_null(args, kQuantZero);
  if (zero != nullptr) dtype = zero->dtype;
  if (!is_quantised(dtype)) {
    return error(Code::kUnsupported, "cannot quantise to {}", dtype_name(dtype));
  }
  return one_output(dtype, x.shape);
}

Status eval(const EvalArgs& args) {
  FERRY_TRY(index, ScaleIndex::of(args));
  const auto x = args.inputs[kQuantX]->as<float>();
  const auto scale = args.inputs[kQuantScale]->as<float>();
  const Tensor* zero = input_or_null(args, kQuantZero);
  std::vector<int64_t> zeros(scale.size(), 0);
  if (zero != nullptr) {
    FERRY_TRY(given, zero->to_ints());
    zeros = std::move(given);
  }
  return with_number(args.outputs[0]->dtype(), [&]<class T>() -> Status {
    const auto y = args.outputs[0]->mut<T>();
    for (size_t i = 0; i < y.size(); ++i) {
      const size_t k = index(i);
      const double real =
          static_cast<double>(std::nearbyint(x[i] / scale[k])) + static_cast<double>(zeros[k]);
      // NaN (0 / 0) has no integer: the zero point stands for it.
      const double value = std::isnan(real) ? static_cast<double>(zeros[k]) : real;
      y[i] = static_cast<T>(std::clamp(value, static_cast<double>(std::numeric_limits<T>::min()),
                                       static_cast<double>(std::numeric_limits<T>::max())));
    }
    return {};
  });
}

Result<Converted> from_onnx(const ForeignNode& node) {
  FERRY_TRY(converted, quant_from_onnx(node));
  if (const int64_t code = node.int_or("output_dtype", 0); code != 0) {
    FERRY_TRY(dtype, onnx_dtype(code));
    converted.attrs["dtype"] = std::string(dtype_name(dtype));
  }
  return converted;
}

const OnnxRow kOnnx[] = {{"QuantizeLinear", from_onnx}};

Status to_onnx(OnnxForm& form) {
  return quant_to_onnx(form, "QuantizeLinear", form.output_type().dtype);
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,4]
      const scale: f32[] = {0.0078125}
      const zero: i8[] = {3}
      y = quantize_linear(x, scale, zero)
      output y
    })"},
    {R"(graph {
      input x: f32[2,3,4]
      const scale: f32[3] = {0.0078125, 0.015625, 0.5}
      const zero: u8[3] = {128, 0, 7}
      y = quantize_linear(x, scale, zero)
      output y
    })"},
};

}  // namespace

extern const OpDef op_quantize_linear;
const OpDef op_quantize_linear = {
    .name = "quantize_linear",
    .summary = "real numbers to integers by scale and zero point",
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

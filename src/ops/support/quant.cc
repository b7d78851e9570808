#include "ops/support/quant.h"

#include "ops/support/onnx.h"

namespace ferry::ops {

using namespace graph;

bool is_quantised(DType dtype) {
  return dtype == DType::kU8 || dtype == DType::kI8 || dtype == DType::kU16 ||
         dtype == DType::kI16 || dtype == DType::kI32;
}

Status check_scales(const InferArgs& args) {
  const TensorType& scale = *args.inputs[kQuantScale];
  if (scale.dtype != DType::kF32) {
    return error(Code::kUnsupported, "scale is {}, needs f32", type_text(scale));
  }
  const bool per_tensor = scale.shape.size() <= 1 && elements(scale.shape) == 1;
  if (!per_tensor) {
    const Shape& x = args.inputs[kQuantX]->shape;
    FERRY_TRY(axis, axis_of(attr<int64_t>(args.node, "axis"), x.size()));
    if (scale.shape != Shape{x[axis]}) {
      return error(Code::kInvalid, "scale is {}, needs one number or one for each of axis {} of {}",
                   shape_text(scale.shape), axis, shape_text(x));
    }
  }
  const TensorType* zero = input_or_null(args, kQuantZero);
  if (zero != nullptr && elements(zero->shape) != elements(scale.shape)) {
    return error(Code::kInvalid, "zero point is {}, scale {}", shape_text(zero->shape),
                 shape_text(scale.shape));
  }
  return {};
}

Result<ScaleIndex> ScaleIndex::of(const EvalArgs& args) {
  ScaleIndex index;
  index.per_tensor_ = args.inputs[kQuantScale]->size() == 1;
  if (index.per_tensor_) return index;
  const Shape& x = args.inputs[kQuantX]->shape();
  FERRY_TRY(axis, axis_of(attr<int64_t>(args.node, "axis"), x.size()));
  const AxisView view = around_axis(x, axis);
  index.inner_ = static_cast<size_t>(view.inner);
  index.size_ = static_cast<size_t>(view.size);
  return index;
}

Result<Converted> quant_from_onnx(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 2, 3));
  if (node.int_or("block_size", 0) != 0) {
    return error(Code::kUnsupported,
                 "block_size {} is not supported, only a scale for each tensor or channel",
                 node.int_or("block_size", 0));
  }
  return with_inputs(node, 3, {{"axis", node.int_or("axis", 1)}});
}

Status quant_to_onnx(OnnxForm& form, std::string_view op_type, DType integer) {
  if (form.target().half) {
    return error(Code::kUnsupported, "a quantized model cannot be written with f16 besides");
  }
  if (integer == DType::kU16 || integer == DType::kI16) {
    FERRY_CHECK_OK(form.need_opset(21, "quantizing to 16 bits"));
  }
  Attrs attrs;
  if (elements(form.shape(kQuantScale)) != 1) {
    FERRY_CHECK_OK(form.need_opset(13, "a scale for each channel"));
    attrs["axis"] = attr<int64_t>(form.node(), "axis");
  }
  std::vector<Ref> inputs = {form.input(kQuantX), form.input(kQuantScale)};
  if (form.has_input(kQuantZero)) {
    inputs.push_back(form.input(kQuantZero));
  } else if (integer != DType::kI32) {  // it says the type
    FERRY_TRY(zero, Tensor::make({integer, form.shape(kQuantScale)}));
    inputs.push_back(form.exact(std::move(zero)));
  }
  form.add(op_type, std::move(inputs), std::move(attrs));
  return {};
}

}  // namespace ferry::ops

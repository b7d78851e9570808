// What quantize_linear and dequantize_linear share: real = (integer - zero_point) * scale, with
// scale and zero point for the whole tensor or for every index of one axis.
#pragma once

#include "graph/op_def.h"
#include "ops/support/check.h"
#include "ops/support/onnx_form.h"
#include "ops/support/strides.h"

namespace ferry::ops {

inline constexpr size_t kQuantX = 0, kQuantScale = 1, kQuantZero = 2;

// The element types that hold quantised numbers.
bool is_quantised(graph::DType dtype);  // u8, i8, u16, i16, i32

// Scale is f32, one number or one for each index of `axis`; the zero point, when there is one, has
// the scale's shape.
Status check_scales(const graph::InferArgs& args);

// Element i of x uses number scale_index(i) of scale and zero point.
class ScaleIndex {
 public:
  // REQUIRES: check_scales has accepted the node.
  static Result<ScaleIndex> of(const graph::EvalArgs& args);
  size_t operator()(size_t i) const { return per_tensor_ ? 0 : i / inner_ % size_; }

 private:
  bool per_tensor_ = true;
  size_t inner_ = 1, size_ = 1;
};

// Inputs and axis of either ONNX op; refuses blocks.
Result<graph::Converted> quant_from_onnx(const graph::ForeignNode& node);
// Either op as ONNX; `integer` is the element type on its integer side.
Status quant_to_onnx(graph::OnnxForm& form, std::string_view op_type, graph::DType integer);

}  // namespace ferry::ops

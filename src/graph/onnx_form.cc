#include "graph/onnx_form.h"

namespace ferry::graph {

int64_t onnx_number(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 1;
    case DType::kU8:
      return 2;
    case DType::kI8:
      return 3;
    case DType::kU16:
      return 4;
    case DType::kI16:
      return 5;
    case DType::kI32:
      return 6;
    case DType::kI64:
      return 7;
    case DType::kBool:
      return 9;
    case DType::kF16:
      return 10;
    case DType::kF64:
      return 11;
    case DType::kBf16:
      return 16;
  }
  return 0;
}

Status OnnxForm::need_opset(int64_t opset, std::string_view what) const {
  if (target_.opset >= opset) return {};
  return error(Code::kUnsupported, "{} needs opset {} or newer, not {}", what, opset,
               target_.opset);
}

std::vector<OnnxForm::Ref> OnnxForm::inputs() const {
  std::vector<Ref> refs;
  for (size_t i = 0; i < node_.inputs.size(); ++i) refs.push_back(input(i));
  return refs;
}

OnnxForm::Ref OnnxForm::add(std::string_view op_type, std::vector<Ref> inputs, Attrs attrs,
                            int outputs) {
  nodes_.push_back({op_type, std::move(inputs), std::move(attrs), next_, outputs});
  next_ += outputs;
  return nodes_.back().first;
}

OnnxForm::Ref OnnxForm::constant(Tensor tensor) {
  constants_.push_back({next_, std::move(tensor), in_f32_});
  return next_++;
}

OnnxForm::Ref OnnxForm::exact(Tensor tensor) {
  constants_.push_back({next_, std::move(tensor), true});
  return next_++;
}

OnnxForm::Ref OnnxForm::ints(const Ints& values) {
  return exact(Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values));
}

int64_t OnnxForm::onnx_type(DType dtype) const {
  const bool half = target_.half && !in_f32_ && dtype == DType::kF32;
  return onnx_number(half ? DType::kF16 : dtype);
}

}  // namespace ferry::graph

#include "ops/support/onnx.h"

namespace ferry::ops {

using namespace graph;

Status need_inputs(const ForeignNode& node, size_t least, size_t most) {
  for (size_t i = 0; i < least; ++i) {
    if (!has_input(node, i)) return error(Code::kInvalid, "{} lacks input {}", node.op_type, i);
  }
  if (node.inputs.size() > most) {
    return error(Code::kInvalid, "{} has {} inputs, takes at most {}", node.op_type,
                 node.inputs.size(), most);
  }
  return {};
}

Status need_outputs(const ForeignNode& node, int most) {
  if (node.outputs <= most) return {};
  return error(Code::kUnsupported, "{} with {} outputs, only {} supported", node.op_type,
               node.outputs, most);
}

Converted with_inputs(const ForeignNode& node, size_t count, Attrs attrs) {
  Converted out{.attrs = std::move(attrs), .inputs = {}};
  for (size_t i = 0; i < count && i < node.inputs.size(); ++i) {
    out.inputs.push_back(node.inputs[i] == nullptr ? -1 : static_cast<int>(i));
  }
  while (!out.inputs.empty() && out.inputs.back() < 0) out.inputs.pop_back();
  return out;
}

namespace {

Result<const Tensor*> need_constant(const ForeignNode& node, size_t i) {
  if (!has_input(node, i)) return error(Code::kInvalid, "{} lacks input {}", node.op_type, i);
  if (i >= node.constants.size() || node.constants[i] == nullptr) {
    return error(Code::kUnsupported,
                 "{}: input {} must be constant; it is computed while the model runs", node.op_type,
                 i);
  }
  return node.constants[i];
}

}  // namespace

Result<Floats> need_floats(const ForeignNode& node, size_t i) {
  FERRY_TRY(constant, need_constant(node, i));
  FERRY_TRY(values, constant->cast(DType::kF64));
  const auto data = values.as<double>();
  return Floats(data.begin(), data.end());
}

Result<Ints> need_ints(const ForeignNode& node, size_t i) {
  FERRY_TRY(constant, need_constant(node, i));
  return constant->to_ints();
}

Result<Ints> ints_of(const ForeignNode& node, std::string_view attr, size_t input) {
  if (node.has(attr)) return node.ints_or(attr, {});
  if (!has_input(node, input)) return Ints{};
  return need_ints(node, input);
}

Result<DType> onnx_dtype(int64_t code) {
  switch (code) {
    case 1:
      return DType::kF32;
    case 2:
      return DType::kU8;
    case 3:
      return DType::kI8;
    case 4:
      return DType::kU16;
    case 5:
      return DType::kI16;
    case 6:
      return DType::kI32;
    case 7:
      return DType::kI64;
    case 9:
      return DType::kBool;
    case 10:
      return DType::kF32;  // FLOAT16
    case 11:
      return DType::kF64;
    case 16:
      return DType::kF32;  // BFLOAT16
    default:
      return error(Code::kUnsupported, "ONNX element type {} is not supported", code);
  }
}

}  // namespace ferry::ops

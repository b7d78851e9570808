#include "ops/table.h"

#include <string>

#include "ops/support/onnx.h"

namespace ferry::ops {

const OpDef* find_op(std::string_view name) {
  for (const OpDef* row : op_table()) {
    if (row->name == name) return row;
  }
  return nullptr;
}

const OpDef& op(std::string_view name) {
  const OpDef* row = find_op(name);
  FERRY_ASSERT(row != nullptr, std::string(name).c_str());
  return *row;
}

OnnxMatch find_onnx(std::string_view op_type) {
  for (const OpDef* row : op_table()) {
    for (const graph::OnnxRow& onnx : row->onnx) {
      if (onnx.op_type == op_type) return {row, &onnx};
    }
  }
  return {};
}

Result<graph::Converted> convert_onnx(const OnnxMatch& match, const graph::ForeignNode& node) {
  auto converted = match.row->convert == nullptr
                       ? Result<graph::Converted>(with_inputs(node, node.inputs.size()))
                       : match.row->convert(node);
  if (converted.ok() && converted->op.empty()) converted->op = match.op->name;
  return converted;
}

}  // namespace ferry::ops

#include "ops/table.h"

#include <string>

#include "graph/onnx_form.h"
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

Status write_onnx(graph::OnnxForm& form) {
  const OpDef& op = *form.node().op;
  if (op.to_onnx != nullptr) return op.to_onnx(form);
  if (op.onnx.empty() || !op.attrs.empty()) {
    return error(Code::kUnsupported, "has no ONNX form");
  }
  form.add(op.onnx[0].op_type, form.inputs(), {}, static_cast<int>(form.node().outputs.size()));
  return {};
}

}  // namespace ferry::ops

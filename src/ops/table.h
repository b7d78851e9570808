// The ops ferry knows. The folder is the table: `src/ops/<name>.cc` defines `const OpDef
// op_<name>`.
#pragma once

#include <span>
#include <string_view>

#include "graph/op_def.h"

namespace ferry::ops {

using graph::OpDef;

std::span<const OpDef* const> op_table();     // sorted by name
const OpDef* find_op(std::string_view name);  // null when unknown
// For names written in our own code. REQUIRES: the op exists.
const OpDef& op(std::string_view name);

// What an ONNX node type becomes: the op whose row lists it, and that row. A type is listed once.
// The row's converter may say that another op fits the node's attributes (Converted::op).
struct OnnxMatch {
  const OpDef* op = nullptr;
  const graph::OnnxRow* row = nullptr;
};
OnnxMatch find_onnx(std::string_view op_type);  // {null, null} when unknown
// Runs the row's converter, or makes the plain conversion of a row without one.
Result<graph::Converted> convert_onnx(const OnnxMatch& match, const graph::ForeignNode& node);
// The opposite: fills `form` as the op's row says. Fails for an op that has no ONNX form.
Status write_onnx(graph::OnnxForm& form);

}  // namespace ferry::ops

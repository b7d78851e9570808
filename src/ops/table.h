// The ops ferry knows. The folder is the table: `src/ops/<name>.cc` defines `const OpDef op_<name>`.
#pragma once

#include <span>
#include <string_view>

#include "graph/op_def.h"

namespace ferry::ops {

using graph::OpDef;

std::span<const OpDef* const> op_table();  // sorted by name
const OpDef* find_op(std::string_view name);  // null when unknown
// For names written in our own code. REQUIRES: the op exists.
const OpDef& op(std::string_view name);

}  // namespace ferry::ops

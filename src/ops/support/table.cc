#include "ops/table.h"

#include <string>

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

}  // namespace ferry::ops

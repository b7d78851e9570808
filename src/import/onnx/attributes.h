// A node's attributes, split into what ops take (numbers, strings, lists) and what the importer
// itself deals with (tensors and graphs).
#pragma once

#include <map>
#include <string_view>

#include "base/result.h"
#include "graph/graph.h"
#include "import/onnx/proto.h"

namespace ferry::import::onnx {

struct Attributes {
  graph::Attrs plain;
  std::map<std::string_view, ByteSpan> tensors;  // TensorProto
  std::map<std::string_view, ByteSpan> graphs;   // GraphProto
};

// Fails on two attributes of a name, on references to a function's attributes, and on sparse
// tensors. Lists of strings, tensors and graphs, and types, are left out: no op of a detector has
// them.
Result<Attributes> read_attributes(const Node& node);

}  // namespace ferry::import::onnx

// A graph as ONNX nodes with names: what the ops' `to_onnx` say, put together. Still plain data;
// model_proto.h writes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"
#include "graph/onnx_form.h"

namespace ferry::exporter::onnx {

struct NodeForm {
  std::string name, op_type;
  std::vector<std::string> inputs, outputs;  // "": absent
  graph::Attrs attrs;
  std::string origin;  // "conv2d 'model.0.conv'", for messages
};

struct NamedTensor {
  std::string name;
  graph::Tensor tensor;
};

struct NamedType {
  std::string name;
  graph::TensorType type;
};

struct Forms {
  std::vector<NodeForm> nodes;  // every value is made before it is read
  std::vector<NamedTensor> constants;
  std::vector<NamedType> inputs, outputs;
  std::vector<NamedType> inner;  // types of the graph's other values, as they are in the file
};

// Inputs and outputs keep the graph's names and, also in a file of f16, its types; other values are
// named after it where the names are free. REQUIRES: verify(graph).ok(). Fails with op and node for
// what ONNX, or this opset of it, cannot say, and for weights that f16 cannot hold.
Result<Forms> onnx_forms(const graph::Graph& graph, const graph::OnnxTarget& target);

}  // namespace ferry::exporter::onnx

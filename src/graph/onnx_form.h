// How a node is written in ONNX: what an op's `to_onnx` (op_def.h) reads and fills. Free of
// protobuf; src/export/onnx gives the nodes names and writes them.
//
//   Status to_onnx(OnnxForm& form) {             // silu
//     const auto gate = form.add("Sigmoid", {form.input(0)});
//     form.add("Mul", {form.input(0), gate});    // the last node makes the op's outputs
//     return {};
//   }
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace ferry::graph {

// What the whole file is written for.
struct OnnxTarget {
  int64_t opset = 12;
  // f32 of the graph is f16 in the file. A form that must stay exact says compute_in_f32().
  bool half = false;
  // Batch, height and width are open: nothing may depend on them but through Shape. The exporter
  // checks that, by writing the graph for two sizes.
  bool dynamic = false;
};

class OnnxForm {
 public:
  // A value: 0, 1, … are the node's inputs, then come constants and what nodes make. kNone: absent.
  using Ref = int32_t;

  struct Constant {
    Ref ref;
    Tensor tensor;
    bool exact;  // f32 stays f32 in a file of f16
  };
  struct Made {
    std::string_view op_type;
    std::vector<Ref> inputs;
    Attrs attrs;
    Ref first;        // of its outputs, which are numbered upwards
    int outputs = 1;  // (of the last node: as many as the op has)
  };

  OnnxForm(const Graph& graph, const Node& node, const OnnxTarget& target)
      : graph_(graph), node_(node), target_(target), next_(static_cast<Ref>(node.inputs.size())) {}

  const Node& node() const { return node_; }
  const OnnxTarget& target() const { return target_; }
  // Fails where the opset is older than the node needs: "needs opset 13, …".
  Status need_opset(int64_t opset, std::string_view what) const;

  bool has_input(size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != kNone; }
  Ref input(size_t i) const { return has_input(i) ? static_cast<Ref>(i) : kNone; }
  std::vector<Ref> inputs() const;
  // REQUIRES: has_input(i)
  const TensorType& type(size_t i) const { return graph_.value(node_.inputs[i]).type; }
  const Shape& shape(size_t i) const { return type(i).shape; }
  const TensorType& output_type(size_t i = 0) const { return graph_.value(node_.outputs[i]).type; }

  // --- writing ---

  // One node. Returns its (first) output.
  Ref add(std::string_view op_type, std::vector<Ref> inputs, Attrs attrs = {}, int outputs = 1);
  // f32 follows the file's precision.
  Ref constant(Tensor tensor);
  Ref number(double value) { return constant(Tensor::scalar(static_cast<float>(value))); }
  // Stays as it is: shapes, and f32 where ONNX asks for f32 (the scales of Resize).
  Ref exact(Tensor tensor);
  Ref ints(const Ints& values);  // i64[n]
  // TensorProto.DataType of a value of the graph, in the file's precision.
  int64_t onnx_type(DType dtype) const;
  // From here on this node computes in f32 though the file is f16: its inputs are cast, its f32
  // constants are exact and its outputs are f32. REQUIRES: nothing added yet.
  void compute_in_f32() { in_f32_ = true; }

  // --- for the exporter ---

  bool in_f32() const { return in_f32_; }
  const std::vector<Constant>& constants() const { return constants_; }
  const std::vector<Made>& nodes() const { return nodes_; }

 private:
  const Graph& graph_;
  const Node& node_;
  const OnnxTarget& target_;
  Ref next_;
  bool in_f32_ = false;
  std::vector<Constant> constants_;
  std::vector<Made> nodes_;
};

// The number of a type in TensorProto.DataType.
int64_t onnx_number(DType dtype);

}  // namespace ferry::graph

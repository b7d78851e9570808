// What an op is: one row, defined in one file of src/ops, from which come the verifier, shape
// inference, both importers, constant folding, the reference device, the cost model, the
// differential tests and the op's documentation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace ferry::graph {

class OnnxForm;  // onnx_form.h

struct AttrDef {
  std::string_view name;
  // The value when the node gives none; also fixes the type. A required attribute has a value of
  // the right type here.
  Attr fallback;
  std::string_view doc = {};
  bool required = false;
};

// What shape rules and cost rules see of a node. `inputs[i]` is null for an absent optional input;
// `constants[i]` is the input's data where it is known while the graph is built, else null.
struct InferArgs {
  const Node& node;
  std::span<const TensorType* const> inputs;
  std::span<const Tensor* const> constants;
};

// What the reference evaluation sees: contiguous row-major tensors (NCHW), outputs allocated by the
// inferred types and zeroed.
struct EvalArgs {
  const Node& node;
  std::span<const Tensor* const> inputs;  // null where absent
  std::span<Tensor* const> outputs;
};

// A node of a foreign graph (ONNX), free of protobuf. `constants[i]` is null where input i is
// absent or not constant.
struct ForeignNode {
  std::string_view op_type;
  int64_t opset;
  const Attrs& attrs;
  std::span<const TensorType* const> inputs;  // null where absent
  std::span<const Tensor* const> constants;
  int outputs;

  bool has(std::string_view name) const { return attrs.contains(name); }
  int64_t int_or(std::string_view name, int64_t fallback) const;
  double float_or(std::string_view name, double fallback) const;
  std::string string_or(std::string_view name, std::string_view fallback) const;
  Ints ints_or(std::string_view name, Ints fallback) const;
  // The integers of constant input `i`; nullopt when the input is absent. Fails when it is there
  // but not constant.
  Result<std::optional<Ints>> const_ints(size_t i) const;
};

// The native form of a foreign node: its attributes, and which foreign inputs it keeps, in order
// (-1: absent).
struct Converted {
  Attrs attrs;
  std::vector<int> inputs;
  std::string_view op =
      {};  // the op; a converter sets it only when it is not its own (Clip 0…6 is relu6)
};

struct OnnxRow {
  std::string_view op_type;
  // Null: same inputs, no attributes.
  Result<Converted> (*convert)(const ForeignNode&) = nullptr;
};

// A test case: a small graph in the text form (constants by generators such as `uniform(seed, low,
// high)`), run on every device and compared with the reference.
struct OpCase {
  std::string_view graph;
  double tolerance = 1e-5;  // absolute + relative, against the reference
};

struct OpDef {
  std::string_view name = {};
  std::string_view summary = {};
  int min_inputs = 1;
  int max_inputs = 1;  // -1: any number
  int outputs = 1;     // -1: any number
  std::span<const AttrDef> attrs = {};
  // Types of the outputs. May assume arity and attribute types; checks everything else.
  Result<std::vector<TensorType>> (*infer)(const InferArgs&) = nullptr;
  // Plain loops that say what the op means. f32 data, and integers where shape arithmetic needs
  // them.
  Status (*eval)(const EvalArgs&) = nullptr;
  // Multiply-adds of one run; null: none worth counting.
  int64_t (*macs)(const InferArgs&) = nullptr;
  std::span<const OnnxRow> onnx = {};
  // How a node is written in ONNX. Null: as the first of the types above, with the same inputs and
  // no attributes; an op that has attributes, or no such type, cannot be exported without it.
  Status (*to_onnx)(OnnxForm&) = nullptr;
  std::span<const OpCase> cases = {};
};

// Multiply-adds of one run of a node; 0 for ops not worth counting.
int64_t macs(const Graph& graph, const Node& node);
// Of all nodes; int64's largest where hostile shapes overflow it.
int64_t macs(const Graph& graph);

}  // namespace ferry::graph

// The graph: values, and the nodes that compute them. Plain data; passes rewrite it through the
// free functions below.
//
// A value has one producer at most: the node whose output it is, the graph's input, or a constant.
// Nodes stand in an order in which every value is produced before it is used. Pictures are
// logically NCHW; layouts are a device's affair.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "graph/tensor.h"

namespace ferry::graph {

struct OpDef;  // op_def.h

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;
using Attr = std::variant<int64_t, double, std::string, Ints, Floats>;
using Attrs = std::map<std::string, Attr, std::less<>>;  // sorted, so that the text form is stable

using ValueId = int32_t;
inline constexpr ValueId kNone = -1;  // stands for an optional input that is absent

// How the elements of an f32 value are kept in memory while a graph runs. The value stays f32, and
// ops mean what they always mean; its elements are those numbers that the storage can hold:
//   kF32   all of them
//   kBf16  rounded to nearest even
//   kU8    (q - zero_point) * scale, q from 0 to 255: what a quantized kernel reads and writes
//   kI8    q * scale, q from -127 to 127, one scale a slice of dimension 0: the weights of such a
//          kernel (constants only; the constant's data is rounded already)
struct Storage {
  DType dtype = DType::kF32;
  std::vector<float> scales = {};  // kU8: one; kI8: one a slice; else none
  int32_t zero_point = 0;          // kU8: 0 to 255; else 0

  bool operator==(const Storage&) const = default;
};

struct Value {
  std::string name;  // unique in the graph, never empty
  TensorType type;
  std::optional<Tensor> constant = std::nullopt;
  Storage storage = {};
};

struct Node {
  const OpDef* op = nullptr;
  std::string name;             // where it came from ("model.9.cv1.conv"); need not be unique
  std::vector<ValueId> inputs;  // kNone where an optional input is absent
  std::vector<ValueId> outputs;
  Attrs attrs = {};  // every attribute of the op, defaults filled in by add_node
};

struct Graph {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;

  const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
  Value& value(ValueId id) { return values[static_cast<size_t>(id)]; }
};

// --- building ---

// A name that no value has yet: `wish`, or `wish.1`, `wish.2`, …
std::string unique_name(const Graph& graph, std::string_view wish);
ValueId add_value(Graph& graph, std::string_view name, TensorType type);
ValueId add_input(Graph& graph, std::string_view name, TensorType type);
ValueId add_constant(Graph& graph, std::string_view name, Tensor tensor);

// Appends a node: checks arity and attributes against the op, fills in defaults, infers the types
// and adds one output value each, named `name` (then `name.1`, …). Errors are prefixed with op and
// node: "conv2d 'model.4.cv1': …".
Result<std::vector<ValueId>> add_node(Graph& graph, const OpDef& op, std::string_view name,
                                      std::vector<ValueId> inputs, Attrs attrs = {},
                                      int outputs = 1);
// The same for an op with one output.
Result<ValueId> add_op(Graph& graph, const OpDef& op, std::string_view name,
                       std::vector<ValueId> inputs, Attrs attrs = {});

// --- reading ---

// REQUIRES: the attribute exists with that type (verify() has seen the node).
template <class T>
const T& attr(const Node& node, std::string_view name) {
  return std::get<T>(node.attrs.find(name)->second);
}

std::vector<int> producers(const Graph& graph);  // per value: index of its node, or -1
std::vector<std::vector<int>> users(
    const Graph& graph);  // per value: indices of its nodes, one entry a use
bool is_output(const Graph& graph, ValueId id);
ValueId find_value(const Graph& graph, std::string_view name);  // kNone when there is none

// --- rewriting ---

// Every use of `from`, as an input or as the graph's output, becomes a use of `to`.
void replace_uses(Graph& graph, ValueId from, ValueId to);
// Removes nodes whose outputs nobody uses, then values that nothing mentions; ids change. Inputs
// stay.
void prune(Graph& graph);
// Puts the nodes into an order in which producers come first (stable). Fails with the names on a
// cycle.
Status sort_topologically(Graph& graph);
// Infers every type anew from the inputs' types (after set_input_type, say).
Status infer_types(Graph& graph);
Status set_input_type(Graph& graph, size_t index, TensorType type);

// --- storage ---

// The number nearest to `value` that `storage` holds; `slice` is its index in dimension 0. NaN
// becomes the zero of an integer storage. REQUIRES: check_storage() passes.
float round_to(const Storage& storage, size_t slice, float value);
// Every element of a row-major f32 tensor. REQUIRES: check_storage() passes.
void round_to(const Storage& storage, Tensor& tensor);
// Why a value of this type cannot be stored so, as an error.
Status check_storage(const Storage& storage, const TensorType& type, bool constant);
std::string storage_text(const Storage& storage);  // "u8(0.0235, 12)", "bf16"; "f32"

// --- checking ---

// What must hold between passes: names unique, ids in range, one producer a value, producers first,
// arity and attributes as the op declares, types as the op infers them, outputs produced.
Status verify(const Graph& graph);

}  // namespace ferry::graph

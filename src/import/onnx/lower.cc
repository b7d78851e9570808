#include "import/onnx/lower.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "graph/op_def.h"
#include "import/onnx/attributes.h"
#include "import/onnx/inputs.h"
#include "import/onnx/order.h"
#include "ops/evaluate.h"
#include "ops/table.h"

namespace ferry::import::onnx {
namespace {

using graph::DType;
using graph::Ints;
using graph::kNone;
using graph::OnnxRow;
using graph::OpDef;
using graph::Shape;
using graph::TensorType;
using graph::ValueId;

constexpr int kMaxDepth = 8;  // of branches within branches
constexpr size_t kMaxValues = 50000;
// What folding may compute in all. Detectors fold grids of some hundred kilobytes; a node beyond
// this stays in the graph.
constexpr int64_t kMaxFoldedBytes = int64_t{1} << 28;
constexpr int64_t kMaxFoldedWork = int64_t{1} << 28;  // multiply-adds or elements

constexpr size_t kMaxKindsNamed = 8;  // of unknown ops, in one message

constexpr std::string_view kSimplify =
    "simplify the model (onnxsim) or export it with static shapes";

// The ONNX number of a computed type: what `to` says once half precision is gone.
int64_t onnx_number(DType dtype) {
  switch (dtype) {
    case DType::kI64:
      return kOnnxInt64;
    case DType::kI32:
      return kOnnxInt32;
    case DType::kI16:
      return kOnnxInt16;
    case DType::kI8:
      return kOnnxInt8;
    case DType::kU16:
      return kOnnxUint16;
    case DType::kU8:
      return kOnnxUint8;
    case DType::kBool:
      return kOnnxBool;
    case DType::kF32:
    case DType::kF16:
    case DType::kBf16:
    case DType::kF64:
      break;
  }
  return kOnnxFloat;
}

struct Candidate {
  const OpDef* op;
  const OnnxRow* row;
};

// One graph being lowered: the model's, or a branch of an If.
struct Scope {
  const GraphProto* graph;
  Scope* outer;
  std::unordered_map<std::string_view, ValueId> values = {};
  std::unordered_map<std::string_view, ByteSpan> initializers = {};
};

class Lowering {
 public:
  Lowering(const ModelProto& model, TensorSource& source) : model_(model), source_(source) {
    for (const OpDef* op : ops::op_table()) {
      for (const OnnxRow& row : op->onnx) candidates_.emplace(row.op_type, Candidate{op, &row});
    }
  }

  Result<Lowered> run(const ImportOptions& options, const std::vector<double>& exported_size);

 private:
  using Handler = Status (Lowering::*)(Scope&, const Node&, Attributes&);
  struct Special {
    std::string_view op_type;
    Handler handler;
  };
  static const Special kSpecials[];
  static Handler find_special(std::string_view op_type);

  Status check_opsets();
  std::string why_unknown(const Node& node) const;
  Status check_known(const std::vector<const Node*>& nodes) const;
  Status lower_nodes(Scope& scope);
  Status lower_node(Scope& scope, const Node& node);
  Result<ValueId> find(Scope& scope, std::string_view name);
  static bool exists(const Scope& scope, std::string_view name);

  // What the importer does itself.
  Status constant(Scope& scope, const Node& node, Attributes& attributes);
  Status constant_of_shape(Scope& scope, const Node& node, Attributes& attributes);
  Status identity(Scope& scope, const Node& node, Attributes& attributes);
  Status shape(Scope& scope, const Node& node, Attributes& attributes);
  Status size(Scope& scope, const Node& node, Attributes& attributes);
  Status cast(Scope& scope, const Node& node, Attributes& attributes);
  Status cast_like(Scope& scope, const Node& node, Attributes& attributes);
  Status branch(Scope& scope, const Node& node, Attributes& attributes);
  Status refuse(Scope& scope, const Node& node, Attributes& attributes);

  // What the ops' rows say.
  Status convert(Scope& scope, const Node& node, const graph::Attrs& attrs);
  Status fold(size_t first_new_node);

  Result<ValueId> input(Scope& scope, const Node& node, size_t i);
  Status define(Scope& scope, const Node& node, size_t i, ValueId id);
  Status define_constant(Scope& scope, const Node& node, graph::Tensor tensor);
  Status name_outputs(Scope& scope);

  const ModelProto& model_;
  TensorSource& source_;
  int64_t opset_ = 0;
  std::multimap<std::string_view, Candidate> candidates_;  // in the table's order
  graph::Graph graph_;
  int depth_ = 0;
  size_t lowered_ = 0;
  int64_t folded_bytes_ = 0;
  int64_t folded_work_ = 0;
};

const Lowering::Special Lowering::kSpecials[] = {
    {"Cast", &Lowering::cast},         {"CastLike", &Lowering::cast_like},
    {"Constant", &Lowering::constant}, {"ConstantOfShape", &Lowering::constant_of_shape},
    {"Dropout", &Lowering::identity},  // evaluation mode
    {"Identity", &Lowering::identity}, {"If", &Lowering::branch},
    {"Loop", &Lowering::refuse},       {"Scan", &Lowering::refuse},
    {"Shape", &Lowering::shape},       {"Size", &Lowering::size},
};

Lowering::Handler Lowering::find_special(std::string_view op_type) {
  for (const Special& special : kSpecials) {
    if (special.op_type == op_type) return special.handler;
  }
  return nullptr;
}

bool is_default_domain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

Status Lowering::check_opsets() {
  for (const auto& [domain, version] : model_.opsets) {
    if (is_default_domain(domain)) opset_ = version;
  }
  if (opset_ == 0) {
    return error(Code::kInvalid, "does not say which opset its ops are from: export it again");
  }
  if (opset_ < 9) {
    return error(Code::kUnsupported,
                 "is written for opset {}, ferry reads 9 and newer: export it with opset 12, or "
                 "convert it with onnx.version_converter",
                 opset_);
  }
  return {};
}

// Why no node of this op_type and domain can be lowered; empty when one can.
std::string Lowering::why_unknown(const Node& node) const {
  const std::string_view domain = node.domain.substr(0, 80);
  if (!is_default_domain(domain)) {
    const auto& functions = model_.functions;
    if (std::find(functions.begin(), functions.end(), node.op_type) != functions.end()) {
      return " calls a function of the model: inline it (onnx.inliner.inline_local_functions)";
    }
    return fmt::format(" is from the domain '{}'", domain);
  }
  if (find_special(node.op_type) || candidates_.contains(node.op_type)) return {};
  if (node.op_type == "NonMaxSuppression") return " (export without NMS: ferry brings its own)";
  return " ";
}

// Every kind of op that nobody knows, in one message: one new export must do to get rid of them.
Status Lowering::check_known(const std::vector<const Node*>& nodes) const {
  struct Kind {
    const Node* first;
    int count;
    std::string why;
  };
  std::vector<Kind> kinds;
  for (const Node* node : nodes) {
    std::string why = why_unknown(*node);
    if (why.empty()) continue;
    const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& k) {
      return k.first->op_type == node->op_type && k.first->domain == node->domain;
    });
    if (kind != kinds.end()) {
      ++kind->count;
    } else {
      kinds.push_back({node, 1, std::move(why)});
    }
    if (kinds.size() > kMaxKindsNamed) break;
  }
  if (kinds.empty()) return {};
  std::string text;
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (i == kMaxKindsNamed) {
      text += "; and others";
      break;
    }
    const Kind& kind = kinds[i];
    text += text.empty() ? "" : "; ";
    text += node_text(*kind.first);
    if (kind.count > 1) text += fmt::format(" and {} more like it", kind.count - 1);
    if (kind.why != " ") text += kind.why;
  }
  return error(Code::kUnsupported, "uses ops that ferry does not know: {}", text);
}

Result<Lowered> Lowering::run(const ImportOptions& options,
                              const std::vector<double>& exported_size) {
  FERRY_CHECK_OK(check_opsets());
  if (model_.graph.outputs.empty()) return error(Code::kInvalid, "the graph has no output");
  Lowered lowered;
  Scope scope{&model_.graph, nullptr};
  for (const Initializer& initializer : model_.graph.initializers) {
    scope.initializers.emplace(initializer.name, initializer.message);
  }
  for (const ValueInfo& value : model_.graph.inputs) {
    if (scope.initializers.contains(value.name)) continue;  // its default, which nobody changes
    if (value.name.empty()) return error(Code::kInvalid, "an input has no name");
    FERRY_TRY(bound, bind_input(value, options, exported_size));
    lowered.dynamic_batch |= bound.dynamic_batch;
    lowered.dynamic_size |= bound.dynamic_size;
    scope.values[value.name] = graph::add_input(graph_, value.name, std::move(bound.type));
  }
  if (Status status = lower_nodes(scope); !status.ok()) {
    const bool bound = lowered.dynamic_size || lowered.dynamic_batch;
    if (!bound || status.error().code == Code::kUnsupported) return std::move(status).error();
    return error(status.error().code,
                 "{} (with the model's dynamic axes bound to {}; a file that declares them but was "
                 "traced for one size works with that size only)",
                 status.error().message, graph::type_text(graph_.value(graph_.inputs[0]).type));
  }
  FERRY_CHECK_OK(name_outputs(scope));
  graph::prune(graph_);
  FERRY_CHECK_OK(graph::verify(graph_));
  lowered.graph = std::move(graph_);
  return lowered;
}

Status Lowering::lower_nodes(Scope& scope) {
  if (scope.graph->has_sparse_initializers) {
    return error(Code::kUnsupported,
                 "holds sparse initializers: export the model with dense weights");
  }
  const auto outer = [&](std::string_view name) {
    return scope.outer != nullptr && exists(*scope.outer, name);
  };
  FERRY_TRY(nodes, nodes_in_order(*scope.graph, outer));
  FERRY_CHECK_OK(check_known(nodes));
  for (const Node* node : nodes) {
    FERRY_CHECK_OK(lower_node(scope, *node).within(node_text(*node)));
  }
  return {};
}

Status Lowering::lower_node(Scope& scope, const Node& node) {
  if (++lowered_ > kMaxNodes || graph_.values.size() > kMaxValues) {
    return error(Code::kUnsupported, "the model has more than {} nodes", kMaxNodes);
  }
  FERRY_TRY(attributes, read_attributes(node));
  if (const Handler special = find_special(node.op_type)) {
    return (this->*special)(scope, node, attributes);
  }
  return convert(scope, node, attributes.plain);
}

bool Lowering::exists(const Scope& scope, std::string_view name) {
  for (const Scope* at = &scope; at != nullptr; at = at->outer) {
    if (at->values.contains(name) || at->initializers.contains(name)) return true;
  }
  return false;
}

// Initializers become constants when the first node reads them.
Result<ValueId> Lowering::find(Scope& scope, std::string_view name) {
  for (Scope* at = &scope; at != nullptr; at = at->outer) {
    if (const auto value = at->values.find(name); value != at->values.end()) return value->second;
    const auto initializer = at->initializers.find(name);
    if (initializer == at->initializers.end()) continue;
    FERRY_TRY(proto, read_tensor(initializer->second).within(name));
    FERRY_TRY(tensor, source_.tensor(proto));
    const ValueId id = graph::add_constant(graph_, name, std::move(tensor));
    at->values[name] = id;
    return id;
  }
  return error(Code::kUnsupported, "reads '{}', an optional output that ferry does not compute",
               name);
}

// --- what the importer does itself ---

Result<ValueId> Lowering::input(Scope& scope, const Node& node, size_t i) {
  if (i >= node.inputs.size() || node.inputs[i].empty()) {
    return error(Code::kInvalid, "input {} is absent", i);
  }
  return find(scope, node.inputs[i]);
}

Status Lowering::define(Scope& scope, const Node& node, size_t i, ValueId id) {
  if (i < node.outputs.size() && !node.outputs[i].empty()) scope.values[node.outputs[i]] = id;
  return {};
}

Status Lowering::define_constant(Scope& scope, const Node& node, graph::Tensor tensor) {
  if (node.outputs.empty()) return error(Code::kInvalid, "has no output");
  return define(scope, node, 0, graph::add_constant(graph_, node.outputs[0], std::move(tensor)));
}

Status Lowering::constant(Scope& scope, const Node& node, Attributes& attributes) {
  if (const auto value = attributes.tensors.find("value"); value != attributes.tensors.end()) {
    FERRY_TRY(proto, read_tensor(value->second));
    FERRY_TRY(tensor, source_.tensor(proto));
    return define_constant(scope, node, std::move(tensor));
  }
  for (const auto& [name, value] : attributes.plain) {
    if (const auto* i = std::get_if<int64_t>(&value); i && name == "value_int") {
      return define_constant(scope, node, graph::Tensor::scalar(*i));
    }
    if (const auto* f = std::get_if<double>(&value); f && name == "value_float") {
      return define_constant(scope, node, graph::Tensor::scalar(static_cast<float>(*f)));
    }
    if (const auto* ints = std::get_if<Ints>(&value); ints && name == "value_ints") {
      return define_constant(
          scope, node, graph::Tensor::of<int64_t>({static_cast<int64_t>(ints->size())}, *ints));
    }
    if (const auto* floats = std::get_if<graph::Floats>(&value); floats && name == "value_floats") {
      std::vector<float> values(floats->begin(), floats->end());
      const Shape shape = {static_cast<int64_t>(values.size())};
      return define_constant(scope, node, graph::Tensor::of<float>(shape, std::move(values)));
    }
  }
  return error(Code::kUnsupported,
               "holds no number (strings and sparse tensors are not supported)");
}

Status Lowering::constant_of_shape(Scope& scope, const Node& node, Attributes& attributes) {
  FERRY_TRY(id, input(scope, node, 0));
  const auto& sizes = graph_.value(id).constant;
  if (!sizes) {
    return error(Code::kUnsupported, "its shape is computed while the model runs: {}", kSimplify);
  }
  FERRY_TRY(dims, sizes->to_ints());
  graph::Tensor fill = graph::Tensor::scalar(0.0f);
  if (const auto value = attributes.tensors.find("value"); value != attributes.tensors.end()) {
    FERRY_TRY(proto, read_tensor(value->second));
    FERRY_TRY(tensor, source_.tensor(proto));
    if (tensor.size() != 1) return error(Code::kInvalid, "its value must be one number");
    fill = std::move(tensor);
  }
  const TensorType type{fill.dtype(), dims};
  FERRY_CHECK_OK(graph::check_shape(type.shape, type.dtype));
  const int64_t element = graph::dtype_size(type.dtype), bytes = graph::elements(dims) * element;
  folded_bytes_ += bytes;
  if (folded_bytes_ > kMaxFoldedBytes) {
    return error(Code::kNoMemory, "constants {} and before would need more than {} MiB",
                 graph::shape_text(dims), kMaxFoldedBytes >> 20);
  }
  FERRY_TRY(tensor, graph::Tensor::make(type));
  for (int64_t at = 0; at < bytes; at += element) {
    std::copy_n(fill.bytes().begin(), element, tensor.mut_bytes().begin() + at);
  }
  return define_constant(scope, node, std::move(tensor));
}

Status Lowering::identity(Scope& scope, const Node& node, Attributes&) {
  FERRY_TRY(id, input(scope, node, 0));
  return define(scope, node, 0, id);
}

Status Lowering::shape(Scope& scope, const Node& node, Attributes& attributes) {
  FERRY_TRY(id, input(scope, node, 0));
  const Shape dims = graph_.value(id).type.shape;
  const auto rank = static_cast<int64_t>(dims.size());
  const auto bound = [&](std::string_view name, int64_t fallback) {
    const auto found = attributes.plain.find(name);
    const auto* given =
        found == attributes.plain.end() ? nullptr : std::get_if<int64_t>(&found->second);
    int64_t at = given ? *given : fallback;
    if (at < 0) at = at < -rank ? 0 : at + rank;
    return std::min(at, rank);
  };
  const int64_t start = bound("start", 0), end = std::max(start, bound("end", rank));
  return define_constant(
      scope, node,
      graph::Tensor::of<int64_t>({end - start}, Shape(dims.begin() + start, dims.begin() + end)));
}

Status Lowering::size(Scope& scope, const Node& node, Attributes&) {
  FERRY_TRY(id, input(scope, node, 0));
  return define_constant(scope, node,
                         graph::Tensor::scalar(graph::elements(graph_.value(id).type.shape)));
}

Status Lowering::cast(Scope& scope, const Node& node, Attributes& attributes) {
  FERRY_TRY(id, input(scope, node, 0));
  const auto to = attributes.plain.find("to");
  const auto* number = to == attributes.plain.end() ? nullptr : std::get_if<int64_t>(&to->second);
  if (number == nullptr) return error(Code::kInvalid, "does not say what to cast to");
  FERRY_TRY(dtype, computed_dtype(*number));
  if (dtype == graph_.value(id).type.dtype) return define(scope, node, 0, id);
  Node native = node;
  native.op_type = "Cast";
  native.inputs.resize(1);
  return convert(scope, native, {{"to", onnx_number(dtype)}});
}

Status Lowering::cast_like(Scope& scope, const Node& node, Attributes& attributes) {
  FERRY_TRY(like, input(scope, node, 1));
  attributes.plain["to"] = onnx_number(graph_.value(like).type.dtype);
  return cast(scope, node, attributes);
}

Status Lowering::branch(Scope& scope, const Node& node, Attributes& attributes) {
  FERRY_TRY(id, input(scope, node, 0));
  const auto& condition = graph_.value(id).constant;
  if (!condition || condition->dtype() != DType::kBool || condition->size() != 1) {
    return error(Code::kUnsupported, "its condition is computed while the model runs: {}",
                 kSimplify);
  }
  const bool yes = condition->bytes()[0] != std::byte(0);
  const auto found = attributes.graphs.find(yes ? "then_branch" : "else_branch");
  if (found == attributes.graphs.end()) return error(Code::kInvalid, "lacks a branch");
  if (depth_ == kMaxDepth) return error(Code::kUnsupported, "branches are nested too deep");
  FERRY_TRY(graph, read_graph(found->second));
  if (graph.outputs.size() != node.outputs.size()) {
    return error(Code::kInvalid, "its branch gives {} outputs, it has {}", graph.outputs.size(),
                 node.outputs.size());
  }
  Scope inner{&graph, &scope};
  for (const Initializer& initializer : graph.initializers) {
    inner.initializers.emplace(initializer.name, initializer.message);
  }
  ++depth_;
  FERRY_CHECK_OK(lower_nodes(inner));
  --depth_;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    FERRY_TRY(value, find(inner, graph.outputs[i].name));
    FERRY_CHECK_OK(define(scope, node, i, value));
  }
  return {};
}

Status Lowering::refuse(Scope&, const Node&, Attributes&) {
  return error(Code::kUnsupported, "loops are not supported: {}", kSimplify);
}

// --- what the ops' rows say ---

Status Lowering::convert(Scope& scope, const Node& node, const graph::Attrs& attrs) {
  size_t count = node.inputs.size();
  while (count > 0 && node.inputs[count - 1].empty()) --count;
  size_t named = node.outputs.size();
  while (named > 0 && node.outputs[named - 1].empty()) --named;
  if (named == 0) return error(Code::kInvalid, "has no output");

  std::vector<ValueId> inputs;
  for (size_t i = 0; i < count; ++i) {
    if (node.inputs[i].empty()) {
      inputs.push_back(kNone);
      continue;
    }
    FERRY_TRY(id, find(scope, node.inputs[i]));
    inputs.push_back(id);
  }
  std::vector<const TensorType*> types;
  std::vector<const graph::Tensor*> constants;
  bool all_constant = true;
  for (const ValueId id : inputs) {
    types.push_back(id == kNone ? nullptr : &graph_.value(id).type);
    const bool is_constant = id != kNone && graph_.value(id).constant.has_value();
    constants.push_back(is_constant ? &*graph_.value(id).constant : nullptr);
    all_constant = all_constant && (id == kNone || is_constant);
  }
  const graph::ForeignNode foreign{.op_type = node.op_type,
                                   .opset = opset_,
                                   .attrs = attrs,
                                   .inputs = types,
                                   .constants = constants,
                                   .outputs = static_cast<int>(named)};

  // Several ops may stand for one op_type (Clip: relu6 or clip); the first that takes it wins.
  Status refused = error(Code::kUnsupported, "ferry does not know this op");
  const auto [begin, end] = candidates_.equal_range(node.op_type);
  for (auto at = begin; at != end; ++at) {
    const auto* op = at->second.op;
    const auto* row = at->second.row;
    auto converted = [&]() -> Result<graph::Converted> {
      if (row->convert != nullptr) return row->convert(foreign);
      graph::Converted same;
      for (size_t i = 0; i < count; ++i) same.inputs.push_back(static_cast<int>(i));
      return same;
    }();
    if (!converted.ok()) {
      refused = std::move(converted).error();
      continue;
    }
    std::vector<ValueId> kept;
    for (const int i : converted->inputs) {
      const bool present = i >= 0 && static_cast<size_t>(i) < inputs.size();
      kept.push_back(present ? inputs[static_cast<size_t>(i)] : kNone);
    }
    const size_t first = graph_.nodes.size();
    // A converter may choose another op than its own (Clip: relu6).
    const OpDef& target = converted->op.empty() ? *op : ops::op(converted->op);
    const int outputs = target.outputs < 0 ? static_cast<int>(named) : target.outputs;
    FERRY_TRY(values,
              graph::add_node(graph_, target, node.outputs[0].empty() ? node.name : node.outputs[0],
                              std::move(kept), std::move(converted->attrs), outputs));
    graph_.nodes.back().name = node.name.empty() ? node.outputs[0] : node.name;
    for (size_t i = 0; i < values.size() && i < named; ++i) {
      if (i > 0 && !node.outputs[i].empty()) {
        graph_.value(values[i]).name = graph::unique_name(graph_, node.outputs[i]);
      }
      FERRY_CHECK_OK(define(scope, node, i, values[i]));
    }
    return all_constant ? fold(first) : Status();
  }
  return refused;
}

// Computes the last node, whose inputs are constants, and drops it.
Status Lowering::fold(size_t first_new_node) {
  const graph::Node& node = graph_.nodes[first_new_node];
  // The int8 meaning of a QDQ model stays visible: weights keep their dequantize_linear.
  if (node.op->name == "quantize_linear" || node.op->name == "dequantize_linear") return {};
  if (node.op->eval == nullptr) return {};

  std::vector<const TensorType*> types;
  std::vector<const graph::Tensor*> inputs;
  int64_t bytes = 0, work = 0;
  for (const ValueId id : node.inputs) {
    types.push_back(id == kNone ? nullptr : &graph_.value(id).type);
    inputs.push_back(id == kNone ? nullptr : &*graph_.value(id).constant);
    if (id != kNone) work += graph::elements(graph_.value(id).type.shape);
  }
  for (const ValueId id : node.outputs) {
    const TensorType& type = graph_.value(id).type;
    bytes += graph::elements(type.shape) * graph::dtype_size(type.dtype);
  }
  work += bytes;
  if (node.op->macs != nullptr) work = std::max(work, node.op->macs({node, types, inputs}));
  if (const auto kernel = node.attrs.find("kernel"); kernel != node.attrs.end()) {
    if (const auto* dims = std::get_if<Ints>(&kernel->second)) {
      for (const int64_t dim : *dims) {
        if (__builtin_mul_overflow(work, std::max<int64_t>(dim, 1), &work))
          work = kMaxFoldedWork + 1;
      }
    }
  }
  if (work > kMaxFoldedWork - folded_work_ || bytes > kMaxFoldedBytes - folded_bytes_) return {};
  folded_work_ += work;
  folded_bytes_ += bytes;

  FERRY_TRY(results, ops::evaluate_node(node, inputs));
  for (size_t i = 0; i < results.size(); ++i) {
    graph_.value(node.outputs[i]).constant = std::move(results[i]);
  }
  graph_.nodes.pop_back();
  return {};
}

// The graph's outputs, and their names where a dropped cast or identity gave them.
Status Lowering::name_outputs(Scope& scope) {
  for (const ValueInfo& output : scope.graph->outputs) {
    FERRY_TRY(id, find(scope, output.name));
    const bool again = graph::is_output(graph_, id);
    graph_.outputs.push_back(id);
    const bool is_input =
        std::find(graph_.inputs.begin(), graph_.inputs.end(), id) != graph_.inputs.end();
    if (is_input || again || graph_.value(id).name == output.name) continue;
    graph_.value(id).name = graph::unique_name(graph_, output.name);
  }
  return {};
}

}  // namespace

Result<Lowered> lower(const ModelProto& model, TensorSource& source, const ImportOptions& options,
                      const std::vector<double>& exported_size) {
  return Lowering(model, source).run(options, exported_size);
}

}  // namespace ferry::import::onnx

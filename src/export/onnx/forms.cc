#include "export/onnx/forms.h"

#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "graph/op_def.h"
#include "ops/table.h"

namespace ferry::exporter::onnx {
namespace {

using graph::DType;
using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::OnnxForm;
using graph::OnnxTarget;
using graph::Tensor;
using graph::TensorType;
using graph::ValueId;

// How a value is held in the file, and its name there.
enum class As { kGraph, kHalf };  // the graph's type; f16 for f32

Result<Tensor> to_half(const Tensor& tensor, std::string_view name) {
  FERRY_TRY(half, tensor.cast(DType::kF16));
  const auto from = tensor.as<float>();
  const auto* bits = static_cast<const uint16_t*>(half.data());
  for (size_t i = 0; i < from.size(); ++i) {
    if (std::isfinite(from[i]) && !std::isfinite(graph::f16_to_f32(bits[i]))) {
      return error(Code::kUnsupported,
                   "'{}' holds {}, which f16 cannot (its largest number is 65504): export without "
                   "--half",
                   name, from[i]);
    }
  }
  return half;
}

class Assembly {
 public:
  Assembly(const Graph& graph, const OnnxTarget& target) : graph_(graph), target_(target) {
    for (const graph::Value& value : graph.values) taken_.insert(value.name);
    names_.resize(graph.values.size());
  }

  Result<Forms> run() {
    for (const ValueId id : graph_.inputs) {
      forms_.inputs.push_back({graph_.value(id).name, graph_.value(id).type});
      names_[index(id)].graph = graph_.value(id).name;
    }
    for (const Node& node : graph_.nodes) {
      FERRY_CHECK_OK(add(node).within(fmt::format("{} '{}'", node.op->name, node.name)));
    }
    FERRY_CHECK_OK(add_outputs());
    return std::move(forms_);
  }

 private:
  struct Names {
    std::string graph, half;  // empty: not in the file in this type (yet)
  };

  static size_t index(ValueId id) { return static_cast<size_t>(id); }
  // Is the value of the graph one that a file of f16 holds as f16?
  bool shrinks(ValueId id) const {
    return target_.half && graph_.value(id).type.dtype == DType::kF32;
  }

  std::string fresh(std::string_view wish) {
    std::string name(wish);
    for (int n = 1; !taken_.insert(name).second; ++n) name = fmt::format("{}_{}", wish, n);
    return name;
  }
  std::string fresh_node(std::string_view wish) {
    std::string name(wish);
    for (int n = 1; !node_names_.insert(name).second; ++n) name = fmt::format("{}_{}", wish, n);
    return name;
  }

  // The value's name in the file in the type asked for; casts it or adds it to the initializers
  // when it is not there yet.
  Result<std::string> name_of(ValueId id, As as) {
    Names& names = names_[index(id)];
    std::string& name = as == As::kHalf ? names.half : names.graph;
    if (!name.empty()) return name;
    const graph::Value& value = graph_.value(id);
    if (value.constant) {
      Tensor tensor = *value.constant;
      if (as == As::kHalf) {
        FERRY_TRY(half, to_half(tensor, value.name));
        tensor = std::move(half);
      }
      name = names.graph.empty() && names.half.empty() ? value.name : fresh(value.name);
      forms_.constants.push_back({name, std::move(tensor)});
      return name;
    }
    if (as == As::kGraph && graph::is_output(graph_, id)) {
      name = value.name;
      add_cast(names.half, name, DType::kF32);
      return name;
    }
    name = cast(as == As::kHalf ? names.graph : names.half, value.name,
                as == As::kHalf ? DType::kF16 : DType::kF32);
    forms_.inner.push_back({name, typed(value.type, as)});
    return name;
  }

  static TensorType typed(TensorType type, As as) {
    if (as == As::kHalf) type.dtype = DType::kF16;
    return type;
  }

  std::string cast(const std::string& from, const std::string& value, DType to) {
    const std::string name = fresh(value + (to == DType::kF16 ? "_f16" : "_f32"));
    add_cast(from, name, to);
    return name;
  }
  void add_cast(const std::string& from, const std::string& to, DType dtype) {
    forms_.nodes.push_back({.name = fresh_node(to + "/Cast"),
                            .op_type = "Cast",
                            .inputs = {from},
                            .outputs = {to},
                            .attrs = {{"to", graph::onnx_number(dtype)}},
                            .origin = "cast"});
  }

  Status add(const Node& node) {
    OnnxForm form(graph_, node, target_);
    FERRY_CHECK_OK(ops::write_onnx(form));

    std::unordered_map<OnnxForm::Ref, std::string> names = {{kNone, ""}};
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId id = node.inputs[i];
      const auto ref = static_cast<OnnxForm::Ref>(i);
      if (id == kNone || !is_read(form, ref)) continue;
      FERRY_TRY(name, name_of(id, shrinks(id) && !form.in_f32() ? As::kHalf : As::kGraph));
      names[ref] = std::move(name);
    }
    for (const OnnxForm::Constant& constant : form.constants()) {
      FERRY_TRY(name, add_constant(node, constant));
      names[constant.ref] = std::move(name);
    }
    for (const OnnxForm::Made& made : form.nodes()) {
      const bool last = &made == &form.nodes().back();
      NodeForm out{.name = fresh_node(fmt::format("{}/{}", node.name, made.op_type)),
                   .op_type = std::string(made.op_type),
                   .inputs = {},
                   .outputs = {},
                   .attrs = made.attrs,
                   .origin = fmt::format("{} '{}'", node.op->name, node.name)};
      for (const OnnxForm::Ref ref : made.inputs) out.inputs.push_back(names.at(ref));
      for (int i = 0; i < made.outputs; ++i) {
        const std::string name =
            last ? name_output(node.outputs[static_cast<size_t>(i)], form)
                 : fresh(fmt::format("{}/{}", graph_.value(node.outputs[0]).name, made.op_type));
        names[made.first + i] = name;
        out.outputs.push_back(name);
      }
      forms_.nodes.push_back(std::move(out));
    }
    return {};
  }

  static bool is_read(const OnnxForm& form, OnnxForm::Ref ref) {
    for (const OnnxForm::Made& made : form.nodes()) {
      for (const OnnxForm::Ref input : made.inputs) {
        if (input == ref) return true;
      }
    }
    return false;
  }

  // A small constant that a form brings along: equal ones are written once.
  Result<std::string> add_constant(const Node& node, const OnnxForm::Constant& constant) {
    Tensor tensor = constant.tensor;
    const bool half = target_.half && !constant.exact && tensor.dtype() == DType::kF32;
    if (half) {
      FERRY_TRY(smaller, to_half(tensor, node.name));
      tensor = std::move(smaller);
    }
    const auto bytes = tensor.bytes();
    const std::string key = graph::type_text(tensor.type()) + ":" +
                            std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto [found, is_new] = shared_.emplace(key, "");
    if (is_new) {
      found->second = fresh(fmt::format("{}/constant", graph_.value(node.outputs[0]).name));
      forms_.constants.push_back({found->second, std::move(tensor)});
    }
    return found->second;
  }

  std::string name_output(ValueId id, const OnnxForm& form) {
    const graph::Value& value = graph_.value(id);
    const As as = shrinks(id) && !form.in_f32() ? As::kHalf : As::kGraph;
    Names& names = names_[index(id)];
    // The outputs of the whole keep name and type: f16 is cast behind them.
    const bool whole = graph::is_output(graph_, id);
    std::string name = whole && as == As::kHalf ? fresh(value.name + "_f16") : value.name;
    (as == As::kHalf ? names.half : names.graph) = name;
    if (!whole || as == As::kHalf) forms_.inner.push_back({name, typed(value.type, as)});
    return name;
  }

  // A node's output is an output of the file as it is. Inputs, constants and what is asked for
  // twice go through an Identity, because a name stands for one thing.
  Status add_outputs() {
    const std::vector<int> producers = graph::producers(graph_);
    std::unordered_set<ValueId> done;
    for (const ValueId id : graph_.outputs) {
      const graph::Value& value = graph_.value(id);
      FERRY_TRY(source, name_of(id, As::kGraph));
      std::string name = source;
      if (producers[index(id)] < 0 || !done.insert(id).second) {
        name = fresh(value.name + "_output");
        forms_.nodes.push_back({.name = fresh_node(name + "/Identity"),
                                .op_type = "Identity",
                                .inputs = {source},
                                .outputs = {name},
                                .attrs = {},
                                .origin = "output"});
      }
      forms_.outputs.push_back({name, value.type});
    }
    return {};
  }

  const Graph& graph_;
  const OnnxTarget& target_;
  Forms forms_;
  std::vector<Names> names_;
  std::unordered_set<std::string> taken_, node_names_;
  std::unordered_map<std::string, std::string> shared_;  // type and bytes → name
};

}  // namespace

Result<Forms> onnx_forms(const Graph& graph, const OnnxTarget& target) {
  return Assembly(graph, target).run();
}

}  // namespace ferry::exporter::onnx

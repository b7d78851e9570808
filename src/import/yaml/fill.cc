#include "import/yaml/fill.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace ferry::import {
namespace {

using graph::Tensor;
using torch::Module;
using torch::ModuleTensor;
using torch::ModuleTree;
using torch::Value;

// splitmix64 (Steele, Lea, Flood 2014), to [0, 1).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  double next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_;
};

// Each tensor draws from a stream of its own, so that a change of one layer leaves the others alone
// (FNV-1a of the name).
uint64_t stream(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325 ^ seed;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// `fan_in` of a bias is that of its weight.
int64_t fan_in(const Module& module) {
  const ModuleTensor* weight = module.tensor("weight");
  if (weight == nullptr) weight = module.tensor("in_proj_weight");
  if (weight == nullptr || weight->type.shape.size() < 2) return 1;
  int64_t n = 1;
  for (size_t i = 1; i < weight->type.shape.size(); ++i) n *= weight->type.shape[i];
  return std::max<int64_t>(n, 1);
}

Status fill_tensor(const Module& module, ModuleTensor& t, uint64_t seed) {
  FERRY_TRY(tensor, Tensor::make(t.type));
  const auto values = tensor.mut<float>();
  const bool is_norm = module.tensor("running_var") != nullptr;
  if (is_norm) {
    std::fill(values.begin(), values.end(),
              t.name == "weight" || t.name == "running_var" ? 1.0f : 0.0f);
  } else {
    Random random(stream(seed, fmt::format("{}.{}", module.path, t.name)));
    const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in(module)));
    for (float& v : values) v = static_cast<float>((2 * random.next() - 1) * bound);
  }
  t.tensor = std::move(tensor);
  return {};
}

// Upstream's _initialize_biases: about 8 objects in a picture of 640, classes equally likely.
// Strides are taken to be 8, 16, 32, …; they only set how rare objects are.
void set_head_biases(const Module& detect, int64_t nc) {
  const Module* convs = detect.child("m");
  if (convs == nullptr) return;
  double stride = 8;
  for (const auto& [name, conv] : convs->children) {
    for (ModuleTensor& t : conv->tensors) {
      if (t.name != "bias" || !t.tensor) continue;
      const auto values = t.tensor->mut<float>();
      const auto row = static_cast<size_t>(5 + nc);
      for (size_t i = 0; i < values.size(); ++i) {
        if (i % row == 4) values[i] += static_cast<float>(std::log(8 / std::pow(640 / stride, 2)));
        if (i % row >= 5)
          values[i] += static_cast<float>(std::log(0.6 / (static_cast<double>(nc) - 0.99999)));
      }
    }
    stride *= 2;
  }
}

// --- state dicts ---

using Names = std::map<std::string, const Value*, std::less<>>;

// Tensors by name, without what wrappers put before "model.<layer>.".
Names read_names(const Value& weights) {
  std::string prefix;
  for (const auto& [key, value] : torch::entries(weights)) {
    if (!key->is_string() || !torch::is_tensor(*value)) continue;
    const size_t at = key->text.find("model.0.");
    if (at != std::string_view::npos) {
      prefix = std::string(key->text.substr(0, at));
      break;
    }
  }
  Names names;
  for (const auto& [key, value] : torch::entries(weights)) {
    if (!key->is_string() || !torch::is_tensor(*value)) continue;
    const bool has_prefix = key->text.starts_with(prefix);
    names[std::string(has_prefix ? key->text.substr(prefix.size()) : key->text)] = value;
  }
  return names;
}

// A fused model has a bias in each convolution and no batch norms: the tree loses its own.
void drop_fused_norms(ModuleTree& tree, const Names& names) {
  for (Module& module : tree.modules) {
    const Module* conv = module.child("conv");
    const Module* bn = module.child("bn");
    if (conv == nullptr || bn == nullptr || conv->tensor("bias") != nullptr) continue;
    const bool is_fused =
        names.contains(conv->path + ".bias") && !names.contains(bn->path + ".weight");
    if (!is_fused) continue;
    const graph::Shape channels = {conv->tensor("weight")->type.shape[0]};
    const_cast<Module*>(conv)->tensors.push_back(
        {"bias", {graph::DType::kF32, channels}, std::nullopt, true});
    std::erase_if(module.children, [](const auto& child) { return child.first == "bn"; });
  }
}

// What PyTorch keeps beside the weights and the graph does not need.
bool is_dispensable(std::string_view name) {
  return name.ends_with(".num_batches_tracked") || name.ends_with(".anchor_grid") ||
         name.ends_with(".anchors") || name.ends_with(".stride");
}

std::string list_some(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 4); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > 4 ? fmt::format("{} and {} more", text, names.size() - 4) : text;
}

// Modules that the root reaches; fused norms are no longer among them.
void collect(Module& module, std::vector<Module*>& out) {
  out.push_back(&module);
  for (const auto& [name, child] : module.children) collect(*child, out);
}

}  // namespace

Status fill_random(ModuleTree& tree, uint64_t seed) {
  for (Module& module : tree.modules) {
    for (ModuleTensor& t : module.tensors) {
      if (!t.tensor) FERRY_CHECK_OK(fill_tensor(module, t, seed));
    }
  }
  for (const Module& module : tree.modules) {
    if (torch::short_name(module.class_name) != "Detect") continue;
    FERRY_TRY(nc, module.int_attribute("nc", 80));
    set_head_biases(module, nc);
  }
  return {};
}

Status fill_from_state_dict(ModuleTree& tree, const Value& weights, torch::TensorReader& tensors) {
  const Names names = read_names(weights);
  drop_fused_norms(tree, names);
  std::vector<Module*> modules;
  collect(*tree.root, modules);
  std::vector<std::string> missing, misshaped, unexpected;
  std::set<std::string_view> used;
  for (Module* module : modules) {
    for (ModuleTensor& t : module->tensors) {
      if (t.tensor) continue;  // anchors of the yaml
      const std::string name = fmt::format("{}.{}", module->path, t.name);
      const auto it = names.find(name);
      if (it == names.end()) {
        missing.push_back(name);
        continue;
      }
      used.insert(it->first);
      FERRY_TRY(tensor, tensors.read(*it->second).within(name));
      if (tensor.shape() != t.type.shape) {
        misshaped.push_back(fmt::format("{} is {}, the yaml says {}", name,
                                        graph::shape_text(tensor.shape()),
                                        graph::shape_text(t.type.shape)));
        continue;
      }
      t.type = tensor.type();
      t.tensor = std::move(tensor);
    }
    // The anchors that training used replace the yaml's.
    const auto anchors = names.find(module->path + ".anchors");
    if (module->tensor("anchors_in_pixels") != nullptr && anchors != names.end()) {
      FERRY_TRY(tensor, tensors.read(*anchors->second).within(anchors->first));
      module->tensors.push_back({"anchors", tensor.type(), tensor, false});
    }
  }
  for (const auto& [name, value] : names) {
    if (!used.contains(name) && !is_dispensable(name)) unexpected.push_back(name);
  }
  std::string problems;
  const auto report = [&](std::string_view what, const std::vector<std::string>& list) {
    if (list.empty()) return;
    problems += fmt::format("{}{} {} ({})", problems.empty() ? "" : "; ", list.size(), what,
                            list_some(list));
  };
  report("are of another shape", misshaped);
  report("are missing", missing);
  report("are unexpected", unexpected);
  if (!problems.empty()) {
    return error(Code::kInvalid,
                 "the weights do not fit the model yaml: {}. Is it the yaml that the model was "
                 "trained with?",
                 problems);
  }
  return {};
}

Result<int64_t> classes_in_state_dict(const Module& layers, const Value& weights,
                                      torch::TensorReader& tensors) {
  if (layers.children.empty()) return int64_t{0};
  const Module& detect = *layers.children.back().second;
  const ModuleTensor* anchors = detect.tensor("anchors_in_pixels");
  const Names names = read_names(weights);
  const auto bias = names.find(detect.path + ".m.0.bias");
  if (anchors == nullptr || bias == names.end()) return int64_t{0};
  FERRY_TRY(tensor, tensors.read(*bias->second).within(bias->first));
  const int64_t per_level = anchors->type.shape[1];
  return tensor.size() % per_level == 0 ? std::max<int64_t>(tensor.size() / per_level - 5, 0) : 0;
}

}  // namespace ferry::import

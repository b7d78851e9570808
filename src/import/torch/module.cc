#include "import/torch/module.h"

#include <algorithm>
#include <map>
#include <set>

namespace ferry::import::torch {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMaxParts = 10'000;  // children, or tensors, of one module

Error bad_attribute(const Module& module, std::string_view name, const Value& value,
                    std::string_view needs) {
  return error(Code::kInvalid, "{}: attribute '{}' is {}, needs {}", module.where(), name,
               describe(value), needs);
}

class Loader {
 public:
  Loader(TensorReader& tensors, ModuleTree& tree) : tensors_(tensors), tree_(tree) {}

  Result<Module*> load(const Value& object, const std::string& path, int depth) {
    if (const auto it = known_.find(&object); it != known_.end()) {
      if (it->second == nullptr) return error(Code::kInvalid, "module '{}' contains itself", path);
      return it->second;
    }
    if (depth > kMaxDepth)
      return error(Code::kInvalid, "modules are nested more than {} deep at '{}'", kMaxDepth, path);
    known_[&object] = nullptr;  // under way
    const Value* state = state_dict_of(object);
    if (state == nullptr)
      return error(Code::kInvalid, "{} at '{}' has no state", describe(object), path);
    Module* module = tree_.add(class_name(object), path);
    for (const auto& [key, value] : entries(*state)) {
      if (key->is_string()) module->attributes[key->text] = value;
    }
    FERRY_CHECK_OK(load_tensors(*module, torch::find(*state, "_parameters"), true));
    FERRY_CHECK_OK(load_tensors(*module, torch::find(*state, "_buffers"), false));
    FERRY_CHECK_OK(load_children(*module, torch::find(*state, "_modules"), depth));
    known_[&object] = module;
    return module;
  }

 private:
  static Status check_parts(const Module& module, const Value& named) {
    const size_t count = entries(named).size();
    if (count <= kMaxParts) return {};
    return error(Code::kInvalid, "{}: {} parts; the limit is {}", module.where(), count, kMaxParts);
  }

  Status load_tensors(Module& module, const Value* named, bool is_parameter) {
    if (named == nullptr) return {};
    FERRY_CHECK_OK(check_parts(module, *named));
    for (const auto& [key, value] : entries(*named)) {
      if (value->is_none() || !key->is_string()) continue;
      FERRY_TRY(tensor,
                tensors_.read(*value).within(fmt::format("{}: '{}'", module.where(), key->text)));
      const graph::TensorType type = tensor.type();
      module.tensors.push_back({std::string(key->text), type, std::move(tensor), is_parameter});
    }
    return {};
  }

  Status load_children(Module& module, const Value* named, int depth) {
    if (named == nullptr) return {};
    FERRY_CHECK_OK(check_parts(module, *named));
    for (const auto& [key, value] : entries(*named)) {
      if (value->is_none() || !key->is_string()) continue;
      const std::string path = module.path.empty() ? std::string(key->text)
                                                   : fmt::format("{}.{}", module.path, key->text);
      FERRY_TRY(child, load(*value, path, depth + 1));
      module.children.emplace_back(std::string(key->text), child);
    }
    return {};
  }

  TensorReader& tensors_;
  ModuleTree& tree_;
  std::map<const Value*, Module*> known_;
};

}  // namespace

const Module* Module::child(std::string_view name) const {
  for (const auto& [key, module] : children) {
    if (key == name) return module;
  }
  return nullptr;
}

const ModuleTensor* Module::tensor(std::string_view name) const {
  for (const ModuleTensor& t : tensors) {
    if (t.name == name) return &t;
  }
  return nullptr;
}

const Value* Module::attribute(std::string_view name) const {
  const auto it = attributes.find(name);
  return it == attributes.end() ? nullptr : it->second;
}

std::string Module::where() const {
  return path.empty() ? std::string(class_name) : fmt::format("{} at {}", class_name, path);
}

Result<int64_t> Module::int_attribute(std::string_view name, int64_t fallback) const {
  const Value* value = attribute(name);
  if (value == nullptr || value->is_none()) return fallback;
  if (const auto n = as_int(value)) return *n;
  return bad_attribute(*this, name, *value, "an integer");
}

Result<double> Module::float_attribute(std::string_view name, double fallback) const {
  const Value* value = attribute(name);
  if (value == nullptr || value->is_none()) return fallback;
  if (const auto n = as_float(value)) return *n;
  return bad_attribute(*this, name, *value, "a number");
}

Result<bool> Module::bool_attribute(std::string_view name, bool fallback) const {
  const Value* value = attribute(name);
  if (value == nullptr || value->is_none()) return fallback;
  if (const auto b = as_bool(value)) return *b;
  return bad_attribute(*this, name, *value, "True or False");
}

Result<std::string> Module::string_attribute(std::string_view name,
                                             std::string_view fallback) const {
  const Value* value = attribute(name);
  if (value == nullptr || value->is_none()) return std::string(fallback);
  if (value->is_string()) return std::string(value->text);
  return bad_attribute(*this, name, *value, "a string");
}

Result<graph::Shape> Module::ints_attribute(std::string_view name, size_t count,
                                            graph::Shape fallback) const {
  const Value* value = attribute(name);
  if (value == nullptr || value->is_none()) return fallback;
  if (auto ints = as_ints(value, count)) return *std::move(ints);
  return bad_attribute(*this, name, *value, fmt::format("an integer or {} of them", count));
}

bool is_module(const Value& value) {
  if (value.kind != Kind::kCall) return false;
  const Value* state = state_dict_of(value);
  return state != nullptr &&
         (find(*state, "_modules") != nullptr || find(*state, "_parameters") != nullptr);
}

Result<ModuleTree> read_modules(const Pickle& pickle, const Value& object, TensorReader& tensors) {
  ModuleTree tree;
  tree.arena = pickle.arena;
  FERRY_TRY(root, Loader(tensors, tree).load(object, "", 0));
  tree.root = root;
  return tree;
}

int64_t count_parameters(const ModuleTree& tree) {
  std::set<const void*> seen;  // modules, and the bytes of tensors
  int64_t count = 0;
  std::vector<const Module*> open = {tree.root};
  while (!open.empty()) {
    const Module& module = *open.back();
    open.pop_back();
    if (!seen.insert(&module).second) continue;
    for (const ModuleTensor& t : module.tensors) {
      const bool counted = t.is_parameter && (!t.tensor || seen.insert(t.tensor->data()).second);
      if (counted) count += graph::elements(t.type.shape);
    }
    for (const auto& [name, child] : module.children) open.push_back(child);
  }
  return count;
}

}  // namespace ferry::import::torch

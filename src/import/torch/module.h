// The module tree: what nn.Module objects are once Python is taken away. A class name, attributes,
// named tensors and children in order. Checkpoints and model yaml files both become this, and one
// walker makes the graph from it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "graph/tensor.h"
#include "import/torch/tensors.h"
#include "import/torch/value.h"

namespace ferry::import::torch {

struct ModuleTensor {
  std::string name;
  graph::TensorType type;               // as stored
  std::optional<graph::Tensor> tensor;  // absent in a tree made from a yaml until it is filled
  bool is_parameter = true;             // else a buffer
};

struct Module {
  std::string_view class_name;  // "models.common.Conv"
  std::string path;             // "model.4.cv1"; of the first place where a shared module stands
  std::map<std::string_view, const Value*> attributes = {};  // what is left of __dict__
  std::vector<ModuleTensor> tensors;
  std::vector<std::pair<std::string, Module*>> children;  // absent ones (None) are left out

  const Module* child(std::string_view name) const;
  const ModuleTensor* tensor(std::string_view name) const;
  const Value* attribute(std::string_view name) const;  // null when absent
  // "models.common.Conv at model.4.cv1"
  std::string where() const;

  // Attributes by type. Absent or None: the fallback. Of another type: an error that names module
  // and attribute.
  Result<int64_t> int_attribute(std::string_view name, int64_t fallback) const;
  Result<double> float_attribute(std::string_view name, double fallback) const;
  Result<bool> bool_attribute(std::string_view name, bool fallback) const;
  Result<std::string> string_attribute(std::string_view name, std::string_view fallback) const;
  // One integer (repeated) or `count` of them.
  Result<graph::Shape> ints_attribute(std::string_view name, size_t count,
                                      graph::Shape fallback) const;
};

struct ModuleTree {
  std::deque<Module> modules;  // stable addresses; shared modules stand once
  Module* root = nullptr;
  std::shared_ptr<const Arena> arena;  // owns the attributes

  Module* add(std::string_view class_name, std::string path) {
    modules.emplace_back();
    modules.back().class_name = class_name;
    modules.back().path = std::move(path);
    return &modules.back();
  }
};

// True for an object that was restored with `_modules` or `_parameters`, as every nn.Module is.
bool is_module(const Value& value);

// Reads the tree under `object`. Fails on cycles, more than 64 levels or 10 000 children, and
// tensors that do not fit their storage; the message names the module.
Result<ModuleTree> read_modules(const Pickle& pickle, const Value& object, TensorReader& tensors);

// Elements of all parameters below the root, shared ones once, as Ultralytics counts them.
int64_t count_parameters(const ModuleTree& tree);

}  // namespace ferry::import::torch

// Model yaml files (`models/yolov5*.yaml` of v3 to v7): the network they describe, with random
// weights, or with those of a state_dict. The yaml becomes the same module tree that a checkpoint
// holds (torch/module.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "import/model.h"
#include "import/torch/module.h"

namespace ferry::import {

// Builds the model of the yaml at `path` with weights drawn from `options.seed`: as PyTorch
// initialises them, and with batch norms at rest. Errors begin with the path and name line or
// layer.
Result<Model> import_yaml(const std::string& path, const ImportOptions& options = {});

// True for text that has a `backbone:` or `head:` key.
bool looks_like_yaml(std::span<const std::byte> file);

// What the yaml text describes: layers, class count and channels, tensors without data.
struct YamlModel {
  torch::ModuleTree
      tree;  // the root is like a models.yolo.Model: attributes, and a child `model` of layers
  torch::Module* layers = nullptr;
  std::string note;  // (optional) what the yaml leaves open and how it was taken, a sentence
};
// `nc` of a checkpoint's head, when known, overrides the yaml's (0: the yaml's).
Result<YamlModel> parse_model_yaml(std::string_view text, int64_t nc = 0);

// The same for a yaml that is read already, as checkpoints hold one. `root` lives in `arena`, or as
// long as the model.
Result<YamlModel> make_model(std::shared_ptr<torch::Arena> arena, const torch::Value& root,
                             int64_t nc = 0);

}  // namespace ferry::import

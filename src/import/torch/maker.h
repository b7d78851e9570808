// Makes modules as their Python constructors do: for model yaml files. Tensors get their types
// only; who calls fills them with random numbers or with a state_dict's.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/torch/module.h"

namespace ferry::import::torch {

// Arguments of a constructor: those that parse_model puts in front, and the line's own.
struct MakeArgs {
  std::string_view name = {};               // the class's last component
  int64_t c1 = 0;                           // channels in
  int64_t c2 = 0;                           // channels out
  int64_t n = 1;                            // repeats inside (Yaml::kRepeated)
  std::span<const Value* const> rest = {};  // behind c1, c2, n
  std::span<const int64_t> from = {};       // Detect: channels of every input

  // rest[i] by type, or the default. Fails when it is there with another type.
  Result<int64_t> integer(size_t i, int64_t fallback) const;
  Result<bool> boolean(size_t i, bool fallback) const;
  Result<double> number(size_t i, double fallback) const;
  Result<std::vector<int64_t>> integers(size_t i,
                                        std::vector<int64_t> fallback) const;  // one, or a list
  bool has(size_t i) const { return i < rest.size() && !rest[i]->is_none(); }
};

using Pair = std::array<int64_t, 2>;  // rows, columns

struct ConvSpec {
  Pair kernel{1, 1};
  Pair stride{1, 1};
  std::optional<Pair> padding = std::nullopt;  // none: half the kernel, as YOLOv5's autopad
  int64_t groups = 1;
  int64_t dilation = 1;
  bool bias = false;
  bool act = true;  // of conv_block
};

class Maker {
 public:
  Maker(ModuleTree& tree, Arena& arena) : tree_(tree), arena_(arena) {}

  Module* module(std::string_view class_name, std::string path);
  // A child of this class, without content.
  Module& child(Module& parent, std::string_view name, std::string_view class_name);
  // A child that its class's row makes: Bottleneck, SPP, TransformerBlock, …
  Status child_of(Module& parent, std::string_view name, std::string_view class_name,
                  MakeArgs args);

  // Content for a module of that class.
  void conv2d(Module& module, int64_t c1, int64_t c2, const ConvSpec& spec);  // nn.Conv2d
  void batch_norm(Module& module, int64_t channels);               // nn.BatchNorm2d, eps 1e-3
  void linear(Module& module, int64_t c1, int64_t c2, bool bias);  // nn.Linear
  void conv_block(Module& module, int64_t c1, int64_t c2,
                  const ConvSpec& spec);  // Conv: conv, bn, act
  void max_pool(Module& module, int64_t kernel, int64_t stride, int64_t padding);
  // The same as a child.
  void conv2d(Module& parent, std::string_view name, int64_t c1, int64_t c2, const ConvSpec& spec) {
    conv2d(child(parent, name, "torch.nn.modules.conv.Conv2d"), c1, c2, spec);
  }
  void conv_block(Module& parent, std::string_view name, int64_t c1, int64_t c2,
                  const ConvSpec& spec = {}) {
    conv_block(child(parent, name, "models.common.Conv"), c1, c2, spec);
  }

  // The activation that Conv has by default; SiLU unless the yaml says otherwise.
  void set_default_activation(std::string_view class_name, std::optional<double> slope);
  // The activation of BottleneckCSP and MixConv2d: LeakyReLU(0.1) up to v6.0.
  void set_old_csp_activation() { old_csp_activation_ = true; }
  void csp_activation(Module& parent, std::string_view name);
  bool has_old_csp_activation() const { return old_csp_activation_; }

  void set(Module& module, std::string_view name, int64_t value);
  void set(Module& module, std::string_view name, double value);
  void set(Module& module, std::string_view name, bool value);
  void set(Module& module, std::string_view name, std::string_view value);
  void set(Module& module, std::string_view name, std::span<const int64_t> values);
  void set(Module& module, std::string_view name, const Value* value);
  void tensor(Module& module, std::string_view name, graph::Shape shape, bool is_parameter = true);

  // The first thing that was wrong: channels, kernels or sums of sizes that cannot be.
  const Status& status() const { return status_; }

 private:
  void fail(const Module& module, std::string why);

  ModuleTree& tree_;
  Arena& arena_;
  Status status_;
  std::string activation_ = "torch.nn.modules.activation.SiLU";
  std::optional<double> slope_;
  bool old_csp_activation_ = false;
  int64_t elements_ = 0;
};

}  // namespace ferry::import::torch

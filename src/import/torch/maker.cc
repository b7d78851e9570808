#include "import/torch/maker.h"

#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

// yolov5x6 has 140 million parameters and 1300 modules.
constexpr int64_t kMaxElements = int64_t{1} << 28;
constexpr size_t kMaxModules = 20'000;
constexpr int64_t kMaxChannels = 1 << 20;

Error bad_argument(const MakeArgs& args, size_t i, std::string_view needs) {
  return error(Code::kInvalid, "{}: argument {} is {}, needs {}", args.name, i + 1,
               describe(*args.rest[i]), needs);
}

}  // namespace

Result<int64_t> MakeArgs::integer(size_t i, int64_t fallback) const {
  if (!has(i)) return fallback;
  if (const auto value = as_int(rest[i])) return *value;
  return bad_argument(*this, i, "an integer");
}

Result<bool> MakeArgs::boolean(size_t i, bool fallback) const {
  if (!has(i)) return fallback;
  if (const auto value = as_bool(rest[i])) return *value;
  return bad_argument(*this, i, "True or False");
}

Result<double> MakeArgs::number(size_t i, double fallback) const {
  if (!has(i)) return fallback;
  if (const auto value = as_float(rest[i])) return *value;
  return bad_argument(*this, i, "a number");
}

Result<std::vector<int64_t>> MakeArgs::integers(size_t i, std::vector<int64_t> fallback) const {
  if (!has(i)) return fallback;
  const size_t count = rest[i]->is_sequence() ? rest[i]->items.size() : 1;
  if (auto values = as_ints(rest[i], count)) return *std::move(values);
  return bad_argument(*this, i, "integers");
}

Module* Maker::module(std::string_view class_name, std::string path) {
  Module* module = tree_.add(arena_.keep(std::string(class_name)), std::move(path));
  if (tree_.modules.size() > kMaxModules)
    fail(*module, fmt::format("more than {} modules", kMaxModules));
  return module;
}

Module& Maker::child(Module& parent, std::string_view name, std::string_view class_name) {
  const std::string path =
      parent.path.empty() ? std::string(name) : fmt::format("{}.{}", parent.path, name);
  Module* made = module(class_name, path);
  parent.children.emplace_back(std::string(name), made);
  return *made;
}

Status Maker::child_of(Module& parent, std::string_view name, std::string_view class_name,
                       MakeArgs args) {
  FERRY_CHECK_OK(status_);
  const ModuleDef* def = find_module_def(class_name);
  FERRY_ASSERT(def != nullptr && def->make != nullptr, "rows make children of known classes only");
  args.name = short_name(class_name);
  return def->make(*this, child(parent, name, class_name), args);
}

void Maker::conv2d(Module& module, int64_t c1, int64_t c2, const ConvSpec& spec) {
  const auto [kh, kw] = spec.kernel;
  const bool fits = c1 > 0 && c2 > 0 && c1 <= kMaxChannels && c2 <= kMaxChannels &&
                    spec.groups > 0 && c1 % spec.groups == 0 && c2 % spec.groups == 0 && kh > 0 &&
                    kw > 0 && kh < 1024 && kw < 1024 && spec.dilation > 0 && spec.dilation < 1024;
  if (!fits) {
    return fail(module,
                fmt::format("a convolution from {} to {} channels, kernel {} x {}, {} groups", c1,
                            c2, kh, kw, spec.groups));
  }
  const Pair half = {(spec.dilation * (kh - 1) + 1) / 2, (spec.dilation * (kw - 1) + 1) / 2};
  const Pair dilation = {spec.dilation, spec.dilation};
  set(module, "stride", std::span<const int64_t>(spec.stride));
  set(module, "padding", std::span<const int64_t>(spec.padding ? *spec.padding : half));
  set(module, "dilation", std::span<const int64_t>(dilation));
  set(module, "groups", spec.groups);
  tensor(module, "weight", {c2, c1 / spec.groups, kh, kw});
  if (spec.bias) tensor(module, "bias", {c2});
}

void Maker::batch_norm(Module& module, int64_t channels) {
  set(module, "eps", 1e-3);
  tensor(module, "weight", {channels});
  tensor(module, "bias", {channels});
  tensor(module, "running_mean", {channels}, false);
  tensor(module, "running_var", {channels}, false);
}

void Maker::linear(Module& module, int64_t c1, int64_t c2, bool bias) {
  tensor(module, "weight", {c2, c1});
  if (bias) tensor(module, "bias", {c2});
}

void Maker::conv_block(Module& module, int64_t c1, int64_t c2, const ConvSpec& spec) {
  conv2d(module, "conv", c1, c2, spec);
  batch_norm(child(module, "bn", "torch.nn.modules.batchnorm.BatchNorm2d"), c2);
  Module& act = child(
      module, "act", spec.act ? std::string_view(activation_) : "torch.nn.modules.linear.Identity");
  if (spec.act && slope_) set(act, "negative_slope", *slope_);
}

void Maker::max_pool(Module& module, int64_t kernel, int64_t stride, int64_t padding) {
  set(module, "kernel_size", kernel);
  set(module, "stride", stride);
  set(module, "padding", padding);
}

void Maker::set_default_activation(std::string_view class_name, std::optional<double> slope) {
  activation_ = class_name;
  slope_ = slope;
}

void Maker::csp_activation(Module& parent, std::string_view name) {
  Module& act = child(parent, name,
                      old_csp_activation_ ? "torch.nn.modules.activation.LeakyReLU"
                                          : "torch.nn.modules.activation.SiLU");
  if (old_csp_activation_) set(act, "negative_slope", 0.1);
}

void Maker::set(Module& module, std::string_view name, const Value* value) {
  module.attributes[arena_.keep(std::string(name))] = value;
}
void Maker::set(Module& module, std::string_view name, int64_t value) {
  set(module, name, arena_.add_int(value));
}
void Maker::set(Module& module, std::string_view name, double value) {
  set(module, name, arena_.add_float(value));
}
void Maker::set(Module& module, std::string_view name, bool value) {
  set(module, name, arena_.add_bool(value));
}
void Maker::set(Module& module, std::string_view name, std::string_view value) {
  set(module, name, arena_.add_string(std::string(value)));
}
void Maker::set(Module& module, std::string_view name, std::span<const int64_t> values) {
  std::vector<const Value*> items;
  for (const int64_t value : values) items.push_back(arena_.add_int(value));
  set(module, name, arena_.add_list(std::move(items)));
}

void Maker::tensor(Module& module, std::string_view name, graph::Shape shape, bool is_parameter) {
  if (Status status = graph::check_shape(shape, graph::DType::kF32); !status.ok())
    return fail(module, status.error().message);
  elements_ += graph::elements(shape);
  if (elements_ > kMaxElements)
    return fail(module, fmt::format("more than {} parameters", kMaxElements));
  module.tensors.push_back(
      {std::string(name), {graph::DType::kF32, std::move(shape)}, std::nullopt, is_parameter});
}

void Maker::fail(const Module& module, std::string why) {
  if (status_.ok()) status_ = error(Code::kInvalid, "{}: {}", module.where(), why);
}

}  // namespace ferry::import::torch

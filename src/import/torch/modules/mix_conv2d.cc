// MixConv2d: convolutions of several kernel sizes side by side, joined, normalised, activated.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "import/torch/maker.h"
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::ValueId;

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  const Module* convs = module.child("m");
  if (convs == nullptr) return error(Code::kInvalid, "has no 'm'");
  std::vector<ValueId> parts;
  for (const auto& [name, conv] : convs->children) {
    FERRY_TRY(part, walker.run(*conv, x));
    parts.push_back(part);
  }
  FERRY_TRY(joined, walker.concat(module.path + ".cat", std::move(parts)));
  FERRY_TRY(normal, walker.run_child(module, "bn", joined));
  FERRY_TRY(y, walker.run_child(module, "act", normal));
  // Releases before v6.1 added the input; nothing in a checkpoint says so but the activation of
  // that time.
  const Module* act = module.child("act");
  const bool is_residual = act != nullptr && short_name(act->class_name) == "LeakyReLU";
  return is_residual ? walker.add(module.path + ".add", x, y) : Result<ValueId>(y);
}

// Channels of each kernel size. Equal shares, in the way that upstream's linspace(0, n - 1e-6,
// c2).floor() counts; or equal numbers of weights: shares proportional to 1 / k^2.
std::vector<int64_t> shares(int64_t channels, const std::vector<int64_t>& kernels,
                            bool equal_channels) {
  const auto n = static_cast<double>(kernels.size());
  std::vector<int64_t> result(kernels.size(), 0);
  if (equal_channels) {
    for (int64_t i = 0; i < channels; ++i) {
      const double at =
          channels > 1 ? static_cast<double>(i) * (n - 1e-6) / static_cast<double>(channels - 1)
                       : 0.0;
      ++result[std::min(static_cast<size_t>(at), kernels.size() - 1)];
    }
    return result;
  }
  double total = 0;
  for (const int64_t k : kernels) total += 1.0 / static_cast<double>(k * k);
  for (size_t i = 0; i < kernels.size(); ++i) {
    const double share =
        static_cast<double>(channels) / static_cast<double>(kernels[i] * kernels[i]) / total;
    result[i] = static_cast<int64_t>(std::nearbyint(share));
  }
  return result;
}

// MixConv2d(c1, c2, k=(1, 3), s=1, equal_ch=True)
Status make(Maker& maker, Module& module, const MakeArgs& args) {
  FERRY_TRY(kernels, args.integers(0, {1, 3}));
  FERRY_TRY(stride, args.integer(1, 1));
  FERRY_TRY(equal, args.boolean(2, true));
  for (const int64_t k : kernels) {
    if (k < 1 || k > 255) return error(Code::kInvalid, "{}: a kernel of {}", module.where(), k);
  }
  if (kernels.empty() || args.c2 > (1 << 20))
    return error(Code::kInvalid, "{}: no kernels", module.where());
  const auto channels = shares(args.c2, kernels, equal);
  Module& convs = maker.child(module, "m", "torch.nn.modules.container.ModuleList");
  for (size_t i = 0; i < kernels.size(); ++i) {
    const int64_t k = kernels[i];
    // Releases up to v6.0 had no groups.
    const int64_t groups = maker.has_old_csp_activation() ? 1 : std::gcd(args.c1, channels[i]);
    maker.conv2d(convs, fmt::format("{}", i), args.c1, channels[i],
                 {.kernel = {k, k},
                  .stride = {stride, stride},
                  .padding = Pair{k / 2, k / 2},
                  .groups = groups});
  }
  maker.batch_norm(maker.child(module, "bn", "torch.nn.modules.batchnorm.BatchNorm2d"), args.c2);
  maker.csp_activation(module, "act");
  return maker.status();
}

constexpr ModuleClass kClasses[] = {{"MixConv2d", Yaml::kScaled}};

}  // namespace

extern const ModuleDef module_mix_conv2d;
const ModuleDef module_mix_conv2d = {.classes = kClasses, .build = build, .make = make};

}  // namespace ferry::import::torch

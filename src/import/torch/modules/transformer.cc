// TransformerBlock and TransformerLayer (of C3TR): every pixel is a token. Upstream works on
// [tokens, batch, channels]; here it is [batch, tokens, channels], which is the same arithmetic.
#include <cmath>

#include "import/torch/maker.h"
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::Ints;
using graph::Shape;
using graph::Tensor;
using graph::ValueId;

Result<ValueId> linear(Walker& walker, const Module& module, ValueId x) {
  FERRY_TRY(weight, walker.constant(module, "weight"));
  FERRY_TRY(bias, walker.optional_constant(module, "bias"));
  return walker.op("linear", module.path, {x, weight, bias});
}

Result<ValueId> build_linear(Walker& walker, const Module& module,
                             std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  return linear(walker, module, x);
}

// nn.MultiheadAttention of query, key and value, each [batch, tokens, channels], without masks.
Result<ValueId> attention(Walker& walker, const Module& module, const ValueId (&qkv)[3]) {
  const std::string& path = module.path;
  if (module.tensor("in_proj_weight") == nullptr || module.tensor("bias_k") != nullptr) {
    return error(Code::kUnsupported, "{}: separate projections or extra biases", module.where());
  }
  FERRY_TRY(zero_attention, module.bool_attribute("add_zero_attn", false));
  if (zero_attention) return error(Code::kUnsupported, "{}: add_zero_attn", module.where());
  const Module* out_proj = module.child("out_proj");
  if (out_proj == nullptr) return error(Code::kInvalid, "{}: has no out_proj", module.where());

  const int64_t channels = walker.shape(qkv[0])[2];
  FERRY_TRY(heads, module.int_attribute("num_heads", 1));
  if (heads < 1 || channels % heads != 0) {
    return error(Code::kInvalid, "{}: {} channels do not divide into {} heads", module.where(),
                 channels, heads);
  }
  FERRY_TRY(weight, walker.constant(module, "in_proj_weight"));
  FERRY_TRY(bias, walker.optional_constant(module, "in_proj_bias"));
  if (walker.shape(weight) != Shape{3 * channels, channels}) {
    return error(Code::kInvalid, "{}: in_proj_weight is {}", module.where(),
                 graph::shape_text(walker.shape(weight)));
  }
  // One projection each for query, key and value: thirds of in_proj, split into heads: [batch,
  // heads, tokens, depth].
  ValueId projected[3];
  constexpr std::string_view kNames[] = {"query", "key", "value"};
  for (int64_t i = 0; i < 3; ++i) {
    const std::string name = fmt::format("{}.{}", path, kNames[i]);
    const graph::Attrs third = {
        {"starts", Ints{i * channels}}, {"ends", Ints{(i + 1) * channels}}, {"axes", Ints{0}}};
    FERRY_TRY(w, walker.op("slice", name + ".weight", {weight}, third));
    ValueId b = graph::kNone;
    if (bias != graph::kNone) {
      FERRY_TRY(sliced, walker.op("slice", name + ".bias", {bias}, third));
      b = sliced;
    }
    FERRY_TRY(flat, walker.op("linear", name, {qkv[i], w, b}));
    FERRY_TRY(split, walker.op("reshape", name + ".split", {flat},
                               {{"shape", Ints{0, -1, heads, channels / heads}}}));
    const Ints perm = i == 1 ? Ints{0, 2, 3, 1} : Ints{0, 2, 1, 3};  // the key comes transposed
    FERRY_TRY(headed, walker.op("transpose", name + ".heads", {split}, {{"perm", perm}}));
    projected[i] = headed;
  }
  const auto factor = static_cast<float>(1.0 / std::sqrt(static_cast<double>(channels / heads)));
  const ValueId scale = walker.constant(path + ".scale", Tensor::of<float>({1}, {factor}));
  FERRY_TRY(scaled, walker.op("mul", path + ".scaled", {projected[0], scale}));
  FERRY_TRY(scores, walker.op("matmul", path + ".scores", {scaled, projected[1]}));
  FERRY_TRY(shares, walker.op("softmax", path + ".softmax", {scores}, {{"axis", int64_t{-1}}}));
  FERRY_TRY(mixed, walker.op("matmul", path + ".mixed", {shares, projected[2]}));
  FERRY_TRY(turned,
            walker.op("transpose", path + ".turned", {mixed}, {{"perm", Ints{0, 2, 1, 3}}}));
  FERRY_TRY(joined,
            walker.op("reshape", path + ".joined", {turned}, {{"shape", Ints{0, -1, channels}}}));
  return linear(walker, *out_proj, joined);
}

// x = attention(q(x), k(x), v(x)) + x;  x = fc2(fc1(x)) + x
Result<ValueId> build_layer(Walker& walker, const Module& module, ValueId x) {
  const bool is_normed = module.child("ln1") != nullptr || module.child("norm1") != nullptr;
  if (is_normed) return error(Code::kUnsupported, "{}: layer norms", module.where());
  const Module* ma = module.child("ma");
  if (ma == nullptr) return error(Code::kInvalid, "{}: has no 'ma'", module.where());
  FERRY_TRY(q, walker.run_child(module, "q", x));
  FERRY_TRY(k, walker.run_child(module, "k", x));
  FERRY_TRY(v, walker.run_child(module, "v", x));
  FERRY_TRY(attended, attention(walker, *ma, {q, k, v}));
  FERRY_TRY(y, walker.add(module.path + ".add1", attended, x));
  FERRY_TRY(hidden, walker.run_child(module, "fc1", y));
  FERRY_TRY(z, walker.run_child(module, "fc2", hidden));
  return walker.add(module.path + ".add2", z, y);
}

Result<ValueId> build_block(Walker& walker, const Module& module, ValueId input) {
  FERRY_TRY(x, walker.run_optional(module, "conv", input));
  if (walker.shape(x).size() != 4)
    return error(Code::kInvalid, "input is {}", graph::shape_text(walker.shape(x)));
  const std::string& path = module.path;
  FERRY_TRY(flat, walker.op("reshape", path + ".flat", {x}, {{"shape", Ints{0, 0, -1}}}));
  FERRY_TRY(tokens, walker.op("transpose", path + ".tokens", {flat}, {{"perm", Ints{0, 2, 1}}}));
  FERRY_TRY(position, walker.run_child(module, "linear", tokens));
  FERRY_TRY(placed, walker.add(path + ".add", tokens, position));
  FERRY_TRY(y, walker.run_child(module, "tr", placed));
  FERRY_TRY(turned, walker.op("transpose", path + ".channels", {y}, {{"perm", Ints{0, 2, 1}}}));
  return walker.op("reshape", path + ".picture", {turned, x}, {{"shape", Ints{0, 0, -2, -2}}});
}

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  const std::string_view name = short_name(module.class_name);
  if (name == "Linear") return build_linear(walker, module, inputs);
  FERRY_TRY(x, only_input(inputs));
  return name == "TransformerLayer" ? build_layer(walker, module, x)
                                    : build_block(walker, module, x);
}

// TransformerBlock(c1, c2, num_heads, num_layers) with 4 heads, as C3TR makes it; the layers are
// args.n.
Status make(Maker& maker, Module& module, const MakeArgs& args) {
  constexpr int64_t kHeads = 4;
  const int64_t c = args.c2;
  if (args.c1 != c) maker.conv_block(module, "conv", args.c1, c);
  maker.linear(maker.child(module, "linear", "torch.nn.modules.linear.Linear"), c, c, true);
  Module& layers = maker.child(module, "tr", "torch.nn.modules.container.Sequential");
  for (int64_t i = 0; i < args.n && maker.status().ok(); ++i) {
    Module& layer = maker.child(layers, fmt::format("{}", i), "models.common.TransformerLayer");
    for (const std::string_view name : {"q", "k", "v"}) {
      maker.linear(maker.child(layer, name, "torch.nn.modules.linear.Linear"), c, c, false);
    }
    Module& ma = maker.child(layer, "ma", "torch.nn.modules.activation.MultiheadAttention");
    maker.set(ma, "num_heads", kHeads);
    maker.tensor(ma, "in_proj_weight", {3 * c, c});
    maker.tensor(ma, "in_proj_bias", {3 * c});
    maker.linear(
        maker.child(ma, "out_proj", "torch.nn.modules.linear.NonDynamicallyQuantizableLinear"), c,
        c, true);
    maker.linear(maker.child(layer, "fc1", "torch.nn.modules.linear.Linear"), c, c, false);
    maker.linear(maker.child(layer, "fc2", "torch.nn.modules.linear.Linear"), c, c, false);
  }
  return maker.status();
}

constexpr ModuleClass kClasses[] = {{"TransformerBlock"}, {"TransformerLayer"}, {"Linear"}};

}  // namespace

extern const ModuleDef module_transformer;
const ModuleDef module_transformer = {.classes = kClasses, .build = build, .make = make};

}  // namespace ferry::import::torch

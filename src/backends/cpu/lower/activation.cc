// Activations that no pass could fuse into the op before them.
#include "backends/cpu/kernels/activation.h"

#include "backends/cpu/kernels/eltwise.h"
#include "backends/cpu/lowering.h"

namespace ferry::cpu {
namespace {

struct NamedActivation {
  std::string_view name;
  ActivationKind kind;
};
// The names of the activation ops (src/ops), as the attribute `activation` uses them too.
constexpr NamedActivation kNames[] = {
    {"none", ActivationKind::kNone},           {"silu", ActivationKind::kSilu},
    {"sigmoid", ActivationKind::kSigmoid},     {"relu", ActivationKind::kRelu},
    {"relu6", ActivationKind::kRelu6},         {"leaky_relu", ActivationKind::kLeakyRelu},
    {"hardswish", ActivationKind::kHardSwish}, {"mish", ActivationKind::kMish},
    {"gelu", ActivationKind::kGelu},           {"tanh", ActivationKind::kTanh},
};

constexpr std::string_view kOps[] = {"silu",      "sigmoid", "relu", "relu6", "leaky_relu",
                                     "hardswish", "mish",    "gelu", "tanh"};

double alpha_of(const NodeRef& node) { return node.has("alpha") ? node.real("alpha") : 0.0; }

bool accepts(const NodeRef& node) {
  return is_picture(*node.input(0)) && is_picture(node.output(0)) &&
         activation_of(node.op(), alpha_of(node)).has_value();
}

int in_place(const NodeRef&) { return 0; }

class ActivationStep final : public Step {
 public:
  ActivationStep(Activation activation, PictureRef x, PictureRef y, Isa isa)
      : activation_(activation), x_(x), y_(y), isa_(isa) {
    kernel = std::string(activation_name(activation.kind)) + " " + isa_name(float_isa(isa));
  }
  void run(const RunArgs& args) const override {
    convert(x_.stored(args.arena), nullptr, activation_, y_.stored(args.arena), isa_, args.pool);
  }

 private:
  Activation activation_;
  PictureRef x_, y_;
  Isa isa_;
};

std::unique_ptr<Step> lower(const NodeRef& node, LowerContext& context) {
  return std::make_unique<ActivationStep>(*activation_of(node.op(), alpha_of(node)),
                                          context.picture(node.inputs()[0]),
                                          context.picture(node.outputs()[0]), context.isa());
}

}  // namespace

std::optional<Activation> activation_of(std::string_view name, double alpha) {
  for (const NamedActivation& row : kNames) {
    if (row.name == name) return Activation{row.kind, static_cast<float>(alpha)};
  }
  return std::nullopt;
}

extern const Lowering lowering_activation;
const Lowering lowering_activation = {
    .ops = kOps, .accepts = accepts, .in_place = in_place, .lower = lower};

}  // namespace ferry::cpu

// add (of any storages) and mul (of floats) of two pictures of the same shape, with a fused
// activation where the op has one.
#include <algorithm>

#include "backends/cpu/kernels/eltwise.h"
#include "backends/cpu/lowering.h"

namespace ferry::cpu {
namespace {

constexpr std::string_view kOps[] = {"add", "mul"};

std::optional<Activation> fused(const NodeRef& node) {
  if (!node.has("activation")) return Activation{};
  return activation_of(node.string("activation"), node.real("alpha"));
}

bool accepts(const NodeRef& node) {
  const ferry_value& a = *node.input(0);
  const ferry_value& b = *node.input(1);
  const auto usable = node.op() == "add" ? is_picture : is_float_picture;
  return usable(a) && usable(b) && usable(node.output(0)) && std::ranges::equal(dims(a), dims(b)) &&
         fused(node).has_value();
}

int in_place(const NodeRef&) { return 0; }

class BinaryStep final : public Step {
 public:
  BinaryStep(bool sum, Activation activation, PictureRef a, PictureRef b, PictureRef y, Isa isa)
      : sum_(sum), activation_(activation), a_(a), b_(b), y_(y), isa_(isa) {
    kernel = std::string(sum ? "add " : "multiply ") + isa_name(float_isa(isa));
  }
  void run(const RunArgs& args) const override {
    if (!sum_) {
      return multiply(a_.in(args.arena), b_.in(args.arena), activation_, y_.in(args.arena), isa_,
                      args.pool);
    }
    const StoredView b = b_.stored(args.arena);
    convert(a_.stored(args.arena), &b, activation_, y_.stored(args.arena), isa_, args.pool);
  }

 private:
  bool sum_;
  Activation activation_;
  PictureRef a_, b_, y_;
  Isa isa_;
};

std::unique_ptr<Step> lower(const NodeRef& node, LowerContext& context) {
  return std::make_unique<BinaryStep>(
      node.op() == "add", *fused(node), context.picture(node.inputs()[0]),
      context.picture(node.inputs()[1]), context.picture(node.outputs()[0]), context.isa());
}

}  // namespace

extern const Lowering lowering_binary;
const Lowering lowering_binary = {
    .ops = kOps, .accepts = accepts, .in_place = in_place, .lower = lower};

}  // namespace ferry::cpu

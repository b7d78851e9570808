// max_pool2d over pictures.
#include "backends/cpu/kernels/pool.h"
#include "backends/cpu/lowering.h"

namespace ferry::cpu {
namespace {

constexpr std::string_view kOps[] = {"max_pool2d"};

bool accepts(const NodeRef& node) {
  const auto dilations = node.integers("dilations");
  return is_picture(*node.input(0)) && is_picture(node.output(0)) && dilations[0] == 1 &&
         dilations[1] == 1;
}

class MaxPoolStep final : public Step {
 public:
  MaxPoolStep(const PoolShape& shape, PictureRef x, PictureRef y, Isa isa, int threads)
      : shape_(shape), x_(x), y_(y), isa_(isa) {
    kernel = std::string("max_pool2d ") + isa_name(float_isa(isa));
    scratch_bytes = max_pool2d_scratch_bytes(shape, y.w, threads);
  }
  void run(const RunArgs& args) const override {
    max_pool2d(shape_, x_.stored(args.arena), y_.stored(args.arena), args.scratch, isa_, args.pool);
  }

 private:
  PoolShape shape_;
  PictureRef x_, y_;
  Isa isa_;
};

std::unique_ptr<Step> lower(const NodeRef& node, LowerContext& context) {
  const auto kernel = node.integers("kernel"), strides = node.integers("strides"),
             pads = node.integers("pads");
  const PoolShape shape{.kernel_h = kernel[0],
                        .kernel_w = kernel[1],
                        .stride_h = strides[0],
                        .stride_w = strides[1],
                        .pad_top = pads[0],
                        .pad_left = pads[1]};
  return std::make_unique<MaxPoolStep>(shape, context.picture(node.inputs()[0]),
                                       context.picture(node.outputs()[0]), context.isa(),
                                       context.pool().threads());
}

}  // namespace

extern const Lowering lowering_max_pool2d;
const Lowering lowering_max_pool2d = {
    .ops = kOps, .accepts = accepts, .in_place = nullptr, .lower = lower};

}  // namespace ferry::cpu

// resize by a whole factor, nearest: what YOLO's Upsample does. Other resizes go to the reference
// loops.
#include <cmath>

#include "backends/cpu/kernels/pool.h"
#include "backends/cpu/lowering.h"

namespace ferry::cpu {
namespace {

constexpr std::string_view kOps[] = {"resize"};

// With a whole factor these pairs all take input pixel floor(output / factor): asymmetric
// coordinates rounded down, and half-pixel ones rounded to the nearest (ties do not occur, or fall
// to the lower pixel).
bool takes_floor(std::string_view coordinates, std::string_view nearest) {
  if (coordinates == "asymmetric") return nearest == "floor";
  return coordinates == "half_pixel" && nearest == "round_prefer_floor";
}

bool accepts(const NodeRef& node) {
  const ferry_value& x = *node.input(0);
  if (!is_picture(x) || !same_storage(x, node.output(0)) || node.string("mode") != "nearest")
    return false;
  const auto in = dims(x), out = dims(node.output(0));
  if (out[2] % in[2] != 0 || out[3] % in[3] != 0) return false;
  // A fractional scale may floor to a whole multiple; then the pixels are not the whole factor's.
  const auto scales = node.reals("scales");
  for (size_t axis = 0; axis < scales.size(); ++axis) {
    if (scales[axis] != static_cast<double>(out[axis + 2] / in[axis + 2])) return false;
  }
  return takes_floor(node.string("coordinates"), node.string("nearest_mode"));
}

class UpsampleStep final : public Step {
 public:
  UpsampleStep(PictureRef x, PictureRef y, Isa isa) : x_(x), y_(y), isa_(isa) {
    kernel = std::string("upsample ") + isa_name(float_isa(isa));
  }
  void run(const RunArgs& args) const override {
    upsample_nearest(y_.h / x_.h, y_.w / x_.w, x_.stored(args.arena), y_.stored(args.arena), isa_,
                     args.pool);
  }

 private:
  PictureRef x_, y_;
  Isa isa_;
};

std::unique_ptr<Step> lower(const NodeRef& node, LowerContext& context) {
  return std::make_unique<UpsampleStep>(context.picture(node.inputs()[0]),
                                        context.picture(node.outputs()[0]), context.isa());
}

}  // namespace

extern const Lowering lowering_resize;
const Lowering lowering_resize = {
    .ops = kOps, .accepts = accepts, .in_place = nullptr, .lower = lower};

}  // namespace ferry::cpu

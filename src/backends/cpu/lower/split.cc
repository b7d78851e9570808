// split along the channels: the outputs are slices of the input, unless the placement had to keep
// them apart.
#include <vector>

#include "backends/cpu/moves.h"

namespace ferry::cpu {
namespace {

constexpr std::string_view kOps[] = {"split"};

bool accepts(const NodeRef& node) {
  const int64_t axis = node.integer("axis");
  return (axis == 1 || axis == -3) && is_picture(*node.input(0));
}

std::unique_ptr<Step> lower(const NodeRef& node, LowerContext& context) {
  const PictureRef whole = context.picture(node.inputs()[0]);
  std::vector<Move> moves;
  int64_t channel = 0;
  for (const int32_t output : node.outputs()) {
    const PictureRef part = context.picture(output);
    moves.push_back({slice(whole, channel, part.c), part});
    channel += part.c;
  }
  return move_step(std::move(moves), context);
}

}  // namespace

extern const Lowering lowering_split;
const Lowering lowering_split = {
    .ops = kOps, .accepts = accepts, .in_place = nullptr, .lower = lower};

}  // namespace ferry::cpu

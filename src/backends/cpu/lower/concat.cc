// concat along the channels: the placement has put most inputs where they belong; what is left is
// copied.
#include <vector>

#include "backends/cpu/moves.h"

namespace ferry::cpu {
namespace {

constexpr std::string_view kOps[] = {"concat"};

bool accepts(const NodeRef& node) {
  const int64_t axis = node.integer("axis");
  if (axis != 1 && axis != -3) return false;
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    if (node.input(i) == nullptr || !is_picture(*node.input(i))) return false;
  }
  return is_picture(node.output(0));
}

std::unique_ptr<Step> lower(const NodeRef& node, LowerContext& context) {
  const PictureRef whole = context.picture(node.outputs()[0]);
  std::vector<Move> moves;
  int64_t channel = 0;
  for (const int32_t input : node.inputs()) {
    const PictureRef part = context.picture(input);
    moves.push_back({part, slice(whole, channel, part.c)});
    channel += part.c;
  }
  return move_step(std::move(moves), context);
}

}  // namespace

extern const Lowering lowering_concat;
const Lowering lowering_concat = {
    .ops = kOps, .accepts = accepts, .in_place = nullptr, .lower = lower};

}  // namespace ferry::cpu

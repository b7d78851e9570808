// identity between storages: what a quantized graph converts with. Where nothing changes, a copy,
// or nothing at all.
#include "backends/cpu/moves.h"

namespace ferry::cpu {
namespace {

constexpr std::string_view kOps[] = {"identity"};

bool accepts(const NodeRef& node) {
  return is_picture(*node.input(0)) && is_picture(node.output(0));
}

int in_place(const NodeRef&) { return 0; }

std::unique_ptr<Step> lower(const NodeRef& node, LowerContext& context) {
  return move_step({{context.picture(node.inputs()[0]), context.picture(node.outputs()[0])}},
                   context);
}

}  // namespace

extern const Lowering lowering_identity;
const Lowering lowering_identity = {
    .ops = kOps, .accepts = accepts, .in_place = in_place, .lower = lower};

}  // namespace ferry::cpu

// silu: x * sigmoid(x).
#include "ops/support/activation_op.h"

namespace ferry::ops {

using namespace graph;

namespace {

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,5,7]
      const scale: f32[1] = full(5)
      wide = mul(x, scale)
      y = silu(wide)
      output y
    })"},
};

}  // namespace

extern const OpDef op_silu;
const OpDef op_silu = activation_op("silu", "x * sigmoid(x)", kCases);

}  // namespace ferry::ops

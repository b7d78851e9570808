// relu6: min(max(x, 0), 6).
#include "ops/support/activation_op.h"

namespace ferry::ops {

using namespace graph;

namespace {

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,5,7]
      const scale: f32[1] = full(5)
      wide = mul(x, scale)
      y = relu6(wide)
      output y
    })"},
};

}  // namespace

extern const OpDef op_relu6;
const OpDef op_relu6 = activation_op("relu6", "min(max(x, 0), 6)", kCases);

}  // namespace ferry::ops

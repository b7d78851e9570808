// hardswish: x * min(max(x + 3, 0), 6) / 6.
#include "ops/support/activation_op.h"

namespace ferry::ops {

using namespace graph;

namespace {

const OnnxRow kOnnx[] = {{"HardSwish"}};

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,5,7]
      const scale: f32[1] = full(5)
      wide = mul(x, scale)
      y = hardswish(wide)
      output y
    })"},
};

}  // namespace

extern const OpDef op_hardswish;
const OpDef op_hardswish =
    activation_op("hardswish", "x * min(max(x + 3, 0), 6) / 6", kCases, kOnnx);

}  // namespace ferry::ops

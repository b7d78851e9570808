// mish: x * tanh(ln(1 + e^x)).
#include "ops/support/activation_op.h"

namespace ferry::ops {

using namespace graph;

namespace {

const OnnxRow kOnnx[] = {{"Mish"}};

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,5,7]
      const scale: f32[1] = full(5)
      wide = mul(x, scale)
      y = mish(wide)
      output y
    })"},
};

}  // namespace

extern const OpDef op_mish;
const OpDef op_mish = activation_op("mish", "x * tanh(ln(1 + e^x))", kCases, kOnnx);

}  // namespace ferry::ops

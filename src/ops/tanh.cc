// tanh: hyperbolic tangent.
#include "ops/support/activation_op.h"

namespace ferry::ops {

using namespace graph;

namespace {

const OnnxRow kOnnx[] = {{"Tanh"}};

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,5,7]
      const scale: f32[1] = full(5)
      wide = mul(x, scale)
      y = tanh(wide)
      output y
    })"},
};

}  // namespace

extern const OpDef op_tanh;
const OpDef op_tanh = activation_op("tanh", "hyperbolic tangent", kCases, kOnnx);

}  // namespace ferry::ops

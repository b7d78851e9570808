// relu: max(x, 0).
#include "ops/support/activation_op.h"

namespace ferry::ops {

using namespace graph;

namespace {

const OnnxRow kOnnx[] = {{"Relu"}};

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,5,7]
      const scale: f32[1] = full(5)
      wide = mul(x, scale)
      y = relu(wide)
      output y
    })"},
};

}  // namespace

extern const OpDef op_relu;
const OpDef op_relu = activation_op("relu", "max(x, 0)", kCases, kOnnx);

}  // namespace ferry::ops

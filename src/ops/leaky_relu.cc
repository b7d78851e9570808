// leaky_relu: x where x > 0, else alpha * x.
#include "ops/support/activation_op.h"
#include "ops/support/onnx.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {{"alpha", 0.01, "slope below zero"}};

Result<Converted> from_onnx(const ForeignNode& node) {
  return with_inputs(node, 1, {{"alpha", node.float_or("alpha", 0.01)}});
}

const OnnxRow kOnnx[] = {{"LeakyRelu", from_onnx}};

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,5,7]
      const scale: f32[1] = full(5)
      wide = mul(x, scale)
      y = leaky_relu(wide) alpha=0.1
      output y
    })"},
};

}  // namespace

extern const OpDef op_leaky_relu;
const OpDef op_leaky_relu =
    activation_op("leaky_relu", "x where x > 0, else alpha * x", kCases, kOnnx, kAttrs);

}  // namespace ferry::ops

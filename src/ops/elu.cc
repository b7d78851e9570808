// elu: x where x > 0, else alpha * (e^x - 1).
#include "ops/support/activation_op.h"
#include "ops/support/onnx.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {{"alpha", 1.0, "the limit below zero, negated"}};

Result<Converted> from_onnx(const ForeignNode& node) {
  return with_inputs(node, 1, {{"alpha", node.float_or("alpha", 1.0)}});
}

const OnnxRow kOnnx[] = {{"Elu", from_onnx}};

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,5,7]
      const scale: f32[1] = full(5)
      wide = mul(x, scale)
      y = elu(wide) alpha=0.7
      output y
    })"},
};

}  // namespace

extern const OpDef op_elu;
const OpDef op_elu =
    activation_op("elu", "x where x > 0, else alpha * (e^x - 1)", kCases, kOnnx, kAttrs);

}  // namespace ferry::ops

// hardsigmoid: min(max(x + 3, 0), 6) / 6.
#include <cmath>

#include "ops/support/activation_op.h"
#include "ops/support/onnx.h"

namespace ferry::ops {

using namespace graph;

namespace {

// ONNX lets the line have any slope; exporters write PyTorch's 1/6, but the default is 0.2.
Result<Converted> from_onnx(const ForeignNode& node) {
  const double alpha = node.float_or("alpha", 0.2), beta = node.float_or("beta", 0.5);
  if (std::fabs(alpha - 1.0 / 6.0) < 1e-6 && beta == 0.5) return with_inputs(node, 1);
  Converted out = with_inputs(node, 1, {{"alpha", alpha}, {"beta", beta}});
  out.op = "clipped_line";
  return out;
}

const OnnxRow kOnnx[] = {{"HardSigmoid", from_onnx}};

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,5,7]
      const scale: f32[1] = full(5)
      wide = mul(x, scale)
      y = hardsigmoid(wide)
      output y
    })"},
};

}  // namespace

extern const OpDef op_hardsigmoid;
const OpDef op_hardsigmoid =
    activation_op("hardsigmoid", "min(max(x + 3, 0), 6) / 6", kCases, kOnnx);

}  // namespace ferry::ops

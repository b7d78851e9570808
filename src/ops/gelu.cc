// gelu: x / 2 * (1 + erf(x / sqrt(2))).
#include "ops/support/activation_op.h"
#include "ops/support/onnx.h"

namespace ferry::ops {

using namespace graph;

namespace {

Result<Converted> from_onnx(const ForeignNode& node) {
  const std::string approximate = node.string_or("approximate", "none");
  if (approximate != "none") {
    return error(Code::kUnsupported, "approximate=\"{}\" is not supported, only \"none\"",
                 approximate);
  }
  return with_inputs(node, 1);
}

const OnnxRow kOnnx[] = {{"Gelu", from_onnx}};

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,5,7]
      const scale: f32[1] = full(5)
      wide = mul(x, scale)
      y = gelu(wide)
      output y
    })"},
};

}  // namespace

extern const OpDef op_gelu;
const OpDef op_gelu = activation_op("gelu", "x / 2 * (1 + erf(x / sqrt(2)))", kCases, kOnnx);

}  // namespace ferry::ops

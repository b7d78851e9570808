// clipped_line: min(max(alpha * x + beta, 0), 1). ONNX HardSigmoid with slopes other than
// hardsigmoid's 1/6.
#include <algorithm>

#include "ops/support/elementwise.h"
#include "ops/support/onnx_form.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {
    {"alpha", 0.2, "slope"},
    {"beta", 0.5, "value at zero"},
};

Status eval(const EvalArgs& args) {
  const auto alpha = static_cast<float>(attr<double>(args.node, "alpha"));
  const auto beta = static_cast<float>(attr<double>(args.node, "beta"));
  return eval_f32_map(args, [=](float x) { return std::clamp(alpha * x + beta, 0.0f, 1.0f); });
}

Status to_onnx(OnnxForm& form) {
  return write_as(
      form, "HardSigmoid",
      {{"alpha", attr<double>(form.node(), "alpha")}, {"beta", attr<double>(form.node(), "beta")}});
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,5]
      y = clipped_line(x) alpha=0.3 beta=0.4
      output y
    })"},
};

}  // namespace

extern const OpDef op_clipped_line;
const OpDef op_clipped_line = {
    .name = "clipped_line",
    .summary = "min(max(alpha * x + beta, 0), 1)",
    .attrs = kAttrs,
    .infer = infer_f32_map,
    .eval = eval,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

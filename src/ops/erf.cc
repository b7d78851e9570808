// erf: error function.
#include <cmath>

#include "ops/support/elementwise.h"

namespace ferry::ops {

using namespace graph;

namespace {

Status eval(const EvalArgs& args) {
  return eval_f32_map(args, [](float x) { return std::erf(x); });
}

const OnnxRow kOnnx[] = {{"Erf"}};

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,4,5]
      y = erf(x)
      output y
    })"},
};

}  // namespace

extern const OpDef op_erf;
const OpDef op_erf = {
    .name = "erf",
    .summary = "error function",
    .infer = infer_f32_map,
    .eval = eval,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

// exp: e to the power of x.
#include <cmath>

#include "ops/support/elementwise.h"

namespace ferry::ops {

using namespace graph;

namespace {

Status eval(const EvalArgs& args) {
  return eval_f32_map(args, [](float x) { return std::exp(x); });
}

const OnnxRow kOnnx[] = {{"Exp"}};

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,4,5]
      y = exp(x)
      output y
    })"},
};

}  // namespace

extern const OpDef op_exp;
const OpDef op_exp = {
    .name = "exp",
    .summary = "e to the power of x",
    .infer = infer_f32_map,
    .eval = eval,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

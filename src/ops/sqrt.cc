// sqrt: square root.
#include <cmath>

#include "ops/support/elementwise.h"

namespace ferry::ops {

using namespace graph;

namespace {

Status eval(const EvalArgs& args) {
  return eval_f32_map(args, [](float x) { return std::sqrt(x); });
}

const OnnxRow kOnnx[] = {{"Sqrt"}};

const OpCase kCases[] = {
    {R"(graph {
      input signed: f32[2,3,4,5]
      const two: f32[1] = {2}
      x = add(signed, two)
      y = sqrt(x)
      output y
    })"},
};

}  // namespace

extern const OpDef op_sqrt;
const OpDef op_sqrt = {
    .name = "sqrt",
    .summary = "square root",
    .infer = infer_f32_map,
    .eval = eval,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

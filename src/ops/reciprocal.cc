// reciprocal: 1 / x.
#include <cmath>

#include "ops/support/elementwise.h"

namespace ferry::ops {

using namespace graph;

namespace {

Status eval(const EvalArgs& args) {
  return eval_f32_map(args, [](float x) { return 1.0f / x; });
}

const OnnxRow kOnnx[] = {{"Reciprocal"}};

const OpCase kCases[] = {
    {R"(graph {
      input signed: f32[2,3,4,5]
      const two: f32[1] = {2}
      x = add(signed, two)
      y = reciprocal(x)
      output y
    })"},
};

}  // namespace

extern const OpDef op_reciprocal;
const OpDef op_reciprocal = {
    .name = "reciprocal",
    .summary = "1 / x",
    .infer = infer_f32_map,
    .eval = eval,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

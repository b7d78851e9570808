// min: the smallest of its inputs under broadcasting.
#include "ops/support/elementwise.h"

namespace ferry::ops {

using namespace graph;

namespace {

Status eval(const EvalArgs& args) {
  return eval_arithmetic(args, []<class T>(T a, T b) { return b < a ? b : a; });
}

const OnnxRow kOnnx[] = {{"Min"}};

const OpCase kCases[] = {
    {R"(graph {
      input a: f32[2,3,4,5]
      input b: f32[2,3,4,5]
      y = min(a, b)
      output y
    })"},
    {R"(graph {
      input a: f32[2,3,4,5]
      const b: f32[3,1,1] = uniform(1, 0.5, 2)
      y = min(a, b)
      output y
    })"},
};

}  // namespace

extern const OpDef op_min;
const OpDef op_min = {
    .name = "min",
    .summary = "the smallest of its inputs with broadcasting",
    .min_inputs = 1,
    .max_inputs = -1,
    .infer = infer_arithmetic,
    .eval = eval,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

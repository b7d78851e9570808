// and: both of bools under broadcasting.
#include "ops/support/elementwise.h"

namespace ferry::ops {

using namespace graph;

namespace {

Status eval(const EvalArgs& args) {
  return eval_comparison(args, [](bool a, bool b) { return a && b; });
}

const OnnxRow kOnnx[] = {{"And"}};

const OpCase kCases[] = {
    {R"(graph {
      input a: f32[3,4]
      const zero: f32[] = {0}
      left = greater(a, zero)
      const right: bool[4] = {0, 1, 0, 1}
      y = and(left, right)
      output y
    })"},
};

}  // namespace

extern const OpDef op_and;
const OpDef op_and = {
    .name = "and",
    .summary = "both of bools",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_logic,
    .eval = eval,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

// equal: a == b under broadcasting, as bool.
#include "ops/support/elementwise.h"

namespace ferry::ops {

using namespace graph;

namespace {

Status eval(const EvalArgs& args) {
  return eval_comparison(args, [](auto a, auto b) { return a == b; });
}

const OnnxRow kOnnx[] = {{"Equal"}};

const OpCase kCases[] = {
    {R"(graph {
      input a: i64[3,4]
      const b: i64[4] = {0, 3, 5, 8}
      y = equal(a, b)
      output y
    })"},
    {R"(graph {
      input a: f32[3,4]
      const b: f32[] = {0}
      y = equal(a, b)
      output y
    })"},
};

}  // namespace

extern const OpDef op_equal;
const OpDef op_equal = {
    .name = "equal",
    .summary = "a == b, as bool",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_comparison,
    .eval = eval,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

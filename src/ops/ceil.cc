// ceil: the smallest integer not below x.
#include <cmath>

#include "ops/support/elementwise.h"

namespace ferry::ops {

using namespace graph;

namespace {

Status eval(const EvalArgs& args) {
  return eval_f32_map(args, [](float x) { return std::ceil(x); });
}

const OnnxRow kOnnx[] = {{"Ceil"}};

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,4,5]
      y = ceil(x)
      output y
    })"},
};

}  // namespace

extern const OpDef op_ceil;
const OpDef op_ceil = {
    .name = "ceil",
    .summary = "the smallest integer not below x",
    .infer = infer_f32_map,
    .eval = eval,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

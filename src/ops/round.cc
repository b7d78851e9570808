// round: the nearest integer, halves to the even one.
#include <cmath>

#include "ops/support/elementwise.h"

namespace ferry::ops {

using namespace graph;

namespace {

Status eval(const EvalArgs& args) {
  return eval_f32_map(args, [](float x) { return std::nearbyint(x); });
}

const OnnxRow kOnnx[] = {{"Round"}};

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,4,5]
      y = round(x)
      output y
    })"},
};

}  // namespace

extern const OpDef op_round;
const OpDef op_round = {
    .name = "round",
    .summary = "the nearest integer, halves to the even one",
    .infer = infer_f32_map,
    .eval = eval,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

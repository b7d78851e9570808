// floor: the largest integer not above x.
#include <cmath>

#include "ops/support/elementwise.h"

namespace ferry::ops {

using namespace graph;

namespace {

Status eval(const EvalArgs& args) {
  return eval_f32_map(args, [](float x) { return std::floor(x); });
}

const OnnxRow kOnnx[] = {{"Floor"}};

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,4,5]
      y = floor(x)
      output y
    })"},
};

}  // namespace

extern const OpDef op_floor;
const OpDef op_floor = {
    .name = "floor",
    .summary = "the largest integer not above x",
    .infer = infer_f32_map,
    .eval = eval,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

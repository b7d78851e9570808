// log: natural logarithm.
#include <cmath>

#include "ops/support/elementwise.h"

namespace ferry::ops {

using namespace graph;

namespace {

Status eval(const EvalArgs& args) {
  return eval_f32_map(args, [](float x) { return std::log(x); });
}

const OnnxRow kOnnx[] = {{"Log"}};

const OpCase kCases[] = {
    {R"(graph {
      input signed: f32[2,3,4,5]
      const two: f32[1] = {2}
      x = add(signed, two)
      y = log(x)
      output y
    })"},
};

}  // namespace

extern const OpDef op_log;
const OpDef op_log = {
    .name = "log",
    .summary = "natural logarithm",
    .infer = infer_f32_map,
    .eval = eval,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

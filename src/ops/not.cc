// not: the other bool.
#include "ops/support/elementwise.h"

namespace ferry::ops {

using namespace graph;

namespace {

Status eval(const EvalArgs& args) {
  const auto x = bool_bytes(*args.inputs[0]);
  const auto y = mut_bool_bytes(*args.outputs[0]);
  for (size_t i = 0; i < y.size(); ++i) y[i] = x[i] == 0;
  return {};
}

const OnnxRow kOnnx[] = {{"Not"}};

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[3,4]
      const zero: f32[] = {0}
      above = greater(x, zero)
      y = not(above)
      output y
    })"},
};

}  // namespace

extern const OpDef op_not;
const OpDef op_not = {
    .name = "not",
    .summary = "the other bool",
    .infer = infer_logic,
    .eval = eval,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

// abs: |x|.
#include <cmath>

#include "ops/support/elementwise.h"

namespace ferry::ops {

using namespace graph;

namespace {

Status eval(const EvalArgs& args) {
  return eval_number_map(args, []<class T>(T x) {
    if constexpr (std::is_integral_v<T>) {
      return x < 0 ? wrapping<T>(uint64_t{0} - static_cast<uint64_t>(x)) : x;
    } else {
      return std::fabs(x);
    }
  });
}

const OnnxRow kOnnx[] = {{"Abs"}};

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,4,5]
      y = abs(x)
      output y
    })"},
};

}  // namespace

extern const OpDef op_abs;
const OpDef op_abs = {
    .name = "abs",
    .summary = "|x|",
    .infer = infer_number_map,
    .eval = eval,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

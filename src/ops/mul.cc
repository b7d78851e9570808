// mul: a * b under broadcasting.
#include "ops/support/elementwise.h"

namespace ferry::ops {

using namespace graph;

namespace {

Status eval(const EvalArgs& args) {
  return eval_arithmetic(args, []<class T>(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return wrapping<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    } else {
      return a * b;
    }
  });
}

const OnnxRow kOnnx[] = {{"Mul"}};

const OpCase kCases[] = {
    {R"(graph {
      input a: f32[2,3,4,5]
      input b: f32[2,3,4,5]
      y = mul(a, b)
      output y
    })"},
    {R"(graph {
      input a: f32[2,3,4,5]
      const b: f32[3,1,1] = uniform(1, -1, 1)
      y = mul(a, b)
      output y
    })"},
};

}  // namespace

extern const OpDef op_mul;
const OpDef op_mul = {
    .name = "mul",
    .summary = "a * b with broadcasting",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_arithmetic,
    .eval = eval,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

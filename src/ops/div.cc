// div: a / b under broadcasting. Integers round toward zero; an integer zero as divisor is an
// error.
#include "ops/support/elementwise.h"

namespace ferry::ops {

using namespace graph;

namespace {

Status eval(const EvalArgs& args) {
  const Tensor& divisor = *args.inputs[1];
  if (is_integer(divisor.dtype())) {
    FERRY_TRY(values, divisor.to_ints());
    for (const int64_t value : values) {
      if (value == 0) return error(Code::kInvalid, "division by zero");
    }
  }
  return eval_arithmetic(args, []<class T>(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      // The smallest integer over -1 wraps instead of being undefined.
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) {
        return wrapping<T>(uint64_t{0} - static_cast<uint64_t>(a));
      }
      return static_cast<T>(a / b);
    } else {
      return a / b;
    }
  });
}

const OnnxRow kOnnx[] = {{"Div"}};

const OpCase kCases[] = {
    {R"(graph {
      input a: f32[2,3,4,5]
      const b: f32[2,3,4,5] = uniform(7, 0.5, 2)
      y = div(a, b)
      output y
    })"},
    {R"(graph {
      input a: f32[2,3,4,5]
      const b: f32[3,1,1] = uniform(1, 0.5, 2)
      y = div(a, b)
      output y
    })"},
};

}  // namespace

extern const OpDef op_div;
const OpDef op_div = {
    .name = "div",
    .summary = "a / b with broadcasting",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_arithmetic,
    .eval = eval,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

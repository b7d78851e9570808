// reduce_sum: the sum along axes.
#include "ops/support/onnx_form.h"
#include "ops/support/reduce.h"

namespace ferry::ops {

using namespace graph;

namespace {

Status eval(const EvalArgs& args) {
  return eval_reduce(
      args, []<class T>() { return T{0}; },
      []<class T>(T sum, T x) {
        if constexpr (std::is_integral_v<T>) {
          return wrapping<T>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(x));
        } else {
          return sum + x;
        }
      },
      [](auto sum, int64_t) { return sum; });
}

const OnnxRow kOnnx[] = {{"ReduceSum", reduce_from_onnx}};

Status to_onnx(OnnxForm& form) { return reduce_to_onnx(form, "ReduceSum", 13); }

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,4,5]
      y = reduce_sum(x) axes=[2,3]
      output y
    })"},
    {R"(graph {
      input x: f32[2,3,4]
      y = reduce_sum(x) axes=[-2] keepdims=0
      output y
    })"},
    {R"(graph {
      input x: f32[2,3,4]
      y = reduce_sum(x)
      output y
    })"},
};

}  // namespace

extern const OpDef op_reduce_sum;
const OpDef op_reduce_sum = {
    .name = "reduce_sum",
    .summary = "the sum along axes",
    .attrs = kReduceAttrs,
    .infer = infer_reduce,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

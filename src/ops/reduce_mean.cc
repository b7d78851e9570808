// reduce_mean: the mean along axes.
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
      []<class T>(T sum, int64_t count) { return sum / static_cast<T>(count); });
}

const OnnxRow kOnnx[] = {{"ReduceMean", reduce_from_onnx}};

Status to_onnx(OnnxForm& form) { return reduce_to_onnx(form, "ReduceMean", 18); }

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,4,5]
      y = reduce_mean(x) axes=[2,3]
      output y
    })"},
    {R"(graph {
      input x: f32[2,3,4]
      y = reduce_mean(x) axes=[-2] keepdims=0
      output y
    })"},
    {R"(graph {
      input x: f32[2,3,4]
      y = reduce_mean(x)
      output y
    })"},
};

}  // namespace

extern const OpDef op_reduce_mean;
const OpDef op_reduce_mean = {
    .name = "reduce_mean",
    .summary = "the mean along axes",
    .attrs = kReduceAttrs,
    .infer = infer_reduce,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

// reduce_max: the largest value along axes.
#include "ops/support/onnx_form.h"
#include "ops/support/reduce.h"

namespace ferry::ops {

using namespace graph;

namespace {

Status eval(const EvalArgs& args) {
  return eval_reduce(
      args,
      []<class T>() {
        return std::is_integral_v<T> ? std::numeric_limits<T>::min()
                                     : -std::numeric_limits<T>::infinity();
      },
      [](auto best, auto x) { return x > best ? x : best; },
      [](auto best, int64_t) { return best; });
}

const OnnxRow kOnnx[] = {{"ReduceMax", reduce_from_onnx}};

Status to_onnx(OnnxForm& form) { return reduce_to_onnx(form, "ReduceMax", 18); }

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,4,5]
      y = reduce_max(x) axes=[2,3]
      output y
    })"},
    {R"(graph {
      input x: f32[2,3,4]
      y = reduce_max(x) axes=[-2] keepdims=0
      output y
    })"},
    {R"(graph {
      input x: f32[2,3,4]
      y = reduce_max(x)
      output y
    })"},
};

}  // namespace

extern const OpDef op_reduce_max;
const OpDef op_reduce_max = {
    .name = "reduce_max",
    .summary = "the largest value along axes",
    .attrs = kReduceAttrs,
    .infer = infer_reduce,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

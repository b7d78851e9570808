// reduce_prod: the product along axes.
#include "ops/support/onnx_form.h"
#include "ops/support/reduce.h"

namespace ferry::ops {

using namespace graph;

namespace {

Status eval(const EvalArgs& args) {
  return eval_reduce(
      args, []<class T>() { return T{1}; },
      []<class T>(T product, T x) {
        if constexpr (std::is_integral_v<T>) {
          return wrapping<T>(static_cast<uint64_t>(product) * static_cast<uint64_t>(x));
        } else {
          return product * x;
        }
      },
      [](auto product, int64_t) { return product; });
}

const OnnxRow kOnnx[] = {{"ReduceProd", reduce_from_onnx}};

Status to_onnx(OnnxForm& form) { return reduce_to_onnx(form, "ReduceProd", 18); }

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,4,5]
      y = reduce_prod(x) axes=[2,3]
      output y
    })"},
    {R"(graph {
      input x: f32[2,3,4]
      y = reduce_prod(x) axes=[-2] keepdims=0
      output y
    })"},
    {R"(graph {
      input x: f32[2,3,4]
      y = reduce_prod(x)
      output y
    })"},
};

}  // namespace

extern const OpDef op_reduce_prod;
const OpDef op_reduce_prod = {
    .name = "reduce_prod",
    .summary = "the product along axes",
    .attrs = kReduceAttrs,
    .infer = infer_reduce,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

// expand: broadcasts to a shape; 1 keeps the input's dimension, as in ONNX Expand.
#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {{"shape", Ints{}, "dimensions to broadcast with", true}};

Result<Types> infer(const InferArgs& args) {
  const Ints& wanted = attr<Ints>(args.node, "shape");
  FERRY_CHECK_OK(check_shape(wanted, args.inputs[0]->dtype));
  FERRY_TRY(shape, broadcast(args.inputs[0]->shape, wanted));
  return one_output(args.inputs[0]->dtype, std::move(shape));
}

Status eval(const EvalArgs& args) {
  const Tensor& x = *args.inputs[0];
  copy_strided(x, 0, broadcast_strides(x.shape(), args.outputs[0]->shape()), *args.outputs[0]);
  return {};
}

Result<Converted> from_onnx(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 2, 2));
  FERRY_TRY(shape, need_ints(node, 1));
  return with_inputs(node, 1, {{"shape", std::move(shape)}});
}

const OnnxRow kOnnx[] = {{"Expand", from_onnx}};

Status to_onnx(OnnxForm& form) {
  form.add("Expand", {form.input(0), form.ints(attr<Ints>(form.node(), "shape"))});
  return {};
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[3,1]
      y = expand(x) shape=[2,1,4]
      output y
    })"},
};

}  // namespace

extern const OpDef op_expand;
const OpDef op_expand = {
    .name = "expand",
    .summary = "broadcasts to a shape",
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

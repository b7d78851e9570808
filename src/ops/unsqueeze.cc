// unsqueeze: puts in dimensions of 1; axes count in the output.
#include <algorithm>

#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {{"axes", Ints{}, "where the new dimensions stand in the output", true}};

Result<Types> infer(const InferArgs& args) {
  const Shape& x = args.inputs[0]->shape;
  const Ints& axes = attr<Ints>(args.node, "axes");
  FERRY_TRY(added, axes_of(axes, x.size() + axes.size()));
  Shape out;
  for (size_t axis = 0, from = 0; axis < x.size() + axes.size(); ++axis) {
    out.push_back(std::binary_search(added.begin(), added.end(), axis) ? 1 : x[from++]);
  }
  return one_output(args.inputs[0]->dtype, std::move(out));
}

Status eval(const EvalArgs& args) {
  copy_all(*args.inputs[0], *args.outputs[0]);
  return {};
}

Result<Converted> from_onnx(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 1, 2));
  FERRY_TRY(axes, ints_of(node, "axes", 1));
  if (axes.empty()) return error(Code::kInvalid, "Unsqueeze without axes");
  return with_inputs(node, 1, {{"axes", std::move(axes)}});
}

const OnnxRow kOnnx[] = {{"Unsqueeze", from_onnx}};

Status to_onnx(OnnxForm& form) {
  return write_with_list(form, "Unsqueeze", "axes", attr<Ints>(form.node(), "axes"), 13);
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[3,5]
      y = unsqueeze(x) axes=[0,-1]
      output y
    })"},
};

}  // namespace

extern const OpDef op_unsqueeze;
const OpDef op_unsqueeze = {
    .name = "unsqueeze",
    .summary = "puts in dimensions of 1",
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

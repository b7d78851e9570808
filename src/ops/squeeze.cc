// squeeze: drops dimensions of 1.
#include <algorithm>

#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {{"axes", Ints{}, "dimensions to drop; none: every dimension of 1"}};

Result<Types> infer(const InferArgs& args) {
  const Shape& x = args.inputs[0]->shape;
  const Ints& axes = attr<Ints>(args.node, "axes");
  FERRY_TRY(dropped, axes_of(axes, x.size()));
  Shape out;
  for (size_t axis = 0; axis < x.size(); ++axis) {
    const bool named = std::binary_search(dropped.begin(), dropped.end(), axis);
    if (named && x[axis] != 1) {
      return error(Code::kInvalid, "cannot drop axis {} of {}", axis, shape_text(x));
    }
    if (!(axes.empty() ? x[axis] == 1 : named)) out.push_back(x[axis]);
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
  return with_inputs(node, 1, {{"axes", std::move(axes)}});
}

const OnnxRow kOnnx[] = {{"Squeeze", from_onnx}};

Status to_onnx(OnnxForm& form) {
  return write_with_list(form, "Squeeze", "axes", attr<Ints>(form.node(), "axes"), 13);
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[1,3,1,5]
      y = squeeze(x) axes=[-2]
      output y
    })"},
    {R"(graph {
      input x: f32[1,3,1,5]
      y = squeeze(x)
      output y
    })"},
};

}  // namespace

extern const OpDef op_squeeze;
const OpDef op_squeeze = {
    .name = "squeeze",
    .summary = "drops dimensions of 1",
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

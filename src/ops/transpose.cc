// transpose: output axis i is input axis perm[i].
#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {
    {"perm", Ints{}, "the input axis of every output axis", true},
};

Result<Types> infer(const InferArgs& args) {
  const Shape& x = args.inputs[0]->shape;
  const Ints& perm = attr<Ints>(args.node, "perm");
  FERRY_TRY(axes, axes_of(perm, x.size()));
  if (axes.size() != x.size()) {
    return error(Code::kInvalid, "perm is {}, needs the {} axes of {}", shape_text(perm), x.size(),
                 shape_text(x));
  }
  Shape out;
  for (const int64_t axis : perm) {
    FERRY_TRY(from, axis_of(axis, x.size()));
    out.push_back(x[from]);
  }
  return one_output(args.inputs[0]->dtype, std::move(out));
}

Status eval(const EvalArgs& args) {
  const Tensor& x = *args.inputs[0];
  const Shape own = row_major_strides(x.shape());
  Shape strides;
  for (const int64_t axis : attr<Ints>(args.node, "perm")) {
    FERRY_TRY(from, axis_of(axis, own.size()));
    strides.push_back(own[from]);
  }
  copy_strided(x, 0, strides, *args.outputs[0]);
  return {};
}

Result<Converted> from_onnx(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 1, 1));
  Ints reversed;
  for (size_t i = node.inputs[0]->shape.size(); i-- > 0;) {
    reversed.push_back(static_cast<int64_t>(i));
  }
  return with_inputs(node, 1, {{"perm", node.ints_or("perm", std::move(reversed))}});
}

const OnnxRow kOnnx[] = {{"Transpose", from_onnx}};

Status to_onnx(OnnxForm& form) {
  return write_as(form, "Transpose", {{"perm", attr<Ints>(form.node(), "perm")}});
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[1,3,85,4,5]
      y = transpose(x) perm=[0,1,3,4,2]
      output y
    })"},
    {R"(graph {
      input x: f32[2,3,4]
      y = transpose(x) perm=[2,0,1]
      output y
    })"},
};

}  // namespace

extern const OpDef op_transpose;
const OpDef op_transpose = {
    .name = "transpose",
    .summary = "reorders the axes",
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

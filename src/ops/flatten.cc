// flatten: two dimensions, the product of those before `axis` and of the rest.
#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {
    {"axis", int64_t{1}, "first dimension of the second factor; may be the rank"}};

Result<Types> infer(const InferArgs& args) {
  const Shape& x = args.inputs[0]->shape;
  const auto rank = static_cast<int64_t>(x.size());
  int64_t axis = attr<int64_t>(args.node, "axis");
  if (axis < -rank || axis > rank) {
    return error(Code::kInvalid, "axis {} of a tensor with {} dimensions", axis, rank);
  }
  if (axis < 0) axis += rank;
  const auto middle = x.begin() + axis;
  return one_output(args.inputs[0]->dtype,
                    {elements(Shape(x.begin(), middle)), elements(Shape(middle, x.end()))});
}

Status eval(const EvalArgs& args) {
  copy_all(*args.inputs[0], *args.outputs[0]);
  return {};
}

Result<Converted> from_onnx(const ForeignNode& node) {
  return with_inputs(node, 1, {{"axis", node.int_or("axis", 1)}});
}

const OnnxRow kOnnx[] = {{"Flatten", from_onnx}};

Status to_onnx(OnnxForm& form) {
  return write_as(form, "Flatten", {{"axis", attr<int64_t>(form.node(), "axis")}});
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,4,5]
      y = flatten(x) axis=2
      output y
    })"},
};

}  // namespace

extern const OpDef op_flatten;
const OpDef op_flatten = {
    .name = "flatten",
    .summary = "two dimensions: those before an axis, and the rest",
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

// constant_of_shape: one value everywhere, in the shape that a constant input tells.
#include <cstring>

#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {
    {"value", 0.0, "the value"},
    {"dtype", std::string("f32"), "its element type"},
};

Result<Types> infer(const InferArgs& args) {
  if (args.constants[0] == nullptr) {
    return error(Code::kUnsupported,
                 "the shape must be constant; it is computed while the model runs");
  }
  FERRY_CHECK_OK(need_rank(args, 0, 1, "the shape"));
  FERRY_TRY(shape, args.constants[0]->to_ints());
  FERRY_TRY(dtype, dtype_from_name(attr<std::string>(args.node, "dtype")));
  return one_output(dtype, std::move(shape));
}

Status eval(const EvalArgs& args) {
  Tensor& output = *args.outputs[0];
  FERRY_TRY(value, Tensor::scalar(attr<double>(args.node, "value")).cast(output.dtype()));
  copy_strided(value, 0, Shape(output.shape().size(), 0), output);
  return {};
}

// The attribute `value`, a tensor of one element, arrives as a number and its type's name
// (ForeignNode).
Result<Converted> from_onnx(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 1, 1));
  const double value = node.float_or("value", static_cast<double>(node.int_or("value", 0)));
  return with_inputs(node, 1, {{"value", value}, {"dtype", node.string_or("value.dtype", "f32")}});
}

const OnnxRow kOnnx[] = {{"ConstantOfShape", from_onnx}};

Status to_onnx(OnnxForm& form) {
  FERRY_TRY(value,
            Tensor::scalar(attr<double>(form.node(), "value")).cast(form.output_type().dtype));
  form.add("Expand", {form.constant(std::move(value)), form.input(0)});
  return {};
}

const OpCase kCases[] = {
    {R"(graph {
      const shape: i64[2] = {2, 3}
      y = constant_of_shape(shape) value=1.5
      output y
    })"},
};

}  // namespace

extern const OpDef op_constant_of_shape;
const OpDef op_constant_of_shape = {
    .name = "constant_of_shape",
    .summary = "one value everywhere",
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

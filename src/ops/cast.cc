// cast: another element type, converted as Tensor::cast does (integers saturate, bool is != 0).
#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {{"to", std::string("f32"), "element type of the output", true}};

Result<Types> infer(const InferArgs& args) {
  FERRY_TRY(dtype, dtype_from_name(attr<std::string>(args.node, "to")));
  return one_output(dtype, args.inputs[0]->shape);
}

Status eval(const EvalArgs& args) {
  FERRY_TRY(converted, args.inputs[0]->cast(args.outputs[0]->dtype()));
  copy_all(converted, *args.outputs[0]);
  return {};
}

// To half precision is to f32: ferry keeps half-precision data, but calculates in f32.
Result<Converted> from_onnx(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 1, 1));
  FERRY_TRY(dtype, onnx_dtype(node.int_or("to", 0)));
  return with_inputs(node, 1, {{"to", std::string(dtype_name(dtype))}});
}

Result<Converted> from_onnx_like(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 2, 2));
  return with_inputs(node, 1, {{"to", std::string(dtype_name(node.inputs[1]->dtype))}});
}

const OnnxRow kOnnx[] = {{"Cast", from_onnx}, {"CastLike", from_onnx_like}};

Status to_onnx(OnnxForm& form) {
  return write_as(form, "Cast", {{"to", form.onnx_type(form.output_type().dtype)}});
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3]
      y = cast(x) to="i32"
      output y
    })"},
    {R"(graph {
      input x: u8[2,3]
      y = cast(x) to="f32"
      output y
    })"},
};

}  // namespace

extern const OpDef op_cast;
const OpDef op_cast = {
    .name = "cast",
    .summary = "another element type",
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

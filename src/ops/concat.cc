// concat: joins tensors of one dtype along an axis; the other dimensions are equal.
#include <cstring>

#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {{"axis", int64_t{1}, "where to join; negative counts from the end"}};

Result<Types> infer(const InferArgs& args) {
  FERRY_CHECK_OK(need_same_dtype(args));
  Shape out = args.inputs[0]->shape;
  FERRY_TRY(axis, axis_of(attr<int64_t>(args.node, "axis"), out.size()));
  for (size_t i = 1; i < args.inputs.size(); ++i) {
    if (args.inputs[i] == nullptr) return error(Code::kInvalid, "input {} is absent", i);
    Shape shape = args.inputs[i]->shape;
    const int64_t size = axis < shape.size() ? shape[axis] : 0;
    if (axis < shape.size()) shape[axis] = out[axis];
    if (shape != out) {
      return error(Code::kInvalid, "input {} is {}, does not join {} along axis {}", i,
                   shape_text(args.inputs[i]->shape), shape_text(args.inputs[0]->shape), axis);
    }
    out[axis] += size;
    FERRY_CHECK_OK(check_shape(out, args.inputs[0]->dtype));
  }
  return one_output(args.inputs[0]->dtype, std::move(out));
}

Status eval(const EvalArgs& args) {
  Tensor& output = *args.outputs[0];
  FERRY_TRY(axis, axis_of(attr<int64_t>(args.node, "axis"), output.shape().size()));
  const auto row_bytes = [&](const Tensor& tensor) {
    const AxisView view = around_axis(tensor.shape(), axis);
    return static_cast<size_t>(view.size * view.inner * dtype_size(tensor.dtype()));
  };
  const int64_t rows = around_axis(output.shape(), axis).outer;
  std::byte* to = output.mut_bytes().data();
  for (int64_t row = 0; row < rows; ++row) {
    for (const Tensor* input : args.inputs) {
      const size_t bytes = row_bytes(*input);
      if (bytes == 0) continue;
      std::memcpy(to, input->bytes().data() + static_cast<size_t>(row) * bytes, bytes);
      to += bytes;
    }
  }
  return {};
}

Result<Converted> from_onnx(const ForeignNode& node) {
  if (!node.has("axis")) return error(Code::kInvalid, "Concat without an axis");
  return with_inputs(node, node.inputs.size(), {{"axis", node.int_or("axis", 0)}});
}

const OnnxRow kOnnx[] = {{"Concat", from_onnx}};

Status to_onnx(OnnxForm& form) {
  return write_as(form, "Concat", {{"axis", attr<int64_t>(form.node(), "axis")}});
}

const OpCase kCases[] = {
    {R"(graph {
      input a: f32[2,3,4,5]
      input b: f32[2,1,4,5]
      y = concat(a, b, a)
      output y
    })"},
    {R"(graph {
      input a: f32[2,3,4]
      input b: f32[2,3,1]
      y = concat(a, b) axis=-1
      output y
    })"},
};

}  // namespace

extern const OpDef op_concat;
const OpDef op_concat = {
    .name = "concat",
    .summary = "joins tensors along an axis",
    .min_inputs = 1,
    .max_inputs = -1,
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

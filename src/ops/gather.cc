// gather: picks entries along an axis by index; the index tensor's dimensions take the axis' place.
// Negative indices count from the end; an index outside is an error.
#include <cstring>

#include "ops/support/check.h"
#include "ops/support/dtypes.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

constexpr size_t kX = 0, kIndices = 1;

const AttrDef kAttrs[] = {{"axis", int64_t{0}, "negative counts from the end"}};

Result<Types> infer(const InferArgs& args) {
  const Shape& x = args.inputs[kX]->shape;
  const Shape& indices = args.inputs[kIndices]->shape;
  if (!is_integer(args.inputs[kIndices]->dtype)) {
    return error(Code::kInvalid, "indices are {}, need integers",
                 type_text(*args.inputs[kIndices]));
  }
  FERRY_TRY(axis, axis_of(attr<int64_t>(args.node, "axis"), x.size()));
  const auto at = x.begin() + static_cast<int64_t>(axis);
  Shape out(x.begin(), at);
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), at + 1, x.end());
  return one_output(args.inputs[kX]->dtype, std::move(out));
}

Status eval(const EvalArgs& args) {
  const Tensor& x = *args.inputs[kX];
  FERRY_TRY(axis, axis_of(attr<int64_t>(args.node, "axis"), x.shape().size()));
  FERRY_TRY(indices, args.inputs[kIndices]->to_ints());
  const AxisView view = around_axis(x.shape(), axis);
  for (int64_t& index : indices) {
    if (index < -view.size || index >= view.size) {
      return error(Code::kInvalid, "index {} of axis {} of {}", index, axis, shape_text(x.shape()));
    }
    if (index < 0) index += view.size;
  }
  if (args.outputs[0]->size() == 0) return {};
  const auto row = static_cast<size_t>(view.inner * dtype_size(x.dtype()));
  const std::byte* from = x.bytes().data();
  std::byte* to = args.outputs[0]->mut_bytes().data();
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    for (const int64_t index : indices) {
      std::memcpy(to, from + static_cast<size_t>(outer * view.size + index) * row, row);
      to += row;
    }
  }
  return {};
}

Result<Converted> from_onnx(const ForeignNode& node) {
  return with_inputs(node, 2, {{"axis", node.int_or("axis", 0)}});
}

const OnnxRow kOnnx[] = {{"Gather", from_onnx}};

Status to_onnx(OnnxForm& form) {
  return write_as(form, "Gather", {{"axis", attr<int64_t>(form.node(), "axis")}});
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[3,4,5]
      const indices: i64[2,2] = {0, -1, 2, 1}
      y = gather(x, indices) axis=1
      output y
    })"},
    {R"(graph {
      input x: f32[2,6]
      const index: i64[] = {5}
      y = gather(x, index) axis=-1
      output y
    })"},
};

}  // namespace

extern const OpDef op_gather;
const OpDef op_gather = {
    .name = "gather",
    .summary = "picks entries along an axis by index",
    .min_inputs = 2,
    .max_inputs = 2,
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

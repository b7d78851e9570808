// shape: the dimensions of its input, i64[rank], or of the axes from `start` to (not with) `end`.
#include <algorithm>
#include <limits>

#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {
    {"start", int64_t{0}, "first axis; negative counts from the end"},
    {"end", std::numeric_limits<int64_t>::max(), "axis behind the last"},
};

Shape part_of(const Node& node, const Shape& shape) {
  const auto rank = static_cast<int64_t>(shape.size());
  const auto place = [&](int64_t axis) {
    if (axis < 0) axis = axis < -rank ? 0 : axis + rank;
    return std::min(axis, rank);
  };
  const int64_t start = place(attr<int64_t>(node, "start")),
                end = place(attr<int64_t>(node, "end"));
  return start < end ? Shape(shape.begin() + start, shape.begin() + end) : Shape();
}

Result<Types> infer(const InferArgs& args) {
  const Shape part = part_of(args.node, args.inputs[0]->shape);
  return one_output(DType::kI64, {static_cast<int64_t>(part.size())});
}

Status eval(const EvalArgs& args) {
  const Shape part = part_of(args.node, args.inputs[0]->shape());
  std::copy(part.begin(), part.end(), args.outputs[0]->mut<int64_t>().begin());
  return {};
}

Result<Converted> from_onnx(const ForeignNode& node) {
  return with_inputs(node, 1,
                     {{"start", node.int_or("start", 0)},
                      {"end", node.int_or("end", std::numeric_limits<int64_t>::max())}});
}

const OnnxRow kOnnx[] = {{"Shape", from_onnx}};

// Opset 15 takes parts; before, the whole is cut.
Status to_onnx(OnnxForm& form) {
  const int64_t start = attr<int64_t>(form.node(), "start"),
                end = attr<int64_t>(form.node(), "end");
  const bool whole = start == 0 && end == std::numeric_limits<int64_t>::max();
  Attrs attrs;
  if (!whole && form.target().opset >= 15) attrs = {{"start", start}, {"end", end}};
  const Ref dims = form.add("Shape", {form.input(0)}, std::move(attrs));
  if (!whole && form.target().opset < 15) {
    form.add("Slice", {dims, form.ints({start}), form.ints({end}), form.ints({0})});
  }
  return {};
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,4]
      y = shape(x)
      output y
    })"},
    {R"(graph {
      input x: f32[2,3,4]
      y = shape(x) start=-2
      output y
    })"},
};

}  // namespace

extern const OpDef op_shape;
const OpDef op_shape = {
    .name = "shape",
    .summary = "the dimensions of its input",
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

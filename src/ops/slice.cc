// slice: every step-th element from start up to (not with) end along some axes. Negative bounds
// count from the end and bounds clamp, as in NumPy, so an end of 2^63-1 means "to the end" for any
// size.
#include <algorithm>
#include <limits>

#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {
    {"starts", Ints{}, "first index, one for each axis of `axes`", true},
    {"ends", Ints{}, "index behind the last", true},
    {"axes", Ints{}, "axes; none: the first ones, as many as there are starts"},
    {"steps", Ints{}, "steps, negative to walk backwards; none: 1"},
};

struct Range {
  int64_t start = 0, step = 1, count = 0;
};

// REQUIRES: step != 0
Range clamp_range(int64_t start, int64_t end, int64_t step, int64_t size) {
  // Forwards an index lies in 0 … size, backwards in -1 … size-1.
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto place = [&](int64_t at) {
    if (at < 0) at = at < -size ? low : at + size;
    return std::clamp(at, low, std::max(high, low));
  };
  Range range{.start = place(start), .step = step, .count = 0};
  const int64_t stop = place(end);
  const int64_t distance = step > 0 ? stop - range.start : range.start - stop;
  if (distance <= 0) return range;
  // -(step + 1) + 1 would overflow for the smallest step; no walk is that long.
  const int64_t stride = step > 0 ? step : -std::max(step, -std::numeric_limits<int64_t>::max());
  range.count = (distance - 1) / stride + 1;
  return range;
}

// One range an axis of the input.
Result<std::vector<Range>> ranges_of(const Node& node, const Shape& x) {
  const Ints& starts = attr<Ints>(node, "starts");
  const Ints& ends = attr<Ints>(node, "ends");
  Ints axes = attr<Ints>(node, "axes");
  Ints steps = attr<Ints>(node, "steps");
  if (axes.empty()) {
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    return error(Code::kInvalid, "has {} starts, {} ends, {} axes, {} steps", starts.size(),
                 ends.size(), axes.size(), steps.size());
  }
  FERRY_CHECK_OK(axes_of(axes, x.size()));
  std::vector<Range> ranges;
  for (const int64_t dim : x) ranges.push_back({.start = 0, .step = 1, .count = dim});
  for (size_t i = 0; i < starts.size(); ++i) {
    FERRY_TRY(axis, axis_of(axes[i], x.size()));
    if (steps[i] == 0) return error(Code::kInvalid, "steps are {}", shape_text(steps));
    ranges[axis] = clamp_range(starts[i], ends[i], steps[i], x[axis]);
  }
  return ranges;
}

Result<Types> infer(const InferArgs& args) {
  FERRY_TRY(ranges, ranges_of(args.node, args.inputs[0]->shape));
  Shape out;
  for (const Range& range : ranges) out.push_back(range.count);
  return one_output(args.inputs[0]->dtype, std::move(out));
}

Status eval(const EvalArgs& args) {
  const Tensor& x = *args.inputs[0];
  if (args.outputs[0]->size() == 0) return {};
  FERRY_TRY(ranges, ranges_of(args.node, x.shape()));
  Shape strides = row_major_strides(x.shape());
  int64_t offset = 0;
  for (size_t axis = 0; axis < ranges.size(); ++axis) {
    offset += ranges[axis].start * strides[axis];
    // One element needs no step, and a huge one must not be multiplied.
    strides[axis] = ranges[axis].count > 1 ? strides[axis] * ranges[axis].step : 0;
  }
  copy_strided(x, offset, strides, *args.outputs[0]);
  return {};
}

// Opset 9 has attributes, later ones inputs.
Result<Converted> from_onnx(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 1, 5));
  if (!node.has("starts")) FERRY_CHECK_OK(need_inputs(node, 3, 5));
  FERRY_TRY(starts, ints_of(node, "starts", 1));
  FERRY_TRY(ends, ints_of(node, "ends", 2));
  FERRY_TRY(axes, ints_of(node, "axes", 3));
  FERRY_TRY(steps, ints_of(node, "steps", 4));
  return with_inputs(node, 1,
                     {{"starts", std::move(starts)},
                      {"ends", std::move(ends)},
                      {"axes", std::move(axes)},
                      {"steps", std::move(steps)}});
}

const OnnxRow kOnnx[] = {{"Slice", from_onnx}};

Status to_onnx(OnnxForm& form) {
  const Ints& starts = attr<Ints>(form.node(), "starts");
  Ints axes = attr<Ints>(form.node(), "axes");
  for (size_t i = 0; axes.size() < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  std::vector<Ref> inputs = {form.input(0), form.ints(starts),
                             form.ints(attr<Ints>(form.node(), "ends")), form.ints(axes)};
  const Ints& steps = attr<Ints>(form.node(), "steps");
  if (!steps.empty()) inputs.push_back(form.ints(steps));
  form.add("Slice", std::move(inputs));
  return {};
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[1,3,8,8]
      y = slice(x) starts=[0,1] ends=[9223372036854775807,9223372036854775807] axes=[2,3] steps=[2,2]
      output y
    })"},
    {R"(graph {
      input x: f32[2,3,5]
      y = slice(x) starts=[-1,-2] ends=[-9223372036854775807,3] axes=[2,1] steps=[-2,1]
      output y
    })"},
};

}  // namespace

extern const OpDef op_slice;
const OpDef op_slice = {
    .name = "slice",
    .summary = "a strided part of a tensor",
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

// pad: adds a border, constant, mirrored (`reflect`, without repeating the edge) or repeated
// (`edge`). Negative pads cut.
#include <algorithm>
#include <cstring>
#include <limits>

#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {
    {"pads", Ints{}, "before the first of every axis, then behind the last of every axis", true},
    {"mode", std::string("constant"), "constant, reflect or edge"},
    {"value", 0.0, "of a constant border"},
};

constexpr int64_t kMaxPad = int64_t{1} << 32;

Result<Types> infer(const InferArgs& args) {
  const Shape& x = args.inputs[0]->shape;
  const Ints& pads = attr<Ints>(args.node, "pads");
  const std::string& mode = attr<std::string>(args.node, "mode");
  if (mode != "constant" && mode != "reflect" && mode != "edge") {
    return error(Code::kUnsupported, "mode '{}' is not supported, only constant, reflect and edge",
                 mode);
  }
  if (pads.size() != 2 * x.size()) {
    return error(Code::kInvalid, "pads are {}, needs two for each axis of {}", shape_text(pads),
                 shape_text(x));
  }
  Shape out;
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t before = pads[i], after = pads[i + x.size()];
    if (before < -kMaxPad || before > kMaxPad || after < -kMaxPad || after > kMaxPad ||
        x[i] + before + after < 0) {
      return error(Code::kInvalid, "pads {} do not fit {}", shape_text(pads), shape_text(x));
    }
    const int64_t most = std::max(before, after);
    // A mirror shows every pixel but the edge once; an edge must exist.
    if ((mode == "reflect" && most > std::max<int64_t>(x[i] - 1, 0)) ||
        (mode == "edge" && most > 0 && x[i] == 0)) {
      return error(Code::kInvalid, "{} pads of {} at an axis of {}", mode, most, x[i]);
    }
    out.push_back(x[i] + before + after);
  }
  return one_output(args.inputs[0]->dtype, std::move(out));
}

// Where index `i` of the padded axis reads; -1: the constant.
int64_t source(int64_t i, int64_t before, int64_t size, std::string_view mode) {
  int64_t at = i - before;
  if (at >= 0 && at < size) return at;
  if (mode == "constant") return -1;
  if (mode == "edge") return at < 0 ? 0 : size - 1;
  return at < 0 ? -at : 2 * (size - 1) - at;
}

Status eval(const EvalArgs& args) {
  const Tensor& x = *args.inputs[0];
  Tensor& output = *args.outputs[0];
  const Ints& pads = attr<Ints>(args.node, "pads");
  const std::string& mode = attr<std::string>(args.node, "mode");
  FERRY_TRY(value, Tensor::scalar(attr<double>(args.node, "value")).cast(x.dtype()));
  const Shape own = row_major_strides(x.shape());
  const Shape strides = row_major_strides(output.shape());
  const auto size = static_cast<size_t>(dtype_size(x.dtype()));
  std::byte* to = output.mut_bytes().data();
  for (int64_t i = 0; i < output.size(); ++i, to += size) {
    int64_t offset = 0;
    bool outside = false;
    for (size_t axis = 0; axis < own.size(); ++axis) {
      const int64_t index = i / strides[axis] % output.shape()[axis];
      const int64_t at = source(index, pads[axis], x.shape()[axis], mode);
      outside = outside || at < 0;
      offset += at * own[axis];
    }
    const std::byte* from =
        outside ? value.bytes().data() : x.bytes().data() + static_cast<size_t>(offset) * size;
    std::memcpy(to, from, size);
  }
  return {};
}

// Pads and value are attributes before opset 11, then inputs; opset 18 may name the axes.
Result<Converted> from_onnx(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 1, 4));
  FERRY_TRY(given, ints_of(node, "pads", 1));
  double value = node.float_or("value", 0.0);
  if (has_input(node, 2)) {
    FERRY_TRY(values, need_floats(node, 2));
    if (values.size() != 1) return error(Code::kInvalid, "value has {} numbers", values.size());
    value = values[0];
  }
  const size_t rank = node.inputs[0]->shape.size();
  Ints pads = given;
  if (has_input(node, 3)) {
    FERRY_TRY(axes, need_ints(node, 3));
    FERRY_CHECK_OK(axes_of(axes, rank));
    if (given.size() != 2 * axes.size()) {
      return error(Code::kInvalid, "{} pads for {} axes", given.size(), axes.size());
    }
    pads.assign(2 * rank, 0);
    for (size_t i = 0; i < axes.size(); ++i) {
      FERRY_TRY(axis, axis_of(axes[i], rank));
      pads[axis] = given[i];
      pads[axis + rank] = given[i + axes.size()];
    }
  }
  return with_inputs(
      node, 1,
      {{"pads", std::move(pads)}, {"mode", node.string_or("mode", "constant")}, {"value", value}});
}

const OnnxRow kOnnx[] = {{"Pad", from_onnx}};

// A negative pad is a slice behind the border: ONNX does not say which comes first.
Status to_onnx(OnnxForm& form) {
  const Ints& pads = attr<Ints>(form.node(), "pads");
  const size_t rank = pads.size() / 2;
  Ints added = pads, axes, starts, ends;
  for (size_t axis = 0; axis < rank; ++axis) {
    int64_t &before = added[axis], &after = added[axis + rank];
    if (before < 0 || after < 0) {
      axes.push_back(static_cast<int64_t>(axis));
      starts.push_back(std::max<int64_t>(-before, 0));
      ends.push_back(after < 0 ? after : std::numeric_limits<int64_t>::max());
    }
    before = std::max<int64_t>(before, 0);
    after = std::max<int64_t>(after, 0);
  }
  std::vector<Ref> inputs = {form.input(0), form.ints(added)};
  const std::string& mode = attr<std::string>(form.node(), "mode");
  if (mode == "constant") {
    FERRY_TRY(value, Tensor::scalar(attr<double>(form.node(), "value")).cast(form.type(0).dtype));
    inputs.push_back(form.constant(std::move(value)));
  }
  const Ref padded = form.add("Pad", std::move(inputs), {{"mode", mode}});
  if (!axes.empty()) {
    form.add("Slice", {padded, form.ints(starts), form.ints(ends), form.ints(axes)});
  }
  return {};
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[1,2,3,4]
      y = pad(x) pads=[0,0,1,0,0,0,2,1] value=0.5
      output y
    })"},
    {R"(graph {
      input x: f32[1,2,5,4]
      y = pad(x) pads=[0,0,2,3,0,0,4,-1] mode="reflect"
      output y
    })"},
    {R"(graph {
      input x: f32[2,3]
      y = pad(x) pads=[1,2,0,2] mode="edge"
      output y
    })"},
};

}  // namespace

extern const OpDef op_pad;
const OpDef op_pad = {
    .name = "pad",
    .summary = "adds a border",
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

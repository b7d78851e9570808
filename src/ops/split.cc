// split: parts along an axis, of given sizes or equal ones.
#include <cstring>

#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {
    {"axis", int64_t{1}, "where to cut; negative counts from the end"},
    {"sizes", Ints{}, "of the parts; none: equal parts, as many as there are outputs"},
};

Result<Ints> sizes_of(const Node& node, int64_t whole) {
  Ints sizes = attr<Ints>(node, "sizes");
  const auto parts = static_cast<int64_t>(node.outputs.size());
  if (sizes.empty()) {
    if (parts < 1 || whole % parts != 0) {
      return error(Code::kInvalid, "{} does not divide into {} equal parts", whole, parts);
    }
    sizes.assign(node.outputs.size(), whole / parts);
  }
  int64_t rest = whole;
  for (const int64_t size : sizes) {
    if (size < 0 || size > rest) {
      return error(Code::kInvalid, "sizes {} do not add up to {}", shape_text(sizes), whole);
    }
    rest -= size;
  }
  if (rest != 0) {
    return error(Code::kInvalid, "sizes {} do not add up to {}", shape_text(sizes), whole);
  }
  return sizes;
}

Result<Types> infer(const InferArgs& args) {
  const Shape& x = args.inputs[0]->shape;
  FERRY_TRY(axis, axis_of(attr<int64_t>(args.node, "axis"), x.size()));
  FERRY_TRY(sizes, sizes_of(args.node, x[axis]));
  Types out;
  for (const int64_t size : sizes) {
    Shape part = x;
    part[axis] = size;
    out.push_back({args.inputs[0]->dtype, std::move(part)});
  }
  return out;
}

Status eval(const EvalArgs& args) {
  const Tensor& x = *args.inputs[0];
  FERRY_TRY(axis, axis_of(attr<int64_t>(args.node, "axis"), x.shape().size()));
  const AxisView view = around_axis(x.shape(), axis);
  if (x.size() == 0) return {};
  const std::byte* from = x.bytes().data();
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    for (Tensor* output : args.outputs) {
      const auto row =
          static_cast<size_t>(output->shape()[axis] * view.inner * dtype_size(x.dtype()));
      if (row == 0) continue;
      std::memcpy(output->mut_bytes().data() + static_cast<size_t>(outer) * row, from, row);
      from += row;
    }
  }
  return {};
}

// Sizes are an attribute before opset 13, then an input; opset 18 cuts into num_outputs parts, the
// last one smaller.
Result<Converted> from_onnx(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 1, 2));
  const int64_t axis = node.int_or("axis", 0);
  FERRY_TRY(sizes, ints_of(node, "split", 1));
  if (sizes.empty() && node.has("num_outputs")) {
    FERRY_TRY(at, axis_of(axis, node.inputs[0]->shape.size()));
    const int64_t whole = node.inputs[0]->shape[at], parts = node.int_or("num_outputs", 0);
    if (parts != node.outputs) {
      return error(Code::kInvalid, "num_outputs is {}, the node has {}", parts, node.outputs);
    }
    if (parts > 0 && whole % parts != 0) {
      const int64_t size = (whole + parts - 1) / parts;
      sizes.assign(static_cast<size_t>(parts - 1), size);
      sizes.push_back(whole - size * (parts - 1));
    }
  }
  return with_inputs(node, 1, {{"axis", axis}, {"sizes", std::move(sizes)}});
}

const OnnxRow kOnnx[] = {{"Split", from_onnx}};

Status to_onnx(OnnxForm& form) {
  const int64_t axis = attr<int64_t>(form.node(), "axis");
  FERRY_TRY(at, axis_of(axis, form.shape(0).size()));
  FERRY_TRY(sizes, sizes_of(form.node(), form.shape(0)[at]));
  add_split(form, form.input(0), axis, sizes);
  return {};
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,85,4]
      xy, wh, rest = split(x) sizes=[2,2,81]
      output xy, wh, rest
    })"},
    {R"(graph {
      input x: f32[2,3,8]
      a, b = split(x) axis=-1
      output a, b
    })"},
};

}  // namespace

extern const OpDef op_split;
const OpDef op_split = {
    .name = "split",
    .summary = "parts along an axis",
    .outputs = -1,
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

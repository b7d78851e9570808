#include "ops/support/reduce.h"

#include <algorithm>

#include "ops/support/onnx.h"

namespace ferry::ops {

using namespace graph;

const AttrDef kReduceAttrs[2] = {
    {"axes", Ints{}, "axes to reduce; none: all"},
    {"keepdims", int64_t{1}, "1: reduced axes stay as dimensions of 1"},
};

namespace {

Result<std::vector<size_t>> reduced_axes(const Node& node, size_t rank) {
  FERRY_TRY(axes, axes_of(attr<Ints>(node, "axes"), rank));
  for (size_t axis = 0; axis < rank && attr<Ints>(node, "axes").empty(); ++axis)
    axes.push_back(axis);
  return axes;
}

}  // namespace

Result<Shape> kept_shape(const Node& node, const Shape& x) {
  FERRY_TRY(axes, reduced_axes(node, x.size()));
  Shape kept = x;
  for (const size_t axis : axes) kept[axis] = 1;
  return kept;
}

Result<Types> infer_reduce(const InferArgs& args) {
  const TensorType& x = *args.inputs[0];
  if (!is_number(x.dtype)) return error(Code::kUnsupported, "cannot reduce {}", type_text(x));
  FERRY_TRY(axes, reduced_axes(args.node, x.shape.size()));
  const bool keep = attr<int64_t>(args.node, "keepdims") != 0;
  Shape out;
  for (size_t axis = 0; axis < x.shape.size(); ++axis) {
    if (!std::binary_search(axes.begin(), axes.end(), axis)) {
      out.push_back(x.shape[axis]);
    } else if (keep) {
      out.push_back(1);
    }
  }
  FERRY_CHECK_OK(check_shape(out, x.dtype));
  if (elements(x.shape) == 0 && elements(out) != 0) {
    return error(Code::kInvalid, "nothing to reduce in {}", shape_text(x.shape));
  }
  return one_output(x.dtype, std::move(out));
}

Result<Converted> reduce_from_onnx(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 1, 2));
  FERRY_TRY(axes, ints_of(node, "axes", 1));
  if (axes.empty() && node.int_or("noop_with_empty_axes", 0) != 0) {
    Converted out = with_inputs(node, 1);
    out.op = "identity";
    return out;
  }
  return with_inputs(node, 1,
                     {{"axes", std::move(axes)}, {"keepdims", node.int_or("keepdims", 1)}});
}

}  // namespace ferry::ops

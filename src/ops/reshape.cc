// reshape: the same elements in row-major order under other dimensions. `shape` says them so that
// it stays right when batch or picture change: 0 copies the input's dimension at that place, -1
// (once) takes what is left, -2 copies the dimension of `like` at that place, a second input of
// which only the shape matters.
#include <algorithm>

#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

constexpr size_t kX = 0, kLike = 1;

const AttrDef kAttrs[] = {
    {"shape", Ints{}, "dimensions; 0: the input's, -1: what is left, -2: those of `like`", true},
    {"allow_zero", int64_t{0}, "1: 0 means a dimension of 0"},
};

Result<Types> infer(const InferArgs& args) {
  const Shape& x = args.inputs[kX]->shape;
  const TensorType* like = input_or_null(args, kLike);
  const Ints& wanted = attr<Ints>(args.node, "shape");
  const bool allow_zero = attr<int64_t>(args.node, "allow_zero") != 0;

  Shape out;
  std::optional<size_t> rest;
  for (size_t i = 0; i < wanted.size(); ++i) {
    int64_t dim = wanted[i];
    if (dim == 0 && !allow_zero) {
      if (i >= x.size()) {
        return error(Code::kInvalid, "shape {} copies dimension {} of {}", shape_text(wanted), i,
                     shape_text(x));
      }
      dim = x[i];
    } else if (dim == -1) {
      if (rest) return error(Code::kInvalid, "shape {} has -1 twice", shape_text(wanted));
      rest = i;
      dim = 1;
    } else if (dim == -2) {
      if (like == nullptr || i >= like->shape.size()) {
        return error(Code::kInvalid, "shape {} copies dimension {} of `like`, which is {}",
                     shape_text(wanted), i, like ? shape_text(like->shape) : "absent");
      }
      dim = like->shape[i];
    }
    out.push_back(dim);
  }
  FERRY_CHECK_OK(check_shape(out, args.inputs[kX]->dtype));
  const int64_t have = elements(x);
  if (rest) {
    const int64_t others = elements(out);
    if (others == 0 || have % others != 0) {
      return error(Code::kInvalid, "{} elements of {} do not fill shape {}", have, shape_text(x),
                   shape_text(wanted));
    }
    out[*rest] = have / others;
  }
  if (elements(out) != have) {
    return error(Code::kInvalid, "{} has {} elements, shape {} has {}", shape_text(x), have,
                 shape_text(out), elements(out));
  }
  return one_output(args.inputs[kX]->dtype, std::move(out));
}

Status eval(const EvalArgs& args) {
  copy_all(*args.inputs[kX], *args.outputs[0]);
  return {};
}

Result<Converted> from_onnx(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 1, 2));
  if (!node.has("shape")) FERRY_CHECK_OK(need_inputs(node, 2, 2));
  FERRY_TRY(shape, ints_of(node, "shape", 1));
  for (const int64_t dim : shape) {
    if (dim < -1) return error(Code::kInvalid, "shape is {}", shape_text(shape));
  }
  return with_inputs(node, 1,
                     {{"shape", std::move(shape)}, {"allow_zero", node.int_or("allowzero", 0)}});
}

const OnnxRow kOnnx[] = {{"Reshape", from_onnx}};

Status to_onnx(OnnxForm& form) {
  Ints shape = attr<Ints>(form.node(), "shape");
  const bool copies_like = std::find(shape.begin(), shape.end(), -2) != shape.end();
  if (copies_like && form.target().dynamic) {
    const Ref like = form.add("Shape", {form.input(kLike)});
    std::vector<Ref> dims;
    for (size_t i = 0; i < shape.size(); ++i) {
      dims.push_back(shape[i] == -2
                         ? form.add("Gather", {like, form.ints({static_cast<int64_t>(i)})},
                                    {{"axis", int64_t{0}}})
                         : form.ints({shape[i]}));
    }
    const Ref all = form.add("Concat", std::move(dims), {{"axis", int64_t{0}}});
    form.add("Reshape", {form.input(kX), all});
    return {};
  }
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -2) shape[i] = form.output_type().shape[i];
  }
  Attrs attrs;
  if (attr<int64_t>(form.node(), "allow_zero") != 0 &&
      std::find(shape.begin(), shape.end(), 0) != shape.end()) {
    FERRY_CHECK_OK(form.need_opset(14, "a dimension of 0"));
    attrs["allowzero"] = int64_t{1};
  }
  form.add("Reshape", {form.input(kX), form.ints(shape)}, std::move(attrs));
  return {};
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,12,4,5]
      y = reshape(x) shape=[0,3,-1,4,5]
      output y
    })"},
    {R"(graph {
      input x: f32[2,20,6]
      input picture: f32[2,3,4,5]
      y = reshape(x, picture) shape=[-2,6,-2,-2]
      output y
    })"},
};

}  // namespace

extern const OpDef op_reshape;
const OpDef op_reshape = {
    .name = "reshape",
    .summary = "the same elements under other dimensions",
    .min_inputs = 1,
    .max_inputs = 2,
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

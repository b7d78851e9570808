// tile: repeats a tensor along its axes.
#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {{"repeats", Ints{}, "how often, an axis each", true}};

Result<Types> infer(const InferArgs& args) {
  const Shape& x = args.inputs[0]->shape;
  const Ints& repeats = attr<Ints>(args.node, "repeats");
  if (repeats.size() != x.size()) {
    return error(Code::kInvalid, "repeats are {}, needs one for each axis of {}",
                 shape_text(repeats), shape_text(x));
  }
  Shape out;
  for (size_t i = 0; i < x.size(); ++i) {
    if (repeats[i] < 0) return error(Code::kInvalid, "repeats are {}", shape_text(repeats));
    out.push_back(saturating_product(x[i], repeats[i]));
  }
  return one_output(args.inputs[0]->dtype, std::move(out));
}

// An axis of d repeated r times reads like two axes, [r, d], of which the first does not move.
Status eval(const EvalArgs& args) {
  const Tensor& x = *args.inputs[0];
  if (args.outputs[0]->size() == 0) return {};
  const Shape own = row_major_strides(x.shape());
  Shape shape, strides;
  for (size_t i = 0; i < own.size(); ++i) {
    shape.insert(shape.end(), {attr<Ints>(args.node, "repeats")[i], x.shape()[i]});
    strides.insert(strides.end(), {0, own[i]});
  }
  Tensor output = args.outputs[0]->reshaped(shape);
  copy_strided(x, 0, strides, output);
  return {};
}

Result<Converted> from_onnx(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 2, 2));
  FERRY_TRY(repeats, need_ints(node, 1));
  return with_inputs(node, 1, {{"repeats", std::move(repeats)}});
}

const OnnxRow kOnnx[] = {{"Tile", from_onnx}};

Status to_onnx(OnnxForm& form) {
  form.add("Tile", {form.input(0), form.ints(attr<Ints>(form.node(), "repeats"))});
  return {};
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,1,3]
      y = tile(x) repeats=[1,4,2]
      output y
    })"},
};

}  // namespace

extern const OpDef op_tile;
const OpDef op_tile = {
    .name = "tile",
    .summary = "repeats a tensor along its axes",
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

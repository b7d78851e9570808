// softmax: e^x / sum of e^x along an axis. Before ONNX opset 13 the sum ran over that axis and all
// behind it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {
    {"axis", int64_t{-1}, "negative counts from the end"},
    {"flatten", int64_t{0}, "1: over the axis and all behind it"},
};

Result<Types> infer(const InferArgs& args) {
  FERRY_CHECK_OK(need_f32(args));
  FERRY_CHECK_OK(axis_of(attr<int64_t>(args.node, "axis"), args.inputs[0]->shape.size()));
  return one_output(DType::kF32, args.inputs[0]->shape);
}

Status eval(const EvalArgs& args) {
  const float* x = args.inputs[0]->as<float>().data();
  float* y = args.outputs[0]->mut<float>().data();
  FERRY_TRY(axis, axis_of(attr<int64_t>(args.node, "axis"), args.inputs[0]->shape().size()));
  AxisView view = around_axis(args.inputs[0]->shape(), axis);
  if (attr<int64_t>(args.node, "flatten") != 0) {
    view.size *= view.inner;
    view.inner = 1;
  }
  for (int64_t outer = 0; outer < view.outer; ++outer) {
    for (int64_t inner = 0; inner < view.inner; ++inner) {
      const auto at = [&](int64_t k) { return (outer * view.size + k) * view.inner + inner; };
      float largest = -std::numeric_limits<float>::infinity();
      for (int64_t k = 0; k < view.size; ++k) largest = std::max(largest, x[at(k)]);
      double sum = 0;
      for (int64_t k = 0; k < view.size; ++k) {
        y[at(k)] = std::exp(x[at(k)] - largest);
        sum += y[at(k)];
      }
      for (int64_t k = 0; k < view.size; ++k) y[at(k)] = static_cast<float>(y[at(k)] / sum);
    }
  }
  return {};
}

Result<Converted> from_onnx(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 1, 1));
  const bool old = node.opset < 13;
  return with_inputs(node, 1,
                     {{"axis", node.int_or("axis", old ? 1 : -1)}, {"flatten", int64_t{old}}});
}

const OnnxRow kOnnx[] = {{"Softmax", from_onnx}};

Status to_onnx(OnnxForm& form) {
  const auto rank = static_cast<int64_t>(form.shape(0).size());
  int64_t axis = attr<int64_t>(form.node(), "axis");
  if (axis < 0) axis += rank;
  const bool flatten = attr<int64_t>(form.node(), "flatten") != 0, old = form.target().opset < 13;
  const Ref x = form.input(0);
  if (axis == rank - 1 || flatten == old) {
    form.add("Softmax", {x}, {{"axis", axis}});
  } else if (flatten) {
    const Ref rows = form.add("Flatten", {x}, {{"axis", axis}});
    const Ref y = form.add("Softmax", {rows}, {{"axis", int64_t{1}}});
    const Ref shape =
        form.target().dynamic ? form.add("Shape", {x}) : form.ints(form.output_type().shape);
    form.add("Reshape", {y, shape});
  } else {  // the axis goes last and comes back
    Ints perm;
    for (int64_t i = 0; i < rank; ++i) perm.push_back(i);
    std::swap(perm[static_cast<size_t>(axis)], perm.back());
    const Ref last = form.add("Transpose", {x}, {{"perm", perm}});
    const Ref y = form.add("Softmax", {last}, {{"axis", rank - 1}});
    form.add("Transpose", {y}, {{"perm", perm}});
  }
  return {};
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,4,5]
      y = softmax(x)
      output y
    })"},
    {R"(graph {
      input x: f32[2,16,4]
      y = softmax(x) axis=1
      output y
    })"},
    {R"(graph {
      input x: f32[2,3,4]
      y = softmax(x) axis=1 flatten=1
      output y
    })"},
};

}  // namespace

extern const OpDef op_softmax;
const OpDef op_softmax = {
    .name = "softmax",
    .summary = "e^x / sum of e^x along an axis",
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

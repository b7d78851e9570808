// argmax: index of the largest value along an axis, i64; the first one of equals, or the last.
#include "ops/support/check.h"
#include "ops/support/dtypes.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {
    {"axis", int64_t{0}, "negative counts from the end"},
    {"keepdims", int64_t{1}, "1: the axis stays as a dimension of 1"},
    {"last", int64_t{0}, "1: of equal values the last one wins"},
};

Result<Types> infer(const InferArgs& args) {
  const TensorType& x = *args.inputs[0];
  if (!is_number(x.dtype)) return error(Code::kUnsupported, "cannot compare {}", type_text(x));
  FERRY_TRY(axis, axis_of(attr<int64_t>(args.node, "axis"), x.shape.size()));
  if (x.shape[axis] == 0)
    return error(Code::kInvalid, "axis {} of {} is empty", axis, shape_text(x.shape));
  Shape out = x.shape;
  if (attr<int64_t>(args.node, "keepdims") != 0) {
    out[axis] = 1;
  } else {
    out.erase(out.begin() + static_cast<int64_t>(axis));
  }
  return one_output(DType::kI64, std::move(out));
}

Status eval(const EvalArgs& args) {
  const Tensor& x = *args.inputs[0];
  FERRY_TRY(axis, axis_of(attr<int64_t>(args.node, "axis"), x.shape().size()));
  const AxisView view = around_axis(x.shape(), axis);
  const bool last = attr<int64_t>(args.node, "last") != 0;
  const auto y = args.outputs[0]->mut<int64_t>();
  return with_number(x.dtype(), [&]<class T>() -> Status {
    const auto xs = x.as<T>();
    for (int64_t outer = 0; outer < view.outer; ++outer) {
      for (int64_t inner = 0; inner < view.inner; ++inner) {
        const auto at = [&](int64_t k) {
          return xs[static_cast<size_t>((outer * view.size + k) * view.inner + inner)];
        };
        int64_t best = 0;
        for (int64_t k = 1; k < view.size; ++k) {
          if (at(k) > at(best) || (last && at(k) == at(best))) best = k;
        }
        y[static_cast<size_t>(outer * view.inner + inner)] = best;
      }
    }
    return {};
  });
}

Result<Converted> from_onnx(const ForeignNode& node) {
  return with_inputs(node, 1,
                     {{"axis", node.int_or("axis", 0)},
                      {"keepdims", node.int_or("keepdims", 1)},
                      {"last", node.int_or("select_last_index", 0)}});
}

const OnnxRow kOnnx[] = {{"ArgMax", from_onnx}};

Status to_onnx(OnnxForm& form) {
  Attrs attrs = {{"axis", attr<int64_t>(form.node(), "axis")},
                 {"keepdims", attr<int64_t>(form.node(), "keepdims")}};
  if (attr<int64_t>(form.node(), "last") != 0) attrs["select_last_index"] = int64_t{1};
  return write_as(form, "ArgMax", std::move(attrs));
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,5,3]
      y = argmax(x) axis=1 keepdims=0
      output y
    })"},
};

}  // namespace

extern const OpDef op_argmax;
const OpDef op_argmax = {
    .name = "argmax",
    .summary = "index of the largest value along an axis",
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

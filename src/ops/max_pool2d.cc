// max_pool2d: the largest value of every window. Padding never wins.
#include <algorithm>
#include <limits>

#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/pool.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {
    {"kernel", Ints{}, "rows, columns", true},
    {"strides", Ints{1, 1}, "rows, columns"},
    {"pads", Ints{0, 0, 0, 0}, "top, left, bottom, right"},
    {"dilations", Ints{1, 1}, "rows, columns"},
    {"ceil_mode", int64_t{0}, "1: a window that sticks out behind the picture counts too"},
};

Status eval(const EvalArgs& args) {
  FERRY_TRY(window, pool_window(args.node));
  const Shape& in = args.inputs[0]->shape();
  const Shape& out = args.outputs[0]->shape();
  const float* x = args.inputs[0]->as<float>().data();
  float* y = args.outputs[0]->mut<float>().data();
  for (int64_t plane = 0; plane < out[0] * out[1]; ++plane, x += in[2] * in[3]) {
    for (int64_t h = 0; h < out[2]; ++h) {
      for (int64_t w = 0; w < out[3]; ++w) {
        float best = -std::numeric_limits<float>::infinity();
        for (int64_t i = 0; i < window.kernel[0]; ++i) {
          const int64_t row = window.input_row(h, i);
          if (row < 0 || row >= in[2]) continue;
          for (int64_t j = 0; j < window.kernel[1]; ++j) {
            const int64_t column = window.input_column(w, j);
            if (column >= 0 && column < in[3]) best = std::max(best, x[row * in[3] + column]);
          }
        }
        *y++ = best;
      }
    }
  }
  return {};
}

Result<Converted> from_onnx(const ForeignNode& node) {
  if (node.int_or("storage_order", 0) != 0) {
    return error(Code::kUnsupported, "storage_order is {}", node.int_or("storage_order", 0));
  }
  return pool_from_onnx(node);
}

const OnnxRow kOnnx[] = {{"MaxPool", from_onnx}};

Status to_onnx(OnnxForm& form) {
  Attrs attrs = window_to_onnx(form.node(), attr<Ints>(form.node(), "kernel"));
  attrs["ceil_mode"] = attr<int64_t>(form.node(), "ceil_mode");
  return write_as(form, "MaxPool", std::move(attrs));
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[1,3,9,9]
      y = max_pool2d(x) kernel=[5,5] pads=[2,2,2,2]
      output y
    })"},
    {R"(graph {
      input x: f32[2,3,8,7]
      y = max_pool2d(x) kernel=[3,2] strides=[2,2] pads=[1,0,1,0] dilations=[1,2] ceil_mode=1
      output y
    })"},
};

}  // namespace

extern const OpDef op_max_pool2d;
const OpDef op_max_pool2d = {
    .name = "max_pool2d",
    .summary = "largest value of every window",
    .attrs = kAttrs,
    .infer = infer_pool,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

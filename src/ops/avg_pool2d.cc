// avg_pool2d: the mean of every window. Padding counts as zeros (PyTorch's default) or does not
// count; what ceil_mode lets stick out behind the padding never counts.
#include <algorithm>

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
    {"dilations", Ints{1, 1}, "must be 1, 1"},
    {"ceil_mode", int64_t{0}, "1: a window that sticks out behind the picture counts too"},
    {"count_include_pad", int64_t{1}, "1: padding counts as zeros"},
};

Result<Types> infer(const InferArgs& args) {
  const Ints& dilations = attr<Ints>(args.node, "dilations");
  if (dilations != Ints{1, 1}) {
    return error(Code::kUnsupported, "dilations are {}, only 1, 1 is supported",
                 shape_text(dilations));
  }
  return infer_pool(args);
}

// One direction of a window: the pixels from `begin` to `end`, divided as if they were `count`.
struct Span {
  int64_t begin = 0, end = 0, count = 0;
};

Span span_of(int64_t start, int64_t kernel, int64_t size, int64_t pad_after, bool include_pad) {
  const int64_t padded_end = std::min(start + kernel, size + pad_after);
  Span span{.begin = std::max<int64_t>(start, 0), .end = std::min(padded_end, size), .count = 0};
  span.count = include_pad ? padded_end - start : span.end - span.begin;
  return span;
}

Status eval(const EvalArgs& args) {
  FERRY_TRY(window, pool_window(args.node));
  const bool include_pad = attr<int64_t>(args.node, "count_include_pad") != 0;
  const Shape& in = args.inputs[0]->shape();
  const Shape& out = args.outputs[0]->shape();
  const float* x = args.inputs[0]->as<float>().data();
  float* y = args.outputs[0]->mut<float>().data();
  for (int64_t plane = 0; plane < out[0] * out[1]; ++plane, x += in[2] * in[3]) {
    for (int64_t h = 0; h < out[2]; ++h) {
      const Span rows =
          span_of(window.input_row(h, 0), window.kernel[0], in[2], window.pad[2], include_pad);
      for (int64_t w = 0; w < out[3]; ++w) {
        const Span columns =
            span_of(window.input_column(w, 0), window.kernel[1], in[3], window.pad[3], include_pad);
        double sum = 0;
        for (int64_t row = rows.begin; row < rows.end; ++row) {
          for (int64_t column = columns.begin; column < columns.end; ++column) {
            sum += x[row * in[3] + column];
          }
        }
        const int64_t count = std::max<int64_t>(rows.count * columns.count, 1);
        *y++ = static_cast<float>(sum / static_cast<double>(count));
      }
    }
  }
  return {};
}

Result<Converted> from_onnx(const ForeignNode& node) {
  FERRY_TRY(converted, pool_from_onnx(node));
  converted.attrs["count_include_pad"] = node.int_or("count_include_pad", 0);
  return converted;
}

const OnnxRow kOnnx[] = {{"AveragePool", from_onnx}};

Status to_onnx(OnnxForm& form) {
  Attrs attrs = window_to_onnx(form.node(), attr<Ints>(form.node(), "kernel"));
  attrs.erase("dilations");  // 1, 1; ONNX has them from opset 19 on
  attrs["ceil_mode"] = attr<int64_t>(form.node(), "ceil_mode");
  attrs["count_include_pad"] = attr<int64_t>(form.node(), "count_include_pad");
  return write_as(form, "AveragePool", std::move(attrs));
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[1,3,8,9]
      y = avg_pool2d(x) kernel=[3,2] strides=[2,2] pads=[1,1,1,1]
      output y
    })"},
    {R"(graph {
      input x: f32[2,3,8,7]
      y = avg_pool2d(x) kernel=[3,3] strides=[2,2] pads=[1,0,1,0] ceil_mode=1 count_include_pad=0
      output y
    })"},
};

}  // namespace

extern const OpDef op_avg_pool2d;
const OpDef op_avg_pool2d = {
    .name = "avg_pool2d",
    .summary = "mean of every window",
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

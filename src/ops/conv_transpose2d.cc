// conv_transpose2d: the gradient of conv2d by its input (PyTorch's ConvTranspose2d): every input
// pixel adds x[n, c, h, w] * weight[c, o, i, j] to y[n, o, h*stride + i*dilation - pad, …]; then
// bias and a fused activation. output size = (in - 1)*stride - pads + (kernel - 1)*dilation + 1 +
// output_padding.
#include <algorithm>

#include "ops/support/activation.h"
#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/window.h"

namespace ferry::ops {

using namespace graph;

namespace {

constexpr size_t kX = 0, kWeight = 1, kBias = 2;

const AttrDef kAttrs[] = {
    {"strides", Ints{1, 1}, "rows, columns"},
    {"pads", Ints{0, 0, 0, 0}, "top, left, bottom, right: cut off the output"},
    {"dilations", Ints{1, 1}, "rows, columns"},
    {"output_padding", Ints{0, 0}, "rows, columns added at the bottom and right"},
    {"groups", int64_t{1}, "channel groups; weight is [in, out / groups, rows, columns]"},
    {"activation", std::string("none"),
     "applied to the sum: none, or the name of an activation op"},
    {"alpha", 0.0, "the activation's parameter, where it has one"},
};

Result<Types> infer(const InferArgs& args) {
  FERRY_CHECK_OK(need_f32(args));
  FERRY_CHECK_OK(need_rank(args, kX, 4, "input"));
  FERRY_CHECK_OK(need_rank(args, kWeight, 4, "weight"));
  FERRY_CHECK_OK(find_activation(attr<std::string>(args.node, "activation")));
  const Shape& x = args.inputs[kX]->shape;
  const Shape& w = args.inputs[kWeight]->shape;
  const int64_t groups = attr<int64_t>(args.node, "groups");
  if (groups < 1 || w[0] < 1 || w[0] != x[1] || w[0] % groups != 0) {
    return error(Code::kInvalid, "weight {} with {} groups does not fit an input of {} channels",
                 shape_text(w), groups, x[1]);
  }
  // groups divides w[0], which a tensor has, so the product cannot overflow by much; still, it may
  // be large.
  const int64_t out_c = saturating_product(w[1], groups);
  FERRY_CHECK_OK(need_shape(args, kBias, {out_c}, "bias"));
  FERRY_TRY(window, Window::from_node(args.node, w[2], w[3]));
  const Ints& extra = attr<Ints>(args.node, "output_padding");
  Shape y = {x[0], out_c, 0, 0};
  for (size_t i = 0; i < 2; ++i) {
    if (extra.size() != 2 || extra[i] < 0 ||
        extra[i] >= std::max(window.stride[i], window.dilation[i])) {
      return error(Code::kInvalid,
                   "output_padding is {}, needs two numbers below stride or dilation",
                   shape_text(extra));
    }
    if (x[2 + i] < 1) return error(Code::kInvalid, "input {} has no pixels", shape_text(x));
    y[2 + i] = (x[2 + i] - 1) * window.stride[i] - window.pad[i] - window.pad[i + 2] +
               (window.kernel[i] - 1) * window.dilation[i] + 1 + extra[i];
    if (y[2 + i] < 1) {
      return error(Code::kInvalid, "pads {} leave nothing of the output",
                   shape_text(attr<Ints>(args.node, "pads")));
    }
  }
  return one_output(DType::kF32, std::move(y));
}

Status eval(const EvalArgs& args) {
  const Shape& in = args.inputs[kX]->shape();
  const Shape& out = args.outputs[0]->shape();
  const Shape& w = args.inputs[kWeight]->shape();
  FERRY_TRY(window, Window::from_node(args.node, w[2], w[3]));
  FERRY_TRY(activation, find_activation(attr<std::string>(args.node, "activation")));
  const auto alpha = static_cast<float>(attr<double>(args.node, "alpha"));
  const int64_t group_in = in[1] / attr<int64_t>(args.node, "groups");
  const float* xs = args.inputs[kX]->as<float>().data();
  const float* ws = args.inputs[kWeight]->as<float>().data();
  const Tensor* bias = input_or_null(args, kBias);
  float* ys = args.outputs[0]->mut<float>().data();

  for (int64_t n = 0; n < out[0]; ++n) {
    for (int64_t o = 0; o < out[1]; ++o) {
      float* plane = ys + (n * out[1] + o) * out[2] * out[3];
      std::fill_n(plane, out[2] * out[3], bias ? bias->as<float>()[static_cast<size_t>(o)] : 0.0f);
      const int64_t group = o / w[1];
      for (int64_t c = group * group_in; c < (group + 1) * group_in; ++c) {
        const float* x = xs + (n * in[1] + c) * in[2] * in[3];
        const float* kernel = ws + (c * w[1] + o % w[1]) * w[2] * w[3];
        for (int64_t i = 0; i < w[2]; ++i) {
          for (int64_t j = 0; j < w[3]; ++j) {
            for (int64_t h = 0; h < in[2]; ++h) {
              // The convolution whose gradient this is would read row `row` for its output row h.
              const int64_t row = window.input_row(h, i);
              if (row < 0 || row >= out[2]) continue;
              for (int64_t v = 0; v < in[3]; ++v) {
                const int64_t column = window.input_column(v, j);
                if (column < 0 || column >= out[3]) continue;
                plane[row * out[3] + column] += x[h * in[3] + v] * kernel[i * w[3] + j];
              }
            }
          }
        }
      }
      for (int64_t i = 0; i < out[2] * out[3]; ++i) plane[i] = activation(plane[i], alpha);
    }
  }
  return {};
}

int64_t macs(const InferArgs& args) {
  if (output_elements(args) == 0) return 0;
  const Shape& w = args.inputs[kWeight]->shape;
  return saturating_product(elements(args.inputs[kX]->shape), w[1] * w[2] * w[3]);
}

Result<Converted> from_onnx(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 2, 3));
  const std::string auto_pad = node.string_or("auto_pad", "NOTSET");
  if (auto_pad != "NOTSET" && auto_pad != "VALID") {
    return error(Code::kUnsupported, "auto_pad '{}' is not supported, only explicit pads",
                 auto_pad);
  }
  if (node.has("output_shape")) {
    return error(Code::kUnsupported,
                 "output_shape {} is not supported, only pads and output_padding",
                 shape_text(node.ints_or("output_shape", {})));
  }
  FERRY_TRY(window, Window::from_onnx(node, node.inputs[kWeight]->shape));
  Attrs attrs = window.attrs();
  attrs["groups"] = node.int_or("group", 1);
  attrs["output_padding"] = node.ints_or("output_padding", {0, 0});
  return with_inputs(node, 3, std::move(attrs));
}

const OnnxRow kOnnx[] = {{"ConvTranspose", from_onnx}};

Status to_onnx(OnnxForm& form) {
  const Shape& w = form.shape(kWeight);
  Attrs attrs = window_to_onnx(form.node(), {w[2], w[3]});
  attrs["group"] = attr<int64_t>(form.node(), "groups");
  attrs["output_padding"] = attr<Ints>(form.node(), "output_padding");
  const Ref sum = form.add("ConvTranspose", form.inputs(), std::move(attrs));
  FERRY_CHECK_OK(add_fused_activation(form, sum));
  return {};
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,4,5,6]
      const w: f32[4,3,2,2] = uniform(1, -1, 1)
      const b: f32[3] = uniform(2, -1, 1)
      y = conv_transpose2d(x, w, b) strides=[2,2]
      output y
    })"},
    {R"(graph {
      input x: f32[1,6,4,5]
      const w: f32[6,1,4,3] = uniform(1, -1, 1)
      y = conv_transpose2d(x, w) groups=6 strides=[2,3] pads=[1,1,2,0] output_padding=[1,2] activation="silu"
      output y
    })"},
    {R"(graph {
      input x: f32[1,4,4,4]
      const w: f32[4,2,3,3] = uniform(1, -1, 1)
      y = conv_transpose2d(x, w) groups=2 dilations=[2,1] pads=[1,1,1,1]
      output y
    })"},
};

}  // namespace

extern const OpDef op_conv_transpose2d;
const OpDef op_conv_transpose2d = {
    .name = "conv_transpose2d",
    .summary = "transposed two-dimensional convolution with optional bias and fused activation",
    .min_inputs = 2,
    .max_inputs = 3,
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .macs = macs,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

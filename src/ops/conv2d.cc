// conv2d: y[n, o, h, w] = bias[o] + sum over c, i, j of x[n, g*C + c, h*stride + i*dilation - pad,
// …] * weight[o, c, i, j], then the residual and the activation that a pass may have fused in.
// Padding reads as zero.
#include <algorithm>

#include "graph/op_def.h"
#include "ops/support/activation.h"
#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/window.h"

namespace ferry::ops {

using namespace graph;

namespace {

constexpr int kX = 0, kWeight = 1, kBias = 2, kResidual = 3;

const AttrDef kAttrs[] = {
    {"strides", Ints{1, 1}, "rows, columns"},
    {"pads", Ints{0, 0, 0, 0}, "top, left, bottom, right"},
    {"dilations", Ints{1, 1}, "rows, columns"},
    {"groups", int64_t{1}, "channel groups; input and output channels divide by it"},
    {"activation", std::string("none"),
     "applied to the sum: none, or the name of an activation op"},
    {"alpha", 0.0, "the activation's parameter, where it has one"},
    {"residual", std::string("none"),
     "how input 3 joins: after (act(conv) + r), before (act(conv + r)), before_up2 (act(conv + "
     "nearest2x(r)))"},
};

Result<Types> infer(const InferArgs& args) {
  FERRY_CHECK_OK(need_f32(args));
  FERRY_CHECK_OK(need_rank(args, kX, 4, "input"));
  FERRY_CHECK_OK(need_rank(args, kWeight, 4, "weight"));
  const Shape& x = args.inputs[kX]->shape;
  const Shape& w = args.inputs[kWeight]->shape;
  const int64_t groups = attr<int64_t>(args.node, "groups");
  if (groups < 1 || w[0] < 1 || w[0] % groups != 0 || x[1] % groups != 0 || w[1] != x[1] / groups) {
    return error(Code::kInvalid, "weight {} with {} groups does not fit an input of {} channels",
                 shape_text(w), groups, x[1]);
  }
  FERRY_CHECK_OK(need_shape(args, kBias, {w[0]}, "bias"));
  FERRY_TRY(window, Window::from_node(args.node, w[2], w[3]));
  FERRY_TRY(size, window.output_size(x[2], x[3]));
  const Shape y = {x[0], w[0], size[0], size[1]};

  const std::string& mode = attr<std::string>(args.node, "residual");
  const bool has_residual = input_or_null(args, kResidual) != nullptr;
  if (has_residual == (mode == "none")) {
    return error(Code::kInvalid, "residual mode '{}' {} a residual input", mode,
                 has_residual ? "with" : "without");
  }
  if (has_residual) {
    const Shape& r = args.inputs[kResidual]->shape;
    if (mode != "after" && mode != "before" && mode != "before_up2") {
      return error(Code::kInvalid, "unknown residual mode '{}'", mode);
    }
    const bool fits =
        mode == "before_up2" ? r.size() == 4 && Shape{r[0], r[1], r[2] * 2, r[3] * 2} == y : r == y;
    if (!fits)
      return error(Code::kInvalid, "residual is {}, the output {}", shape_text(r), shape_text(y));
  }
  FERRY_CHECK_OK(find_activation(attr<std::string>(args.node, "activation")));
  return one_output(DType::kF32, y);
}

Status eval(const EvalArgs& args) {
  const Tensor& x = *args.inputs[kX];
  const Tensor& weight = *args.inputs[kWeight];
  const Tensor* bias = input_or_null(args, kBias);
  const Tensor* residual = input_or_null(args, kResidual);
  Tensor& y = *args.outputs[0];
  FERRY_TRY(window, Window::from_node(args.node, weight.shape()[2], weight.shape()[3]));
  FERRY_TRY(activation, find_activation(attr<std::string>(args.node, "activation")));
  const auto alpha = static_cast<float>(attr<double>(args.node, "alpha"));
  const std::string& mode = attr<std::string>(args.node, "residual");

  const int64_t groups = attr<int64_t>(args.node, "groups");
  const int64_t in_h = x.shape()[2], in_w = x.shape()[3];
  const int64_t out_c = y.shape()[1], out_h = y.shape()[2], out_w = y.shape()[3];
  const int64_t group_in = weight.shape()[1], group_out = out_c / groups;
  const float* xs = x.as<float>().data();
  const float* ws = weight.as<float>().data();
  float* ys = y.mut<float>().data();

  for (int64_t n = 0; n < y.shape()[0]; ++n) {
    for (int64_t o = 0; o < out_c; ++o) {
      const int64_t first_c = o / group_out * group_in;
      float* plane = ys + (n * out_c + o) * out_h * out_w;
      std::fill_n(plane, out_h * out_w, bias ? bias->as<float>()[static_cast<size_t>(o)] : 0.0f);
      for (int64_t c = 0; c < group_in; ++c) {
        const float* in = xs + (n * x.shape()[1] + first_c + c) * in_h * in_w;
        for (int64_t i = 0; i < window.kernel[0]; ++i) {
          for (int64_t j = 0; j < window.kernel[1]; ++j) {
            const float w = ws[((o * group_in + c) * window.kernel[0] + i) * window.kernel[1] + j];
            for (int64_t h = 0; h < out_h; ++h) {
              const int64_t row = window.input_row(h, i);
              if (row < 0 || row >= in_h) continue;
              for (int64_t v = 0; v < out_w; ++v) {
                const int64_t column = window.input_column(v, j);
                if (column >= 0 && column < in_w)
                  plane[h * out_w + v] += w * in[row * in_w + column];
              }
            }
          }
        }
      }
      for (int64_t h = 0; h < out_h; ++h) {
        for (int64_t v = 0; v < out_w; ++v) {
          float& out = plane[h * out_w + v];
          if (residual == nullptr) {
            out = activation(out, alpha);
            continue;
          }
          const int64_t shrink = mode == "before_up2" ? 2 : 1;
          const float r = residual->as<float>()[static_cast<size_t>(
              ((n * out_c + o) * (out_h / shrink) + h / shrink) * (out_w / shrink) + v / shrink)];
          out = mode == "after" ? activation(out, alpha) + r : activation(out + r, alpha);
        }
      }
    }
  }
  return {};
}

int64_t macs(const InferArgs& args) {
  const int64_t outputs = output_elements(args);
  if (outputs == 0) return 0;
  const Shape& w = args.inputs[kWeight]->shape;
  return saturating_product(outputs, w[1] * w[2] * w[3]);
}

Result<Converted> from_onnx(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 2, 3));
  FERRY_TRY(window, Window::from_onnx(node, node.inputs[kWeight]->shape));
  Attrs attrs = window.attrs();
  attrs["groups"] = node.int_or("group", 1);
  return with_inputs(node, 3, std::move(attrs));
}

const OnnxRow kOnnx[] = {{"Conv", from_onnx}};

Status to_onnx(OnnxForm& form) {
  const Shape& w = form.shape(kWeight);
  Attrs attrs = window_to_onnx(form.node(), {w[2], w[3]});
  attrs["group"] = attr<int64_t>(form.node(), "groups");
  std::vector<Ref> inputs = {form.input(kX), form.input(kWeight)};
  if (form.has_input(kBias)) inputs.push_back(form.input(kBias));
  const Ref sum = form.add("Conv", std::move(inputs), std::move(attrs));

  const std::string& mode = attr<std::string>(form.node(), "residual");
  Ref residual = form.input(kResidual);
  if (mode == "none") {
    FERRY_CHECK_OK(add_fused_activation(form, sum));
  } else if (mode == "after") {
    FERRY_TRY(y, add_fused_activation(form, sum));
    form.add("Add", {y, residual});
  } else {
    if (mode == "before_up2") {
      residual = add_resize(form, residual, {.scales = {2, 2}},
                            {{"mode", std::string("nearest")},
                             {"coordinate_transformation_mode", std::string("asymmetric")},
                             {"nearest_mode", std::string("floor")}});
    }
    FERRY_CHECK_OK(add_fused_activation(form, form.add("Add", {sum, residual})));
  }
  return {};
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[1,3,9,7]
      const w: f32[4,3,3,3] = uniform(1, -1, 1)
      const b: f32[4] = uniform(2, -1, 1)
      y = conv2d(x, w, b) strides=[2,2] pads=[1,1,1,1] activation="silu"
      output y
    })"},
    {R"(graph {
      input x: f32[2,6,8,8]
      const w: f32[6,2,5,3] = uniform(1, -1, 1)
      y = conv2d(x, w) groups=3 dilations=[1,2] pads=[2,2,2,2]
      output y
    })"},
    {R"(graph {
      input x: f32[1,16,10,10]
      const w: f32[16,16,3,3] = uniform(1, -0.2, 0.2)
      const b: f32[16] = uniform(2, -1, 1)
      y = conv2d(x, w, b, x) pads=[1,1,1,1] activation="silu" residual="after"
      output y
    })"},
};

}  // namespace

extern const OpDef op_conv2d;
const OpDef op_conv2d = {
    .name = "conv2d",
    .summary = "two-dimensional convolution with optional bias, fused activation and residual",
    .min_inputs = 2,
    .max_inputs = 4,
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .macs = macs,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

// fold_batch_norm: a factor and an offset per channel move into the weights of a convolution next
// to them.
//
//   bn(conv(x))         w'[o, …] = w[o, …] * factor[o]       b'[o] = b[o] * factor[o] + offset[o]
//   conv(bn(x))         w'[o, c, …] = w[o, c, …] * factor[c]  b'[o] = b[o] + sum over c, i, j of
//   w[o, c, i, j] * offset[c] bn(x)               a depthwise 1x1 convolution, which can take an
//   activation
//
// The second form needs an offset of zero or a convolution without padding: padding is zero *after*
// the batch norm. What holds for batch_norm holds for mul, div, add and sub with a constant per
// channel, as exporters and people write it (x / 255). All is calculated in double. Only where
// nobody else reads the value between the two.
#include <cmath>

#include "passes/passes.h"
#include "passes/support.h"

namespace ferry::passes {

using namespace graph;

namespace {

// y = factor[c] * x + offset[c]
struct Affine {
  ValueId x = kNone;
  std::vector<double> factor{}, offset{};
};

// The constant as one number a channel of a value of type `data`; nothing when it varies along
// other axes.
std::optional<std::vector<double>> per_channel(const Tensor& constant, const TensorType& data) {
  const auto values = constant.as<float>();
  const auto channels = static_cast<size_t>(data.shape[1]);
  if (values.size() == 1 && constant.shape().size() <= data.shape.size())
    return std::vector<double>(channels, values[0]);
  const size_t rank = constant.shape().size(), channel_axis = data.shape.size() - 1;
  if (values.size() != channels || rank > data.shape.size()) return std::nullopt;
  for (size_t i = 0; i < rank; ++i) {
    const bool is_channel = i + channel_axis == rank;  // axis 1 when counted from the end
    if (constant.shape()[i] != (is_channel ? data.shape[1] : 1)) return std::nullopt;
  }
  return std::vector<double>(values.begin(), values.end());
}

std::optional<Affine> batch_norm(const Graph& graph, const Node& node) {
  const Tensor* p[4];
  for (size_t i = 0; i < 4; ++i) {
    p[i] = f32_constant(graph, node.inputs[i + 1]);
    if (p[i] == nullptr) return std::nullopt;
  }
  Affine out{.x = node.inputs[0]};
  const double epsilon = attr<double>(node, "epsilon");
  for (size_t c = 0; c < p[0]->as<float>().size(); ++c) {
    const double scale = p[0]->as<float>()[c], bias = p[1]->as<float>()[c];
    const double mean = p[2]->as<float>()[c], variance = p[3]->as<float>()[c];
    out.factor.push_back(scale / std::sqrt(variance + epsilon));
    out.offset.push_back(bias - mean * out.factor.back());
  }
  return out;
}

std::optional<Affine> arithmetic(const Graph& graph, const Node& node) {
  const std::string_view op = node.op->name;
  if (op != "mul" && op != "div" && op != "add" && op != "sub") return std::nullopt;
  if (!is_linear(node)) return std::nullopt;
  const Tensor* left = f32_constant(graph, node.inputs[0]);
  const Tensor* right = f32_constant(graph, node.inputs[1]);
  if ((left == nullptr) == (right == nullptr) || (left != nullptr && op == "div"))
    return std::nullopt;
  Affine out{.x = node.inputs[left ? 1 : 0]};
  const TensorType& type = graph.value(out.x).type;
  if (type.shape.size() != 4 || graph.value(node.outputs[0]).type != type) return std::nullopt;
  const auto values = per_channel(left ? *left : *right, type);
  if (!values) return std::nullopt;
  for (const double v : *values) {
    const bool product = op == "mul" || op == "div";
    out.factor.push_back(op == "mul" ? v : op == "div" ? 1 / v : op == "sub" && left ? -1 : 1);
    out.offset.push_back(product ? 0 : op == "sub" && !left ? -v : v);
  }
  return out;
}

std::optional<Affine> affine_of(const Graph& graph, const Node& node) {
  return node.op->name == "batch_norm" ? batch_norm(graph, node) : arithmetic(graph, node);
}

// The weight as rows of `inner` elements, row r times factor(r).
template <class F>
Tensor scale_rows(const Tensor& weight, size_t inner, F factor) {
  const auto old = weight.as<float>();
  std::vector<float> out(old.begin(), old.end());
  for (size_t r = 0, i = 0; i < out.size(); ++r) {
    const double f = factor(r);
    for (const size_t end = i + inner; i < end; ++i) out[i] = static_cast<float>(out[i] * f);
  }
  return Tensor::of<float>(weight.shape(), std::move(out));
}

// New weights in place of the old ones, which other nodes may share, over input `x`.
void set_weights(Editor& edit, int n, ValueId x, Tensor weight,
                 const std::optional<std::vector<double>>& bias) {
  const std::string name = edit.node(n).name;
  std::vector<ValueId> inputs = edit.node(n).inputs;
  inputs[kConvX] = x;
  inputs[kConvWeight] = edit.constant(name + ".weight", std::move(weight));
  if (bias) {
    inputs.resize(std::max(inputs.size(), kConvBias + 1), kNone);
    const auto channels = static_cast<int64_t>(bias->size());
    inputs[kConvBias] = edit.constant(name + ".bias", to_f32({channels}, *bias));
  }
  edit.set_inputs(n, std::move(inputs));
}

// Every output channel of the convolution times factor[o]. conv2d and linear are [out, …],
// conv_transpose2d is [in, out / groups, rows, columns].
Tensor scale_outputs(const Node& conv, const Tensor& weight, const std::vector<double>& factor) {
  const Shape& shape = weight.shape();
  if (conv.op->name != "conv_transpose2d") {
    return scale_rows(weight, static_cast<size_t>(weight.size()) / factor.size(),
                      [&](size_t o) { return factor[o]; });
  }
  const auto group_out = static_cast<size_t>(shape[1]);
  const auto group_in = static_cast<size_t>(shape[0] / attr<int64_t>(conv, "groups"));
  return scale_rows(weight, static_cast<size_t>(shape[2] * shape[3]), [&](size_t row) {
    return factor[row / group_out / group_in * group_out + row % group_out];
  });
}

// bn(conv(x)): true when the convolution took it.
bool fold_backward(Editor& edit, int n, const Affine& affine) {
  const int c = edit.producer(affine.x);
  if (c < 0 || edit.only_user(affine.x) < 0 || affine.factor.empty()) return false;
  const Node& conv = edit.node(c);
  const bool known =
      conv.op->name == "conv2d" || conv.op->name == "conv_transpose2d" ||
      (conv.op->name == "linear" && edit.graph().value(affine.x).type.shape.size() == 2);
  if (!known || !is_linear(conv) || !has_constant_weights(edit.graph(), conv)) return false;

  const Tensor& old = *f32_constant(edit.graph(), conv.inputs[kConvWeight]);
  Tensor weight = scale_outputs(conv, old, affine.factor);
  std::vector<double> bias =
      bias_of(edit.graph(), conv, static_cast<int64_t>(affine.factor.size()));
  for (size_t o = 0; o < bias.size(); ++o) bias[o] = bias[o] * affine.factor[o] + affine.offset[o];
  const ValueId out = edit.node(n).outputs[0];
  set_weights(edit, c, conv.inputs[kConvX], std::move(weight), bias);
  edit.take_output(c, 0, out);
  return true;
}

// conv(bn(x)): true when the convolution took it.
bool fold_forward(Editor& edit, int n, const Affine& affine) {
  const ValueId between = edit.node(n).outputs[0];
  const int c = edit.only_user(between);
  if (!edit.is(c, "conv2d") || edit.node(c).inputs[kConvX] != between) return false;
  const Node& conv = edit.node(c);
  if (!has_constant_weights(edit.graph(), conv)) return false;
  bool pads = false, offsets = false;
  for (const int64_t pad : attr<Ints>(conv, "pads")) pads |= pad != 0;
  for (const double offset : affine.offset) offsets |= offset != 0;
  if (pads && offsets) return false;

  const Tensor old = *f32_constant(edit.graph(), conv.inputs[kConvWeight]);
  const Shape& shape = old.shape();
  const auto kernel = static_cast<size_t>(shape[2] * shape[3]);
  const auto group_in = static_cast<size_t>(shape[1]);
  const auto group_out = static_cast<size_t>(shape[0] / attr<int64_t>(conv, "groups"));
  // Row o * group_in + c of the weight reads channel c of o's group.
  const auto channel = [=](size_t row) {
    return row / group_in / group_out * group_in + row % group_in;
  };
  std::optional<std::vector<double>> bias;
  if (offsets) {
    bias = bias_of(edit.graph(), conv, shape[0]);
    const auto values = old.as<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t row = i / kernel;
      (*bias)[row / group_in] += values[i] * affine.offset[channel(row)];
    }
  }
  Tensor weight = scale_rows(old, kernel, [&](size_t row) { return affine.factor[channel(row)]; });
  set_weights(edit, c, affine.x, std::move(weight), bias);
  return true;
}

// bn(x): a depthwise 1x1 convolution.
Result<bool> to_depthwise(Editor& edit, int n, const Affine& affine) {
  if (!edit.is(n, "batch_norm") || edit.graph().value(affine.x).type.shape.size() != 4)
    return false;
  const std::string name = edit.node(n).name;
  const ValueId out = edit.node(n).outputs[0];
  const auto channels = static_cast<int64_t>(affine.factor.size());
  const ValueId weight =
      edit.constant(name + ".weight", to_f32({channels, 1, 1, 1}, affine.factor));
  const ValueId bias = edit.constant(name + ".bias", to_f32({channels}, affine.offset));
  FERRY_TRY(made,
            edit.insert_op(n, "conv2d", name, {affine.x, weight, bias}, {{"groups", channels}}));
  edit.take_output(edit.producer(made), 0, out);
  return true;
}

}  // namespace

Result<int> fold_batch_norm(Graph& graph) {
  Editor edit(graph);
  int rewrites = 0;
  const int nodes = edit.size();
  for (int n = 0; n < nodes; ++n) {
    if (!edit.alive(n)) continue;
    const auto affine = affine_of(graph, edit.node(n));
    if (affine && fold_backward(edit, n, *affine)) ++rewrites;
  }
  // Last to first, so that of two factors in front of a convolution the nearer one goes in first.
  for (int n = nodes; n-- > 0;) {
    if (!edit.alive(n)) continue;
    const auto affine = affine_of(graph, edit.node(n));
    if (affine && fold_forward(edit, n, *affine)) ++rewrites;
  }
  for (int n = 0; n < nodes; ++n) {
    if (!edit.is(n, "batch_norm")) continue;
    const auto affine = affine_of(graph, edit.node(n));
    if (!affine) continue;
    FERRY_TRY(done, to_depthwise(edit, n, *affine));
    rewrites += done;
  }
  FERRY_CHECK_OK(edit.finish());
  return rewrites;
}

}  // namespace ferry::passes

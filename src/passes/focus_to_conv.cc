// focus_to_conv: conv k x k(space_to_depth(x)) = conv 2k x 2k(x) with twice the stride and padding.
//
// The stem of v3 to v5: Focus cuts the picture into four interleaved quarters and a 3x3 convolution
// reads them. Pixel (i, j) of a block, seen by kernel element (u, v), is pixel (2u + i, 2v + j) of
// the window in the picture, so the weights are only laid out anew: as many multiply-adds, one read
// of the picture instead of a copy and a read. Exact, also at the border: a row of padding there is
// a block of rows here. Any block, stride and padding; no dilation, no groups.
#include "ops/support/blocks.h"
#include "passes/passes.h"
#include "passes/support.h"

namespace ferry::passes {

using namespace graph;

namespace {

constexpr int64_t kLargestKernel = 32;

// [out, C*b*b, kh, kw] → [out, C, kh*b, kw*b]
Tensor unfold(const Tensor& weight, int64_t block, ops::BlockOrder order) {
  const Shape& w = weight.shape();
  const int64_t channels = w[1] / (block * block), kh = w[2] * block, kw = w[3] * block;
  std::vector<float> values;
  values.reserve(static_cast<size_t>(weight.size()));
  for (int64_t o = 0; o < w[0]; ++o) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t row = 0; row < kh; ++row) {
        for (int64_t column = 0; column < kw; ++column) {
          const int64_t from =
              ops::block_channel(order, row % block, column % block, block, c, channels);
          const int64_t at = ((o * w[1] + from) * w[2] + row / block) * w[3] + column / block;
          values.push_back(weight.as<float>()[static_cast<size_t>(at)]);
        }
      }
    }
  }
  return Tensor::of<float>({w[0], channels, kh, kw}, std::move(values));
}

Result<bool> rewrite(Editor& edit, int n) {
  const Node& conv = edit.node(n);
  const int focus = edit.fusable(conv.inputs[kConvX], "space_to_depth");
  const Tensor* weight = f32_constant(edit.graph(), conv.inputs[kConvWeight]);
  if (focus < 0 || weight == nullptr || attr<int64_t>(conv, "groups") != 1 ||
      attr<Ints>(conv, "dilations") != Ints{1, 1}) {
    return false;
  }
  const int64_t block = attr<int64_t>(edit.node(focus), "block");
  if (weight->shape()[2] * block > kLargestKernel || weight->shape()[3] * block > kLargestKernel)
    return false;
  FERRY_TRY(order, ops::block_order(attr<std::string>(edit.node(focus), "order")));

  std::vector<ValueId> inputs = conv.inputs;
  inputs[kConvX] = edit.node(focus).inputs[0];
  inputs[kConvWeight] = edit.constant(conv.name + ".weight", unfold(*weight, block, order));
  for (const char* name : {"strides", "pads"}) {
    for (int64_t& v : std::get<Ints>(edit.attrs(n)[name])) v *= block;
  }
  edit.set_inputs(n, std::move(inputs));
  return true;
}

}  // namespace

Result<int> focus_to_conv(Graph& graph) {
  Editor edit(graph);
  int rewrites = 0;
  for (int n = 0; n < edit.size(); ++n) {
    if (!edit.is(n, "conv2d")) continue;
    FERRY_TRY(done, rewrite(edit, n));
    rewrites += done;
  }
  FERRY_CHECK_OK(edit.finish());
  return rewrites;
}

}  // namespace ferry::passes

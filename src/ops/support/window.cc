#include "ops/support/window.h"

#include <algorithm>

namespace ferry::ops {

using namespace graph;

namespace {

template <size_t N>
Status read(const Ints& values, std::array<int64_t, N>& out, int64_t least, std::string_view what) {
  if (values.size() != N)
    return error(Code::kInvalid, "{} has {} numbers, needs {}", what, values.size(), N);
  for (size_t i = 0; i < N; ++i) {
    if (values[i] < least || values[i] > 65536)
      return error(Code::kInvalid, "{} is {}", what, shape_text(values));
    out[i] = values[i];
  }
  return {};
}

// SAME_UPPER puts the odd pixel of padding behind, SAME_LOWER before (ONNX Conv).
void pad_same(Window& window, const Shape& input, bool upper) {
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t size = input[2 + axis];
    const int64_t out = (size + window.stride[axis] - 1) / window.stride[axis];
    const int64_t extent = (window.kernel[axis] - 1) * window.dilation[axis] + 1;
    const int64_t total = std::max<int64_t>((out - 1) * window.stride[axis] + extent - size, 0);
    window.pad[axis] = upper ? total / 2 : total - total / 2;
    window.pad[axis + 2] = total - window.pad[axis];
  }
}

}  // namespace

Result<Window> Window::from_node(const Node& node, int64_t kernel_h, int64_t kernel_w) {
  Window window;
  FERRY_CHECK_OK(read(Ints{kernel_h, kernel_w}, window.kernel, 1, "kernel"));
  FERRY_CHECK_OK(read(attr<Ints>(node, "strides"), window.stride, 1, "strides"));
  FERRY_CHECK_OK(read(attr<Ints>(node, "pads"), window.pad, 0, "pads"));
  FERRY_CHECK_OK(read(attr<Ints>(node, "dilations"), window.dilation, 1, "dilations"));
  if (node.attrs.contains("ceil_mode")) window.ceil = attr<int64_t>(node, "ceil_mode") != 0;
  return window;
}

Result<Window> Window::from_onnx(const ForeignNode& node, const Shape& weight) {
  Ints kernel = node.ints_or("kernel_shape", {});
  if (kernel.empty() && weight.size() == 4) kernel = {weight[2], weight[3]};
  if (kernel.size() != 2) {
    return error(Code::kUnsupported, "has {} spatial dimensions, only pictures (2) are supported",
                 kernel.size());
  }
  if (weight.size() == 4 && kernel != Ints{weight[2], weight[3]}) {
    return error(Code::kInvalid, "kernel_shape is {}, the weight is {}", shape_text(kernel),
                 shape_text(weight));
  }
  Window window;
  FERRY_CHECK_OK(read(kernel, window.kernel, 1, "kernel_shape"));
  FERRY_CHECK_OK(read(node.ints_or("strides", {1, 1}), window.stride, 1, "strides"));
  FERRY_CHECK_OK(read(node.ints_or("pads", {0, 0, 0, 0}), window.pad, 0, "pads"));
  FERRY_CHECK_OK(read(node.ints_or("dilations", {1, 1}), window.dilation, 1, "dilations"));
  window.ceil = node.int_or("ceil_mode", 0) != 0;
  const std::string auto_pad = node.string_or("auto_pad", "NOTSET");
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    if (node.inputs[0]->shape.size() != 4) return error(Code::kInvalid, "input is not a picture");
    pad_same(window, node.inputs[0]->shape, auto_pad == "SAME_UPPER");
  } else if (auto_pad != "NOTSET" && auto_pad != "VALID") {
    return error(Code::kInvalid, "unknown auto_pad '{}'", auto_pad);
  }
  return window;
}

Result<std::array<int64_t, 2>> Window::output_size(int64_t h, int64_t w) const {
  std::array<int64_t, 2> out{};
  const std::array<int64_t, 2> size{h, w};
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t extent = (kernel[axis] - 1) * dilation[axis] + 1;
    const int64_t room = size[axis] + pad[axis] + pad[axis + 2] - extent;
    if (room < 0) {
      return error(Code::kInvalid, "a window of {} does not fit {} pixels with padding {}", extent,
                   size[axis], pad[axis] + pad[axis + 2]);
    }
    out[axis] = (ceil ? (room + stride[axis] - 1) / stride[axis] : room / stride[axis]) + 1;
    // A window that starts in the padding behind the picture does not count (PyTorch, ONNX
    // ceil_mode).
    if (ceil && (out[axis] - 1) * stride[axis] >= size[axis] + pad[axis]) --out[axis];
  }
  return out;
}

Attrs Window::attrs() const {
  return {{"strides", Ints(stride.begin(), stride.end())},
          {"pads", Ints(pad.begin(), pad.end())},
          {"dilations", Ints(dilation.begin(), dilation.end())}};
}

}  // namespace ferry::ops

// The sliding window that convolutions and pools share: kernel, stride, padding, dilation, and the
// output's size.
#pragma once

#include <array>
#include <cstdint>

#include "graph/op_def.h"

namespace ferry::ops {

struct Window {
  std::array<int64_t, 2> kernel{1, 1};  // rows, columns
  std::array<int64_t, 2> stride{1, 1};
  std::array<int64_t, 4> pad{0, 0, 0, 0};  // top, left, bottom, right
  std::array<int64_t, 2> dilation{1, 1};
  bool ceil = false;

  // Reads `strides`, `pads`, `dilations` and, where the op has it, `ceil_mode`. Refuses values
  // below 1 (pads: below 0).
  static Result<Window> from_node(const graph::Node& node, int64_t kernel_h, int64_t kernel_w);
  // The same from an ONNX node: kernel_shape (or the weight's), auto_pad (SAME needs the input's
  // size), pads (ONNX order top, left, bottom, right), strides, dilations, ceil_mode. Two spatial
  // dimensions only.
  static Result<Window> from_onnx(const graph::ForeignNode& node, const graph::Shape& weight);

  // Rows and columns of the output for an input of h x w; fails when the kernel does not fit.
  Result<std::array<int64_t, 2>> output_size(int64_t h, int64_t w) const;
  int64_t input_row(int64_t out_row, int64_t kernel_row) const {
    return out_row * stride[0] + kernel_row * dilation[0] - pad[0];
  }
  int64_t input_column(int64_t out_column, int64_t kernel_column) const {
    return out_column * stride[1] + kernel_column * dilation[1] - pad[1];
  }
  graph::Attrs attrs() const;  // strides, pads, dilations
};

}  // namespace ferry::ops

// Walking row-major tensors by strides: what broadcasting, transposing, slicing and reducing share.
// Strides count elements, and are 0 along a broadcast dimension.
#pragma once

#include <array>
#include <cstdint>

#include "graph/tensor.h"

namespace ferry::ops {

graph::Shape row_major_strides(const graph::Shape& shape);

// NumPy's rule: dimensions align from the last, and are equal or one of them is 1.
Result<graph::Shape> broadcast(const graph::Shape& a, const graph::Shape& b);
// Strides that read a tensor of shape `from` at the indices of `to`. REQUIRES: broadcast(from, to)
// is `to`.
graph::Shape broadcast_strides(const graph::Shape& from, const graph::Shape& to);

// Calls f(i, offsets) for every index of `shape` in row-major order: `i` counts 0, 1, …, offsets[k]
// is the sum of index * strides[k]. REQUIRES: each strides[k] has as many entries as shape.
template <size_t N, class F>
void walk(const graph::Shape& shape, const std::array<graph::Shape, N>& strides, F&& f) {
  const int64_t total = graph::elements(shape);
  const size_t rank = shape.size();
  graph::Shape index(rank, 0);
  std::array<int64_t, N> at{};
  const int64_t row = rank == 0 ? 1 : shape[rank - 1];
  for (int64_t i = 0; i < total;) {
    for (int64_t column = 0; column < row; ++column, ++i) {
      f(i, at);
      for (size_t k = 0; k < N && rank > 0; ++k) at[k] += strides[k][rank - 1];
    }
    // The last axis ran past its end: rewind it and carry into the axes before it.
    for (size_t axis = rank; axis-- > 0;) {
      if (axis + 1 == rank) {
        index[axis] = row;
      } else {
        ++index[axis];
        for (size_t k = 0; k < N; ++k) at[k] += strides[k][axis];
      }
      if (index[axis] < shape[axis]) break;
      index[axis] = 0;
      for (size_t k = 0; k < N; ++k) at[k] -= shape[axis] * strides[k][axis];
    }
  }
}

// output[i] = input[offset + sum of index * stride] for every index of output, whatever the dtype
// (the same for both).
void copy_strided(const graph::Tensor& input, int64_t offset, const graph::Shape& strides,
                  graph::Tensor& output);

// The same bytes: what reshape and its relatives do.
void copy_all(const graph::Tensor& input, graph::Tensor& output);

// A shape seen from one axis: [outer, size, inner].
struct AxisView {
  int64_t outer = 1, size = 1, inner = 1;
};
AxisView around_axis(const graph::Shape& shape, size_t axis);

}  // namespace ferry::ops

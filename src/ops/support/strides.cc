#include "ops/support/strides.h"

#include <algorithm>
#include <cstring>

namespace ferry::ops {

using namespace graph;

namespace {

template <size_t kBytes>
void copy_elements(const Tensor& input, int64_t offset, const Shape& strides, Tensor& output) {
  const std::byte* from = input.bytes().data();
  std::byte* to = output.mut_bytes().data();
  walk<1>(output.shape(), {strides}, [&](int64_t i, const std::array<int64_t, 1>& at) {
    std::memcpy(to + i * static_cast<int64_t>(kBytes),
                from + (offset + at[0]) * static_cast<int64_t>(kBytes), kBytes);
  });
}

}  // namespace

Shape row_major_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()));
  for (size_t back = 1; back <= out.size(); ++back) {
    const int64_t from_a = back <= a.size() ? a[a.size() - back] : 1;
    const int64_t from_b = back <= b.size() ? b[b.size() - back] : 1;
    if (from_a != from_b && from_a != 1 && from_b != 1) {
      return error(Code::kInvalid, "shapes {} and {} do not broadcast ({} against {})",
                   shape_text(a), shape_text(b), from_a, from_b);
    }
    out[out.size() - back] = from_a == 1 ? from_b : from_a;
  }
  return out;
}

Shape broadcast_strides(const Shape& from, const Shape& to) {
  const Shape own = row_major_strides(from);
  Shape strides(to.size(), 0);
  for (size_t back = 1; back <= from.size(); ++back) {
    const size_t axis = from.size() - back;
    if (from[axis] != 1) strides[to.size() - back] = own[axis];
  }
  return strides;
}

void copy_strided(const Tensor& input, int64_t offset, const Shape& strides, Tensor& output) {
  switch (dtype_size(output.dtype())) {
    case 1:
      return copy_elements<1>(input, offset, strides, output);
    case 2:
      return copy_elements<2>(input, offset, strides, output);
    case 4:
      return copy_elements<4>(input, offset, strides, output);
    default:
      return copy_elements<8>(input, offset, strides, output);
  }
}

void copy_all(const Tensor& input, Tensor& output) {
  const auto from = input.bytes();
  if (!from.empty()) std::memcpy(output.mut_bytes().data(), from.data(), from.size());
}

AxisView around_axis(const Shape& shape, size_t axis) {
  AxisView view;
  view.size = shape[axis];
  for (size_t i = 0; i < axis; ++i) view.outer *= shape[i];
  for (size_t i = axis + 1; i < shape.size(); ++i) view.inner *= shape[i];
  return view;
}

}  // namespace ferry::ops

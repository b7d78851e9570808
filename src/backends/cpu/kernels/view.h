// A picture of floats in memory: NHWC, where a pixel may be part of a wider one.
//
// Element (n, y, x, c) is data[((n * h + y) * w + x) * stride + c], stride >= c. A value that is
// concatenated with others is a slice of the wider value: its data points at its first channel and
// its stride is the wider value's. Kernels write exactly the c channels of the pixels they own and
// read nothing outside the view's elements. Any 4-byte alignment is right; 64 bytes (slices at
// multiples of 16 channels, strides too) is fastest.
#pragma once

#include <cstdint>

namespace ferry::cpu {

template <class T>
struct Nhwc {
  T* data = nullptr;
  int64_t batch = 1, h = 0, w = 0, c = 0;
  int64_t stride = 0;  // from a pixel to the next, in elements

  int64_t pixels() const { return batch * h * w; }
  T* pixel(int64_t n, int64_t y, int64_t x) const { return data + ((n * h + y) * w + x) * stride; }

  operator Nhwc<const T>() const {
    return {data, batch, h, w, c, stride};
  }  // NOLINT: implicit as T* is
};

using View = Nhwc<float>;
using ConstView = Nhwc<const float>;

}  // namespace ferry::cpu

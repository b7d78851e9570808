// The arithmetic of letterbox.cc, row by row: cv2.resize INTER_LINEAR on 8-bit pixels, and bytes to
// floats.
//
// OpenCV (modules/imgproc/src/resize.cpp) scales 8-bit pictures in integers. With weights a, b of
// 11 bits (a0 + a1 = 2048, from float positions):
//   across   h = S[x0] * a0 + S[x1] * a1                                   20 bits
//   down     v = (((h0 >> 4) * b0) >> 16) + (((h1 >> 4) * b1) >> 16)       10 bits
//   pixel    (v + 2) >> 2
// So a row kept between the two steps is h >> 4, which fits 16 bits. At the left and right edge the
// weights become 2048, 0; at the top and bottom they stay and both rows are the edge's.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "vision/simd.h"

namespace ferry::vision {

// Rows that kernels write may be overrun by this many elements.
inline constexpr int64_t kRowSlack = 64;

template <class T>
struct AlignedAllocator {  // 64 bytes: a vector register, a cache line
  using value_type = T;
  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>&) {}  // NOLINT: allocators convert
  T* allocate(size_t n) {
    return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(64)));
  }
  void deallocate(T* p, size_t) { ::operator delete(p, std::align_val_t(64)); }
  bool operator==(const AlignedAllocator&) const { return true; }
};
template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

// For each output pixel of one axis the two source pixels and their weights.
struct Taps {
  std::vector<int32_t> first, second;     // source positions, inside the picture
  std::vector<int16_t> weight0, weight1;  // of 2048
};
// REQUIRES: 1 <= source, output <= kMaxPictureSide
Taps horizontal_taps(int64_t source, int64_t output);
Taps vertical_taps(int64_t source, int64_t output);

// Horizontal taps in the forms that the row kernels read.
struct RowPlan {
  int64_t pixels = 0;                     // of the output row
  int64_t row_bytes = 0;                  // of a source row; kernels read nothing past it
  bool swap = false;                      // the source is blue first; the output is red first
  std::vector<int32_t> offset0, offset1;  // [pixels] bytes into the source row
  AlignedVector<int16_t> weights;         // [pixels][2]

  // For VBMI: sixteen output samples a group (5 1/3 pixels), their bytes gathered by one permute
  // of one or two registers loaded at `group_base`. `group_loads` 0: the scale is too large.
  int group_loads = 0;
  std::vector<int32_t> group_base;       // bytes into the source row
  AlignedVector<uint8_t> group_bytes;    // [groups][64] positions, odd ones unused
  AlignedVector<int16_t> group_weights;  // [groups][32]
};
RowPlan plan_row(const Taps& taps, int64_t source_pixels, bool swap);

// One row each; `n` counts samples (3 a pixel). Inputs and outputs do not overlap.
struct RowKernels {
  // h >> 4 of every sample of the output row. Overruns `out`.
  void (*across)(const RowPlan& plan, const uint8_t* row, int16_t* out);
  // (v + 2) >> 2. Reads and writes past n, within the slack.
  void (*down)(const int16_t* row0, const int16_t* row1, int weight0, int weight1, int64_t n,
               uint8_t* out);
  // Blue first to red first. Overruns `out`.
  void (*swap)(const uint8_t* row, int64_t pixels, uint8_t* out);
  // byte / 255, correctly rounded. Writes exactly n.
  void (*to_float)(const uint8_t* row, int64_t n, float* out);
  // Red first, interleaved, to three rows. Writes exactly `pixels` each.
  void (*planes)(const uint8_t* row, int64_t pixels, uint8_t* red, uint8_t* green, uint8_t* blue);
};

// REQUIRES: `level` is supported here.
RowKernels row_kernels(Simd level);

// Parts of the table above, by instruction set (letterbox_kernels_x86.cc).
void use_avx2(RowKernels& kernels);
void use_avx512vbmi(RowKernels& kernels);
// The loops that every level falls back on, also for a row's last pixels: from `begin` on.
void across_from(int64_t begin, const RowPlan& plan, const uint8_t* row, int16_t* out);

}  // namespace ferry::vision

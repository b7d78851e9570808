// The tables and the plain loops of letterbox_kernels.h, and the choice among instruction sets.
#include "vision/letterbox_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ferry::vision {
namespace {

constexpr float kWeightScale = 2048.0f;

int16_t weight(float fraction) { return static_cast<int16_t>(std::lrint(fraction * kWeightScale)); }

struct Position {
  int64_t index;
  float fraction;
};

// OpenCV's steps, in its types: the scale is the reciprocal of a ratio in double, the position is
// rounded to float before it is split.
Position position(int64_t output_index, double scale) {
  const float at = static_cast<float>((static_cast<double>(output_index) + 0.5) * scale - 0.5);
  const float floor = std::floor(at);
  return {static_cast<int64_t>(floor), at - floor};
}

double opencv_scale(int64_t source, int64_t output) {
  return 1.0 / (static_cast<double>(output) / static_cast<double>(source));
}

void reserve(Taps& taps, int64_t n) {
  taps.first.resize(n);
  taps.second.resize(n);
  taps.weight0.resize(n);
  taps.weight1.resize(n);
}

void down_portable(const int16_t* row0, const int16_t* row1, int weight0, int weight1, int64_t n,
                   uint8_t* out) {
  for (int64_t i = 0; i < n; ++i) {
    const int sum = ((row0[i] * weight0) >> 16) + ((row1[i] * weight1) >> 16);
    out[i] = static_cast<uint8_t>((sum + 2) >> 2);
  }
}

void across_portable(const RowPlan& plan, const uint8_t* row, int16_t* out) {
  across_from(0, plan, row, out);
}

void swap_portable(const uint8_t* row, int64_t pixels, uint8_t* out) {
  for (int64_t x = 0; x < pixels; ++x) {
    out[3 * x] = row[3 * x + 2];
    out[3 * x + 1] = row[3 * x + 1];
    out[3 * x + 2] = row[3 * x];
  }
}

constexpr std::array<float, 256> kUnit = [] {
  std::array<float, 256> unit{};
  for (int i = 0; i < 256; ++i) unit[i] = static_cast<float>(i) / 255.0f;
  return unit;
}();

void to_float_portable(const uint8_t* row, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = kUnit[row[i]];
}

void planes_portable(const uint8_t* row, int64_t pixels, uint8_t* red, uint8_t* green,
                     uint8_t* blue) {
  for (int64_t x = 0; x < pixels; ++x) {
    red[x] = row[3 * x];
    green[x] = row[3 * x + 1];
    blue[x] = row[3 * x + 2];
  }
}

// Which source byte sample `i` of the output row takes, from the first and the second pixel.
int32_t source_byte(const RowPlan& plan, const std::vector<int32_t>& offset, int64_t i) {
  const int64_t channel = i % 3;
  return offset[i / 3] + static_cast<int32_t>(plan.swap ? 2 - channel : channel);
}

void plan_groups(RowPlan& plan) {
  const int64_t samples = plan.pixels * 3;
  const int64_t groups = (samples + 15) / 16;
  int32_t span = 0;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t end = std::min(samples, g * 16 + 16);
    // Pixels stand in rising order, but of a pixel's bytes the swapped order reads the last first.
    int32_t base = plan.offset0[g * 16 / 3];
    const int32_t last = plan.offset1[(end - 1) / 3] + 2;
    base = std::min(base, std::max(0, static_cast<int32_t>(plan.row_bytes) - 64));
    plan.group_base.push_back(base);
    span = std::max(span, last - base + 1);
  }
  plan.group_loads = span <= 64 ? 1 : span <= 128 ? 2 : 0;
  if (plan.group_loads == 0) return;
  plan.group_bytes.assign(groups * 64, 0);
  plan.group_weights.assign(groups * 32, 0);
  for (int64_t i = 0; i < samples; ++i) {
    const int32_t base = plan.group_base[i / 16];
    uint8_t* bytes = &plan.group_bytes[i * 4];
    bytes[0] = static_cast<uint8_t>(source_byte(plan, plan.offset0, i) - base);
    bytes[2] = static_cast<uint8_t>(source_byte(plan, plan.offset1, i) - base);
    plan.group_weights[i * 2] = plan.weights[i / 3 * 2];
    plan.group_weights[i * 2 + 1] = plan.weights[i / 3 * 2 + 1];
  }
}

}  // namespace

Taps horizontal_taps(int64_t source, int64_t output) {
  Taps taps;
  reserve(taps, output);
  const double scale = opencv_scale(source, output);
  for (int64_t i = 0; i < output; ++i) {
    auto [index, fraction] = position(i, scale);
    if (index < 0 || index >= source - 1) {
      index = std::clamp<int64_t>(index, 0, source - 1);
      fraction = 0;
    }
    taps.first[i] = static_cast<int32_t>(index);
    taps.second[i] = static_cast<int32_t>(std::min(index + 1, source - 1));
    taps.weight0[i] = weight(1.0f - fraction);
    taps.weight1[i] = weight(fraction);
  }
  return taps;
}

Taps vertical_taps(int64_t source, int64_t output) {
  Taps taps;
  reserve(taps, output);
  const double scale = opencv_scale(source, output);
  for (int64_t i = 0; i < output; ++i) {
    const auto [index, fraction] = position(i, scale);
    taps.first[i] = static_cast<int32_t>(std::clamp<int64_t>(index, 0, source - 1));
    taps.second[i] = static_cast<int32_t>(std::clamp<int64_t>(index + 1, 0, source - 1));
    taps.weight0[i] = weight(1.0f - fraction);
    taps.weight1[i] = weight(fraction);
  }
  return taps;
}

RowPlan plan_row(const Taps& taps, int64_t source_pixels, bool swap) {
  RowPlan plan;
  plan.pixels = static_cast<int64_t>(taps.first.size());
  plan.row_bytes = source_pixels * 3;
  plan.swap = swap;
  plan.offset0.resize(plan.pixels);
  plan.offset1.resize(plan.pixels);
  plan.weights.resize(plan.pixels * 2);
  for (int64_t x = 0; x < plan.pixels; ++x) {
    plan.offset0[x] = taps.first[x] * 3;
    plan.offset1[x] = taps.second[x] * 3;
    plan.weights[2 * x] = taps.weight0[x];
    plan.weights[2 * x + 1] = taps.weight1[x];
  }
  plan_groups(plan);
  return plan;
}

void across_from(int64_t begin, const RowPlan& plan, const uint8_t* row, int16_t* out) {
  const int red = plan.swap ? 2 : 0;
  for (int64_t x = begin; x < plan.pixels; ++x) {
    const uint8_t* p = row + plan.offset0[x];
    const uint8_t* q = row + plan.offset1[x];
    const int a = plan.weights[2 * x];
    const int b = plan.weights[2 * x + 1];
    out[3 * x] = static_cast<int16_t>((p[red] * a + q[red] * b) >> 4);
    out[3 * x + 1] = static_cast<int16_t>((p[1] * a + q[1] * b) >> 4);
    out[3 * x + 2] = static_cast<int16_t>((p[2 - red] * a + q[2 - red] * b) >> 4);
  }
}

RowKernels row_kernels(Simd level) {
  RowKernels kernels = {across_portable, down_portable, swap_portable, to_float_portable,
                        planes_portable};
#if defined(FERRY_VISION_X86)
  if (level >= Simd::kAvx2) use_avx2(kernels);
  if (level >= Simd::kAvx512Vbmi) use_avx512vbmi(kernels);
#else
  (void)level;
#endif
  return kernels;
}

}  // namespace ferry::vision

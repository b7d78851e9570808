// The logistic function for logits, the same to the bit wherever it runs: plain products and sums
// in a fixed order (the folder is compiled without fused multiply-add), so a vector loop over it
// equals the scalar. Internal to vision.
#pragma once

#include <bit>
#include <cstdint>

namespace ferry::vision {

// 1 / (1 + e^-x), relative error below 2e-7 (vision's tests); 0 below -88.4, NaN for NaN.
// e^y = 2^n * e^r with y = n ln 2 + r, |r| <= ln 2 / 2; e^r by the polynomial of Cephes' expf.
inline float sigmoid(float x) {
  float y = -x;
  y = y > 89.0f ? 89.0f : y;  // 2^n is infinite from n = 128 on
  y = y < -88.0f ? -88.0f : y;
  constexpr float kRound = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits
  const float shifted = y * 1.44269504088896341f + kRound;
  const float n = shifted - kRound;
  const float r = (y - n * 0.693359375f) - n * -2.12194440e-4f;  // ln 2 in two parts
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const uint32_t power = (std::bit_cast<uint32_t>(shifted) + 127u) << 23;
  return 1.0f / (1.0f + p * std::bit_cast<float>(power));
}

}  // namespace ferry::vision

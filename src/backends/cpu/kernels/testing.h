// Helpers of the kernels' tests: guarded, aligned memory and the instruction sets to try (for tests
// only).
#pragma once

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels/storage.h"
#include "backends/cpu/kernels/view.h"

namespace ferry::cpu {

constexpr float kGuard = -12345.5f;  // fills what a kernel must not touch

// Floats aligned to 64 bytes.
class Floats {
 public:
  explicit Floats(size_t size, float value = 0.0f)
      : memory_(static_cast<float*>(std::aligned_alloc(64, (size + 16) / 16 * 64))), size_(size) {
    std::fill_n(memory_.get(), size, value);
  }
  float* data() { return memory_.get(); }
  const float* data() const { return memory_.get(); }
  size_t size() const { return size_; }
  float& operator[](size_t i) { return memory_.get()[i]; }
  float operator[](size_t i) const { return memory_.get()[i]; }

  // Normally distributed, the same every time.
  void randomize(unsigned seed, float spread = 1.0f) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0f, spread);
    for (size_t i = 0; i < size_; ++i) memory_.get()[i] = normal(random);
  }

 private:
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  std::unique_ptr<float, Free> memory_;
  size_t size_;
};

// A picture that is the channels [first, first + c) of pixels of `stride` channels; the rest holds
// guards.
struct Picture {
  Picture(int64_t batch, int64_t h, int64_t w, int64_t c, int64_t slice)
      : floats(static_cast<size_t>(batch * h * w * (c + 2 * slice)), kGuard),
        view{floats.data() + slice, batch, h, w, c, c + 2 * slice} {}

  static Picture random(int64_t batch, int64_t h, int64_t w, int64_t c, int64_t slice,
                        unsigned seed) {
    Picture picture(batch, h, w, c, slice);
    picture.floats.randomize(seed);
    return picture;
  }

  float& at(int64_t n, int64_t y, int64_t x, int64_t c) { return view.pixel(n, y, x)[c]; }

  // Whether every float outside the view still is a guard. REQUIRES: not random().
  bool guards_untouched() const {
    const int64_t slice = (view.stride - view.c) / 2;
    for (size_t i = 0; i < floats.size(); ++i) {
      const int64_t c = static_cast<int64_t>(i) % view.stride - slice;
      if ((c < 0 || c >= view.c) && floats[i] != kGuard) return false;
    }
    return true;
  }

  Floats floats;
  View view;
};

// A picture of floats as kernels of any storage take it.
inline StoredView stored(const View& v) {
  return {reinterpret_cast<std::byte*>(v.data), v.batch, v.h, v.w, v.c, v.stride, {}};
}

// What can run here, slowest first, up to `last`.
inline std::vector<Isa> usable_isas(Isa last = Isa::kAvx512) {
  std::vector<Isa> list;
  for (Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni, Isa::kAvx512Bf16}) {
    if (isa <= std::min(last, best_isa())) list.push_back(isa);
  }
  return list;
}

}  // namespace ferry::cpu

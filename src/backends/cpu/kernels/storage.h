// How the elements of a picture are kept in memory; what a kernel computes with is always their
// real value. The same as the graph's storage (ferry/backend.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace ferry::cpu {

enum class DType : uint8_t { kF32, kBf16, kU8, kS8 };

inline constexpr int64_t element_bytes(DType dtype) {
  return dtype == DType::kF32 ? 4 : dtype == DType::kBf16 ? 2 : 1;
}

struct Storage {
  DType dtype = DType::kF32;
  float scale = 1.0f;      // kU8: (q - zero_point) * scale
  int32_t zero_point = 0;  // kU8: 0 to 255

  bool operator==(const Storage&) const = default;
};

// Nhwc (view.h) of stored elements. `stride` counts elements.
struct StoredView {
  std::byte* data = nullptr;
  int64_t batch = 1, h = 0, w = 0, c = 0;
  int64_t stride = 0;
  Storage storage{};

  int64_t pixels() const { return batch * h * w; }
  int64_t step_bytes() const { return stride * element_bytes(storage.dtype); }
  std::byte* pixel(int64_t n, int64_t y, int64_t x) const {
    return data + ((n * h + y) * w + x) * step_bytes();
  }
};

// One element, by the definition: for tests, reference loops and odd ends.
float load_element(const Storage& storage, const void* element);
// To the nearest element, ties to even; out of range saturates; NaN becomes the zero point of kU8.
void store_element(const Storage& storage, void* element, float value);

}  // namespace ferry::cpu

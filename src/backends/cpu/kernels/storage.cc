#include "backends/cpu/kernels/storage.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace ferry::cpu {

float load_element(const Storage& storage, const void* element) {
  switch (storage.dtype) {
    case DType::kF32: {
      float value;
      std::memcpy(&value, element, sizeof value);
      return value;
    }
    case DType::kBf16: {
      uint16_t bits;
      std::memcpy(&bits, element, sizeof bits);
      return std::bit_cast<float>(uint32_t{bits} << 16);
    }
    case DType::kU8:
      return static_cast<float>(*static_cast<const uint8_t*>(element) - storage.zero_point) *
             storage.scale;
    case DType::kS8:
      return static_cast<float>(*static_cast<const int8_t*>(element)) * storage.scale;
  }
  return 0;
}

void store_element(const Storage& storage, void* element, float value) {
  switch (storage.dtype) {
    case DType::kF32:
      std::memcpy(element, &value, sizeof value);
      break;
    case DType::kBf16: {
      const auto bits = std::bit_cast<uint32_t>(value);
      const uint32_t rounded =
          std::isnan(value) ? (bits >> 16) | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
      const auto half = static_cast<uint16_t>(rounded);
      std::memcpy(element, &half, sizeof half);
      break;
    }
    case DType::kU8: {
      const auto zero = static_cast<float>(storage.zero_point);
      const float q = std::isnan(value) ? 0.0f : std::nearbyint(value / storage.scale);
      *static_cast<uint8_t*>(element) = static_cast<uint8_t>(std::clamp(q + zero, 0.0f, 255.0f));
      break;
    }
    case DType::kS8: {
      const float q = std::isnan(value) ? 0.0f : std::nearbyint(value / storage.scale);
      *static_cast<int8_t*>(element) = static_cast<int8_t>(std::clamp(q, -127.0f, 127.0f));
      break;
    }
  }
}

}  // namespace ferry::cpu

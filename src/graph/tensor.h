// Tensor types and host tensors: what a value in a graph is, and the constant data that some values
// hold.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ferry::graph {

enum class DType : unsigned char {
  kF32,
  kF16,
  kBf16,
  kF64,
  kI64,
  kI32,
  kI16,
  kI8,
  kU16,
  kU8,
  kBool
};

std::string_view dtype_name(DType dtype);  // "f32", "f16", …, as the text form writes it
Result<DType> dtype_from_name(std::string_view name);
int64_t dtype_size(DType dtype);  // bytes of one element

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::kF32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::kF64;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::kI64;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::kI32;
}
template <>
constexpr DType dtype_of<int16_t>() {
  return DType::kI16;
}
template <>
constexpr DType dtype_of<int8_t>() {
  return DType::kI8;
}
template <>
constexpr DType dtype_of<uint16_t>() {
  return DType::kU16;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::kU8;
}
template <>
constexpr DType dtype_of<bool>() {
  return DType::kBool;
}

// Row-major dimensions; pictures are [batch, channels, height, width] whatever layout a device uses
// inside.
using Shape = std::vector<int64_t>;

// The largest tensor ferry will make, in bytes: more is taken for a mistake or an attack.
inline constexpr int64_t kMaxTensorBytes = int64_t{1} << 34;

int64_t elements(const Shape& shape);        // REQUIRES: check_shape(shape, …).ok()
std::string shape_text(const Shape& shape);  // "[1,3,640,640]"
// Refuses negative dimensions and products that overflow or pass kMaxTensorBytes.
Status check_shape(const Shape& shape, DType dtype);

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;
  bool operator==(const TensorType&) const = default;
};
std::string type_text(const TensorType& type);  // "f32[1,3,640,640]"

// Contiguous row-major elements with shared ownership; copying a Tensor shares the bytes. The bytes
// of a constant never change after it has been put into a graph.
class Tensor {
 public:
  Tensor() = default;  // f32[0]

  // Zeroed memory of its own. Fails like check_shape.
  static Result<Tensor> make(TensorType type);
  // Borrows `data`, kept alive by `owner` (a mapped file, say). REQUIRES: `data` holds the type's
  // bytes, aligned.
  static Tensor view(TensorType type, std::shared_ptr<const void> owner, const void* data);
  template <class T>
  static Tensor of(Shape shape,
                   std::vector<T> values);  // REQUIRES: elements(shape) == values.size()
  template <class T>
  static Tensor scalar(T value) {
    return of<T>({}, std::vector<T>{value});
  }

  const TensorType& type() const { return type_; }
  const Shape& shape() const { return type_.shape; }
  DType dtype() const { return type_.dtype; }
  int64_t size() const { return elements(type_.shape); }
  std::span<const std::byte> bytes() const;
  const void* data() const { return data_; }
  // Shared by all copies of one tensor and never given to another in this process: a key for what
  // is derived from it.
  uint64_t identity() const { return identity_; }

  // REQUIRES: dtype_of<T>() == dtype(); a wrong type is a bug and aborts.
  template <class T>
  std::span<const T> as() const {
    FERRY_ASSERT(dtype_of<T>() == dtype(), "tensor read as another type than it holds");
    return {static_cast<const T*>(data_), static_cast<size_t>(size())};
  }
  // For who made the tensor and has not shared it yet.
  template <class T>
  std::span<T> mut() {
    FERRY_ASSERT(dtype_of<T>() == dtype(), "tensor written as another type than it holds");
    return {static_cast<T*>(const_cast<void*>(data_)), static_cast<size_t>(size())};
  }
  std::span<std::byte> mut_bytes();

  // The same elements under other dimensions. REQUIRES: equal element counts.
  Tensor reshaped(Shape shape) const;
  // Converted element by element (round to nearest even for f16 and bf16, saturating for integers,
  // bool = != 0).
  Result<Tensor> cast(DType dtype) const;
  // Integers of any integer or bool tensor, widened. Fails for floating types.
  Result<std::vector<int64_t>> to_ints() const;

 private:
  TensorType type_{DType::kF32, {0}};
  std::shared_ptr<const void> owner_;
  const void* data_ = nullptr;
  uint64_t identity_ = 0;
};

float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);  // round to nearest even, overflow to infinity
inline float bf16_to_f32(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}
uint16_t f32_to_bf16(float value);

template <class T>
Tensor Tensor::of(Shape shape, std::vector<T> values) {
  static_assert(!std::is_same_v<T, bool>,
                "use uint8_t and reinterpret, std::vector<bool> has no data()");
  FERRY_ASSERT(elements(shape) == static_cast<int64_t>(values.size()),
               "values do not fill the shape");
  auto owner = std::make_shared<std::vector<T>>(std::move(values));
  const void* data = owner->data();
  return view({dtype_of<T>(), std::move(shape)}, std::move(owner), data);
}

}  // namespace ferry::graph

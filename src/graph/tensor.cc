#include "graph/tensor.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

namespace ferry::graph {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  int64_t size;
};
constexpr DTypeRow kDTypes[] = {
    {DType::kF32, "f32", 4}, {DType::kF16, "f16", 2},   {DType::kBf16, "bf16", 2},
    {DType::kF64, "f64", 8}, {DType::kI64, "i64", 8},   {DType::kI32, "i32", 4},
    {DType::kI16, "i16", 2}, {DType::kI8, "i8", 1},     {DType::kU16, "u16", 2},
    {DType::kU8, "u8", 1},   {DType::kBool, "bool", 1},
};

const DTypeRow& row(DType dtype) { return kDTypes[static_cast<size_t>(dtype)]; }

// Tensors start on a cache line, so that kernels may use aligned loads on constants too.
constexpr std::align_val_t kAlignment{64};

double load(DType dtype, const void* data, int64_t i) {
  switch (dtype) {
    case DType::kF32:
      return static_cast<const float*>(data)[i];
    case DType::kF16:
      return f16_to_f32(static_cast<const uint16_t*>(data)[i]);
    case DType::kBf16:
      return bf16_to_f32(static_cast<const uint16_t*>(data)[i]);
    case DType::kF64:
      return static_cast<const double*>(data)[i];
    case DType::kI64:
      return static_cast<double>(static_cast<const int64_t*>(data)[i]);
    case DType::kI32:
      return static_cast<const int32_t*>(data)[i];
    case DType::kI16:
      return static_cast<const int16_t*>(data)[i];
    case DType::kI8:
      return static_cast<const int8_t*>(data)[i];
    case DType::kU16:
      return static_cast<const uint16_t*>(data)[i];
    case DType::kU8:
      return static_cast<const uint8_t*>(data)[i];
    case DType::kBool:
      return static_cast<const uint8_t*>(data)[i] != 0;
  }
  return 0;
}

template <class T>
T saturate(double value) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  if (value >= static_cast<double>(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  return static_cast<T>(value);  // toward zero, as C and ONNX Cast do
}

void store(DType dtype, void* data, int64_t i, double value) {
  switch (dtype) {
    case DType::kF32:
      static_cast<float*>(data)[i] = static_cast<float>(value);
      return;
    case DType::kF16:
      static_cast<uint16_t*>(data)[i] = f32_to_f16(static_cast<float>(value));
      return;
    case DType::kBf16:
      static_cast<uint16_t*>(data)[i] = f32_to_bf16(static_cast<float>(value));
      return;
    case DType::kF64:
      static_cast<double*>(data)[i] = value;
      return;
    case DType::kI64:
      static_cast<int64_t*>(data)[i] = saturate<int64_t>(value);
      return;
    case DType::kI32:
      static_cast<int32_t*>(data)[i] = saturate<int32_t>(value);
      return;
    case DType::kI16:
      static_cast<int16_t*>(data)[i] = saturate<int16_t>(value);
      return;
    case DType::kI8:
      static_cast<int8_t*>(data)[i] = saturate<int8_t>(value);
      return;
    case DType::kU16:
      static_cast<uint16_t*>(data)[i] = saturate<uint16_t>(value);
      return;
    case DType::kU8:
      static_cast<uint8_t*>(data)[i] = saturate<uint8_t>(value);
      return;
    case DType::kBool:
      static_cast<uint8_t*>(data)[i] = value != 0;
      return;
  }
}

}  // namespace

std::string_view dtype_name(DType dtype) { return row(dtype).name; }
int64_t dtype_size(DType dtype) { return row(dtype).size; }

Result<DType> dtype_from_name(std::string_view name) {
  for (const DTypeRow& r : kDTypes) {
    if (r.name == name) return r.dtype;
  }
  return error(Code::kInvalid, "unknown element type '{}'", name);
}

int64_t elements(const Shape& shape) {
  int64_t n = 1;
  for (const int64_t dim : shape) n *= dim;
  return n;
}

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += fmt::format("{}{}", i ? "," : "", shape[i]);
  return text + "]";
}

std::string type_text(const TensorType& type) {
  return std::string(dtype_name(type.dtype)) + shape_text(type.shape);
}

Status check_shape(const Shape& shape, DType dtype) {
  if (shape.size() > 8)
    return error(Code::kUnsupported, "{} dimensions, at most 8 are supported", shape.size());
  int64_t bytes = dtype_size(dtype);
  for (const int64_t dim : shape) {
    if (dim < 0)
      return error(Code::kInvalid, "shape {} has a negative dimension", shape_text(shape));
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(dim, 1), &bytes) ||
        bytes > kMaxTensorBytes) {
      return error(Code::kNoMemory, "shape {} needs more than {} GiB", shape_text(shape),
                   kMaxTensorBytes >> 30);
    }
  }
  return {};
}

Result<Tensor> Tensor::make(TensorType type) {
  FERRY_CHECK_OK(check_shape(type.shape, type.dtype));
  const auto bytes = static_cast<size_t>(elements(type.shape) * dtype_size(type.dtype));
  void* data = ::operator new(std::max<size_t>(bytes, 1), kAlignment, std::nothrow);
  if (data == nullptr) return error(Code::kNoMemory, "no memory for {}", type_text(type));
  std::memset(data, 0, bytes);
  return view(std::move(type),
              std::shared_ptr<const void>(data, [](void* p) { ::operator delete(p, kAlignment); }),
              data);
}

Tensor Tensor::view(TensorType type, std::shared_ptr<const void> owner, const void* data) {
  static std::atomic<uint64_t> next_identity{1};
  Tensor tensor;
  tensor.identity_ = next_identity.fetch_add(1, std::memory_order_relaxed);
  tensor.type_ = std::move(type);
  tensor.owner_ = std::move(owner);
  tensor.data_ = data;
  return tensor;
}

std::span<const std::byte> Tensor::bytes() const {
  return {static_cast<const std::byte*>(data_), static_cast<size_t>(size() * dtype_size(dtype()))};
}

std::span<std::byte> Tensor::mut_bytes() {
  return {static_cast<std::byte*>(const_cast<void*>(data_)),
          static_cast<size_t>(size() * dtype_size(dtype()))};
}

Tensor Tensor::reshaped(Shape shape) const {
  FERRY_ASSERT(elements(shape) == size(), "reshape changes the number of elements");
  return view({dtype(), std::move(shape)}, owner_, data_);
}

Result<Tensor> Tensor::cast(DType dtype) const {
  if (dtype == type_.dtype) return *this;
  FERRY_TRY(out, make({dtype, type_.shape}));
  void* to = out.mut_bytes().data();
  const int64_t n = size();
  if (type_.dtype == DType::kF16 && dtype == DType::kF32) {
    for (int64_t i = 0; i < n; ++i)
      static_cast<float*>(to)[i] = f16_to_f32(static_cast<const uint16_t*>(data_)[i]);
    return out;
  }
  const bool both_integers =
      dtype == DType::kI64 && (type_.dtype == DType::kI32 || type_.dtype == DType::kI64);
  if (both_integers) {  // not through double: 64-bit values stay exact
    for (int64_t i = 0; i < n; ++i)
      static_cast<int64_t*>(to)[i] = static_cast<const int32_t*>(data_)[i];
    return out;
  }
  for (int64_t i = 0; i < n; ++i) store(dtype, to, i, load(type_.dtype, data_, i));
  return out;
}

Result<std::vector<int64_t>> Tensor::to_ints() const {
  switch (dtype()) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBf16:
    case DType::kF64:
      return error(Code::kInvalid, "needs integers, found {}", type_text(type_));
    case DType::kI64: {
      const auto values = as<int64_t>();
      return std::vector<int64_t>(values.begin(), values.end());
    }
    case DType::kI32:
    case DType::kI16:
    case DType::kI8:
    case DType::kU16:
    case DType::kU8:
    case DType::kBool:
      break;
  }
  std::vector<int64_t> values(static_cast<size_t>(size()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<int64_t>(load(dtype(), data_, static_cast<int64_t>(i)));
  return values;
}

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t mantissa = bits & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | mantissa << 13);
  if (exponent == 0) {
    const float magnitude =
        static_cast<float>(mantissa) * 0x1p-24f;  // exact: subnormal halves are m * 2^-24
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);  // NaN
  if (magnitude >= 0x477ff000)
    return static_cast<uint16_t>(sign | 0x7c00);  // >= 65520 rounds to infinity
  if (magnitude < 0x38800000) {                   // below 2^-14: subnormal
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyintf(scaled)));
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace ferry::graph

// Calling one loop for the element type that a tensor happens to have.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "graph/tensor.h"

namespace ferry::ops {

// Types that ops can calculate with. f16 and bf16 are storage only: importers turn them into f32.
inline bool is_number(graph::DType dtype) {
  return dtype != graph::DType::kBool && dtype != graph::DType::kF16 &&
         dtype != graph::DType::kBf16;
}
inline bool is_float(graph::DType dtype) {
  return dtype == graph::DType::kF32 || dtype == graph::DType::kF64;
}
inline bool is_integer(graph::DType dtype) { return is_number(dtype) && !is_float(dtype); }

// f.operator()<T>() for the C++ type of `dtype`; f returns Status. Not for f16, bf16 and bool.
template <class F>
Status with_number(graph::DType dtype, F&& f) {
  using enum graph::DType;
  switch (dtype) {
    case kF32:
      return f.template operator()<float>();
    case kF64:
      return f.template operator()<double>();
    case kI64:
      return f.template operator()<int64_t>();
    case kI32:
      return f.template operator()<int32_t>();
    case kI16:
      return f.template operator()<int16_t>();
    case kI8:
      return f.template operator()<int8_t>();
    case kU16:
      return f.template operator()<uint16_t>();
    case kU8:
      return f.template operator()<uint8_t>();
    case kF16:
    case kBf16:
    case kBool:
      break;
  }
  return error(Code::kUnsupported, "cannot calculate with {}", graph::dtype_name(dtype));
}

// Integer arithmetic that wraps, as two's complement does, instead of being undefined.
template <class T>
T wrapping(uint64_t value) {
  return static_cast<T>(value);
}

// A bool tensor's bytes: 0 is false, anything else true (files may hold any byte).
inline std::span<const uint8_t> bool_bytes(const graph::Tensor& tensor) {
  return {reinterpret_cast<const uint8_t*>(tensor.bytes().data()), tensor.bytes().size()};
}
inline std::span<uint8_t> mut_bool_bytes(graph::Tensor& tensor) {
  return {reinterpret_cast<uint8_t*>(tensor.mut_bytes().data()), tensor.mut_bytes().size()};
}

}  // namespace ferry::ops

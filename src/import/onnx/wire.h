// Protobuf's wire format, read where it lies.
//
// ONNX needs a dozen messages of which ferry reads a few fields each, and weights that should stay
// in the mapped file: protobuf's own classes copy every `bytes` field, which doubles the memory of
// a model and ties the engine to one libprotobuf. So this reader walks the fields itself (varint,
// fixed32, fixed64, length-delimited; groups are refused, ONNX never had them) and gives views.
//
// Source: protobuf's "Encoding" page. Every length is checked against the bytes that are left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ferry::import::onnx {

using ByteSpan = std::span<const std::byte>;

enum class Wire : unsigned char { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Field {
  uint32_t number = 0;
  Wire wire = Wire::kVarint;
  uint64_t scalar = 0;  // varint, fixed32 or fixed64
  ByteSpan bytes;       // length-delimited

  int64_t integer() const { return static_cast<int64_t>(scalar); }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

// Walks the fields of one message:
//
//   FieldReader fields(message);
//   while (fields.next()) use(fields.field());
//   FERRY_CHECK_OK(fields.status());
class FieldReader {
 public:
  explicit FieldReader(ByteSpan message) : begin_(message.data()), rest_(message) {}

  // False at the end of the message and when it is broken: status() tells which.
  bool next();
  const Field& field() const { return field_; }
  Status status() const { return status_; }

 private:
  bool fail(Error why);
  bool varint(uint64_t& value);

  const std::byte* begin_;
  ByteSpan rest_;
  Field field_;
  Status status_;
};

// One element list of a repeated number: a single value (`field` is a varint or fixed) or packed
// bytes. Appends to `out`, at most `limit` elements in all.
Status append_varints(const Field& field, size_t limit, std::vector<int64_t>& out);
Status append_floats(const Field& field, size_t limit, std::vector<float>& out);
Status append_doubles(const Field& field, size_t limit, std::vector<double>& out);

}  // namespace ferry::import::onnx

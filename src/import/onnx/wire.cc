#include "import/onnx/wire.h"

#include <bit>
#include <cstring>

namespace ferry::import::onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "fixed fields are read as they lie");

// Reads a varint off the front of `rest`; false when it does not end within 10 bytes or the span.
bool take_varint(ByteSpan& rest, uint64_t& value) {
  value = 0;
  for (size_t i = 0; i < 10 && i < rest.size(); ++i) {
    const auto byte = static_cast<uint64_t>(rest[i]);
    value |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      rest = rest.subspan(i + 1);
      return true;
    }
  }
  return false;
}

Error too_many(size_t limit) {
  return error(Code::kInvalid, "a list holds more than the {} elements expected", limit);
}

template <class T>
Status append_fixed(const Field& field, Wire single, size_t limit, std::vector<T>& out) {
  if (field.wire == single) {
    if (out.size() >= limit) return too_many(limit);
    T value;
    std::memcpy(&value, &field.scalar, sizeof value);
    out.push_back(value);
    return {};
  }
  if (field.wire != Wire::kBytes || field.bytes.size() % sizeof(T) != 0) {
    return error(Code::kInvalid, "field {} is not a list of {}-byte numbers", field.number,
                 sizeof(T));
  }
  const size_t count = field.bytes.size() / sizeof(T);
  if (count > limit - out.size()) return too_many(limit);
  if (count == 0) return {};
  const size_t old = out.size();
  out.resize(old + count);
  std::memcpy(out.data() + old, field.bytes.data(), field.bytes.size());
  return {};
}

}  // namespace

bool FieldReader::fail(Error why) {
  status_ = std::move(why);
  rest_ = {};
  return false;
}

bool FieldReader::varint(uint64_t& value) {
  const auto at = rest_.data() - begin_;
  if (take_varint(rest_, value)) return true;
  return fail(error(Code::kInvalid, "byte {} of the message: a number does not end", at));
}

bool FieldReader::next() {
  if (rest_.empty()) return false;
  const auto at = rest_.data() - begin_;
  uint64_t key = 0;
  if (!varint(key)) return false;
  const uint64_t number = key >> 3;
  if (number == 0 || number > 0x1fffffff) {
    return fail(
        error(Code::kInvalid, "byte {} of the message: no field has number {}", at, number));
  }
  field_ = {static_cast<uint32_t>(number), static_cast<Wire>(key & 7), 0, {}};
  switch (key & 7) {
    case 0:
      return varint(field_.scalar);
    case 1:
    case 5: {
      const size_t size = (key & 7) == 1 ? 8 : 4;
      if (rest_.size() < size) break;
      std::memcpy(&field_.scalar, rest_.data(), size);
      rest_ = rest_.subspan(size);
      return true;
    }
    case 2: {
      uint64_t size = 0;
      if (!varint(size)) return false;
      if (size > rest_.size()) {
        return fail(error(Code::kInvalid,
                          "byte {} of the message: field {} says {} bytes, {} are left", at, number,
                          size, rest_.size()));
      }
      field_.bytes = rest_.first(static_cast<size_t>(size));
      rest_ = rest_.subspan(static_cast<size_t>(size));
      return true;
    }
    default:
      return fail(error(Code::kInvalid, "byte {} of the message: wire type {} is not used by ONNX",
                        at, key & 7));
  }
  return fail(error(Code::kInvalid, "byte {} of the message: field {} is cut off", at, number));
}

Status append_varints(const Field& field, size_t limit, std::vector<int64_t>& out) {
  if (field.wire == Wire::kVarint) {
    if (out.size() >= limit) return too_many(limit);
    out.push_back(field.integer());
    return {};
  }
  if (field.wire != Wire::kBytes) {
    return error(Code::kInvalid, "field {} is not a list of integers", field.number);
  }
  ByteSpan rest = field.bytes;
  while (!rest.empty()) {
    uint64_t value = 0;
    if (!take_varint(rest, value)) {
      return error(Code::kInvalid, "field {}: a number does not end", field.number);
    }
    if (out.size() >= limit) return too_many(limit);
    out.push_back(static_cast<int64_t>(value));
  }
  return {};
}

Status append_floats(const Field& field, size_t limit, std::vector<float>& out) {
  return append_fixed(field, Wire::kFixed32, limit, out);
}

Status append_doubles(const Field& field, size_t limit, std::vector<double>& out) {
  return append_fixed(field, Wire::kFixed64, limit, out);
}

}  // namespace ferry::import::onnx

#include "export/onnx/wire_writer.h"

#include <bit>

namespace ferry::exporter::onnx {

namespace {

constexpr uint32_t kVarint = 0, kBytes = 2, kFixed32 = 5;

}  // namespace

void Message::raw_varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) own_.push_back(static_cast<char>(value | 0x80));
  own_.push_back(static_cast<char>(value));
}

void Message::head(uint32_t field, uint32_t wire, int64_t length) {
  raw_varint(field << 3 | wire);
  if (wire == kBytes) raw_varint(static_cast<uint64_t>(length));
}

Message& Message::varint(uint32_t field, int64_t value) {
  head(field, kVarint, 0);
  raw_varint(static_cast<uint64_t>(value));
  return *this;
}

Message& Message::fixed32(uint32_t field, float value) {
  head(field, kFixed32, 0);
  const auto bits = std::bit_cast<uint32_t>(value);
  for (unsigned shift = 0; shift < 32; shift += 8) own_.push_back(static_cast<char>(bits >> shift));
  return *this;
}

Message& Message::bytes(uint32_t field, std::string_view value) {
  head(field, kBytes, static_cast<int64_t>(value.size()));
  own_.append(value);
  return *this;
}

Message& Message::message(uint32_t field, const Message& value) {
  head(field, kBytes, value.size());
  for (const Borrowed& piece : value.borrowed_) {
    borrowed_.push_back({own_.size() + piece.at, piece.bytes});
  }
  borrowed_bytes_ += value.borrowed_bytes_;
  own_.append(value.own_);
  return *this;
}

Message& Message::borrow(uint32_t field, std::span<const std::byte> value) {
  head(field, kBytes, static_cast<int64_t>(value.size()));
  borrowed_.push_back({own_.size(), value});
  borrowed_bytes_ += static_cast<int64_t>(value.size());
  return *this;
}

Status Message::write(const std::function<Status(std::string_view)>& sink) const {
  const std::string_view own = own_;
  size_t done = 0;
  for (const Borrowed& piece : borrowed_) {
    FERRY_CHECK_OK(sink(own.substr(done, piece.at - done)));
    FERRY_CHECK_OK(sink({reinterpret_cast<const char*>(piece.bytes.data()), piece.bytes.size()}));
    done = piece.at;
  }
  return sink(own.substr(done));
}

}  // namespace ferry::exporter::onnx

// Protobuf's wire format, written: the opposite of import/onnx/wire.h.
//
// A message is its bytes, with the large payloads (weights) left where they lie and only remembered
// by place, so that a model of a gigabyte is not copied on its way from the mapped checkpoint to
// the file. Fields stand in the order of the calls; defaults are written like any other value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ferry::exporter::onnx {

class Message {
 public:
  Message& varint(uint32_t field, int64_t value);
  Message& fixed32(uint32_t field, float value);
  Message& bytes(uint32_t field, std::string_view value);
  Message& message(uint32_t field, const Message& value);
  // A payload that is not copied. REQUIRES: it outlives the message and all that hold it.
  Message& borrow(uint32_t field, std::span<const std::byte> value);

  int64_t size() const { return static_cast<int64_t>(own_.size()) + borrowed_bytes_; }
  // The whole, piece by piece, until one is refused.
  Status write(const std::function<Status(std::string_view)>& sink) const;

 private:
  struct Borrowed {
    size_t at;  // in front of own_[at]
    std::span<const std::byte> bytes;
  };
  void raw_varint(uint64_t value);
  void head(uint32_t field, uint32_t wire, int64_t length);

  std::string own_;
  std::vector<Borrowed> borrowed_;
  int64_t borrowed_bytes_ = 0;
};

}  // namespace ferry::exporter::onnx

// Messages against bytes worked out by hand from protobuf's "Encoding" page.
#include "export/onnx/wire_writer.h"

#include <gtest/gtest.h>

namespace ferry::exporter::onnx {
namespace {

using namespace std::string_literals;

std::string bytes_of(const Message& message) {
  std::string out;
  const Status status = message.write([&](std::string_view piece) -> Status {
    out.append(piece);
    return {};
  });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(static_cast<int64_t>(out.size()), message.size());
  return out;
}

std::span<const std::byte> view(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

TEST(Message, WritesVarintsInGroupsOfSevenBits) {
  EXPECT_EQ(bytes_of(Message().varint(1, 0)), "\x08\x00"s);
  EXPECT_EQ(bytes_of(Message().varint(1, 150)), "\x08\x96\x01"s);   // the page's own example
  EXPECT_EQ(bytes_of(Message().varint(16, 127)), "\x80\x01\x7f"s);  // a field number above 15
  EXPECT_EQ(bytes_of(Message().varint(3, -1)), "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s);
}

TEST(Message, WritesFloatsLittleEndian) {
  EXPECT_EQ(bytes_of(Message().fixed32(2, 1.0f)), "\x15\x00\x00\x80\x3f"s);
}

TEST(Message, WritesTextWithItsLength) {
  EXPECT_EQ(bytes_of(Message().bytes(2, "testing")), "\x12\x07testing"s);
  EXPECT_EQ(bytes_of(Message().bytes(2, "")), "\x12\x00"s);
}

TEST(Message, HoldsOtherMessages) {
  const Message inner = Message().varint(1, 150);
  EXPECT_EQ(bytes_of(Message().message(3, inner)), "\x1a\x03\x08\x96\x01"s);
}

TEST(Message, KeepsBorrowedBytesInTheirPlaceThroughEveryLevel) {
  const std::string weights = "WWWW", more = "mm";
  Message inner;
  inner.varint(1, 1).borrow(9, view(weights)).varint(2, 2);
  Message outer;
  outer.bytes(1, "a").message(5, inner).borrow(9, view(more)).message(5, inner);
  const std::string in = "\x08\x01\x4a\x04WWWW\x10\x02"s;
  const std::string head = "\x2a\x0a"s;
  EXPECT_EQ(bytes_of(outer), "\x0a\x01"s + "a" + head + in + "\x4a\x02mm" + head + in);
}

TEST(Message, StopsAtTheFirstPieceThatIsRefused) {
  const std::string weights = "WWWW";
  int pieces = 0;
  const Status status =
      Message().borrow(9, view(weights)).varint(1, 1).write([&](std::string_view) -> Status {
        ++pieces;
        return error(Code::kIo, "full");
      });
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(pieces, 1);
}

}  // namespace
}  // namespace ferry::exporter::onnx

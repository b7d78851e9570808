// Writes zip archives by hand, byte by byte, so that tests can make any field a lie.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "import/torch/zip.h"

namespace ferry::import::test {

inline std::string little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

inline std::string deflate_raw(const std::string& data) {
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, data.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

struct ZipFile {
  std::string name;
  std::string data = {};
  bool deflated = false;
  uint16_t flags = 0;
  uint16_t method = 0xffff;     // not ffff: claimed instead of the true one
  int64_t claimed_size = -1;    // not -1: the unpacked size that is claimed
  int64_t claimed_stored = -1;  // not -1: the packed size that is claimed
  int64_t claimed_offset = -1;  // not -1: where the directory says the local header is
  bool zip64 = false;           // sizes and offset stand in a zip64 extra field
};

// Local headers, directory, end record. `only_local` leaves out what a cut upload lacks.
inline std::string make_zip(const std::vector<ZipFile>& files, bool only_local = false) {
  std::string out, directory;
  for (const ZipFile& f : files) {
    const std::string stored = f.deflated ? deflate_raw(f.data) : f.data;
    const uint64_t method = f.method != 0xffff ? f.method : f.deflated ? 8 : 0;
    const uint64_t size =
        f.claimed_size >= 0 ? static_cast<uint64_t>(f.claimed_size) : f.data.size();
    const uint64_t packed =
        f.claimed_stored >= 0 ? static_cast<uint64_t>(f.claimed_stored) : stored.size();
    const uint64_t offset =
        f.claimed_offset >= 0 ? static_cast<uint64_t>(f.claimed_offset) : out.size();
    const uint32_t crc = static_cast<uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(f.data.data()), static_cast<uInt>(f.data.size())));
    const bool has_descriptor = (f.flags & 8) != 0;
    out += "PK\x03\x04" + little(20, 2) + little(f.flags, 2) + little(method, 2) + little(0, 4);
    out += little(has_descriptor ? 0 : crc, 4) + little(has_descriptor ? 0 : packed, 4) +
           little(has_descriptor ? 0 : size, 4);
    out += little(f.name.size(), 2) + little(0, 2) + f.name + stored;
    if (has_descriptor) out += "PK\x07\x08" + little(crc, 4) + little(packed, 4) + little(size, 4);
    const std::string extra = f.zip64 ? little(1, 2) + little(24, 2) + little(size, 8) +
                                            little(packed, 8) + little(offset, 8)
                                      : "";
    directory += "PK\x01\x02" + little(20, 2) + little(20, 2) + little(f.flags, 2) +
                 little(method, 2) + little(0, 4) + little(crc, 4);
    directory += little(f.zip64 ? 0xffffffff : packed, 4) + little(f.zip64 ? 0xffffffff : size, 4);
    directory += little(f.name.size(), 2) + little(extra.size(), 2) + little(0, 2) + little(0, 2) +
                 little(0, 2) + little(0, 4);
    directory += little(f.zip64 ? 0xffffffff : offset, 4) + f.name + extra;
  }
  if (only_local) return out;
  const size_t start = out.size();
  return out + directory + "PK\x05\x06" + little(0, 4) + little(files.size(), 2) +
         little(files.size(), 2) + little(directory.size(), 4) + little(start, 4) + little(0, 2);
}

// Bytes with an owner, in an allocation of exactly that size, so that AddressSanitizer sees a read
// past the end.
inline torch::Bytes bytes_of(const std::string& text) {
  auto owner = std::make_shared<std::vector<std::byte>>(text.size());
  for (size_t i = 0; i < text.size(); ++i) (*owner)[i] = static_cast<std::byte>(text[i]);
  const std::span<const std::byte> span(*owner);
  return {std::move(owner), span};
}

}  // namespace ferry::import::test

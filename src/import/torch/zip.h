// Zip archives, read where they lie: a stored entry is a view of the file, nothing is copied.
// PyTorch's checkpoints are zip archives whose entries are stored; deflated entries (an archive
// that was unpacked and packed again) work too.
//
// Follows PKWARE's APPNOTE 6.3.10. The central directory is believed only as far as it agrees with
// the local headers and the file's length. Refused: encryption, several disks, other methods than
// stored and deflate, entries that overlap or lie outside the file, two entries of one name,
// entries that inflate to more than they declare.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ferry::import::torch {

// Bytes and what keeps them alive. Copying shares.
struct Bytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> span;

  std::string_view text() const {
    return {reinterpret_cast<const char*>(span.data()), span.size()};
  }
};

struct ZipEntry {
  std::string_view name;     // points into the file
  uint64_t data_offset = 0;  // of the (compressed) bytes, from the start of the file
  uint64_t stored_size = 0;  // bytes in the file
  uint64_t size = 0;         // bytes when unpacked
  uint32_t crc32 = 0;
  bool deflated = false;
};

struct ZipArchive {
  Bytes file;
  std::vector<ZipEntry> entries;  // in the directory's order, folders left out
  std::map<std::string_view, size_t, std::less<>> index;  // name -> entries[i]

  const ZipEntry* find(std::string_view name) const;
};

// True when the bytes begin as a zip archive does. Says nothing about the rest.
bool looks_like_zip(std::span<const std::byte> file);

// Reads the directory and checks every entry against the file; unpacks nothing.
Result<ZipArchive> open_zip(Bytes file);

// The entry's bytes: a view for stored entries, own memory for deflated ones (kNoMemory above
// `limit` bytes).
Result<Bytes> read_entry(const ZipArchive& archive, const ZipEntry& entry, uint64_t limit);

// Whether the entry's bytes have the checksum that the directory names. PyTorch does not ask this
// when it loads, and can write archives without checksums; so a difference is worth a warning and
// not more.
bool checksum_matches(const ZipEntry& entry, const Bytes& bytes);

// What can still be read of an archive without its directory, as a cut upload leaves it: the
// entries that are whole, found by walking the local headers from the start. `end` is where the
// first entry begins that is not whole, and `cut_name` that entry's name (empty when not even that
// is there), `cut_bytes` what is there of its data.
struct ZipRemains {
  std::vector<ZipEntry> whole;
  uint64_t end = 0;
  std::string_view cut_name;
  uint64_t cut_bytes = 0;
};
ZipRemains walk_local_headers(const Bytes& file);

}  // namespace ferry::import::torch

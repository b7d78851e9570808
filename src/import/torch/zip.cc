// The zip reader: end record -> (zip64 end record) -> central directory -> local headers. All
// offsets are unsigned 64 bit and every addition is checked against the file's length before it is
// used.
#include "import/torch/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace ferry::import::torch {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kDescriptor = 0x08074b50;
constexpr uint32_t kDirectoryHeader = 0x02014b50;
constexpr uint32_t kEndRecord = 0x06054b50;
constexpr uint32_t kEndRecord64 = 0x06064b50;
constexpr uint32_t kEndLocator64 = 0x07064b50;
constexpr uint64_t kLocalHeaderSize = 30;
constexpr uint64_t kDirectoryHeaderSize = 46;
constexpr uint64_t kEndRecordSize = 22;

// Little-endian fields at absolute offsets. REQUIRES: the field lies inside the file.
struct Reader {
  std::span<const std::byte> file;

  bool holds(uint64_t offset, uint64_t size) const {
    return offset <= file.size() && size <= file.size() - offset;
  }
  uint64_t field(uint64_t offset, int bytes) const {
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) {
      value |= static_cast<uint64_t>(file[offset + static_cast<uint64_t>(i)]) << (8 * i);
    }
    return value;
  }
  uint16_t u16(uint64_t offset) const { return static_cast<uint16_t>(field(offset, 2)); }
  uint32_t u32(uint64_t offset) const { return static_cast<uint32_t>(field(offset, 4)); }
  uint64_t u64(uint64_t offset) const { return field(offset, 8); }
  std::string_view text(uint64_t offset, uint64_t size) const {
    return {reinterpret_cast<const char*>(file.data()) + offset, size};
  }
};

struct Directory {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t entries = 0;
};

// The end record stands in the last 64 KiB + 22 bytes, since its comment can be that long.
std::optional<uint64_t> find_end_record(const Reader& in) {
  if (in.file.size() < kEndRecordSize) return std::nullopt;
  const uint64_t last = in.file.size() - kEndRecordSize;
  const uint64_t first = last > 0xffff ? last - 0xffff : 0;
  for (uint64_t at = last + 1; at-- > first;) {
    if (in.u32(at) == kEndRecord && at + kEndRecordSize + in.u16(at + 20) <= in.file.size())
      return at;
  }
  return std::nullopt;
}

Result<Directory> find_directory(const Reader& in) {
  const auto end = find_end_record(in);
  if (!end)
    return error(Code::kInvalid,
                 "zip: no central directory at the end of the file; it is cut short");
  if (in.u16(*end + 4) != 0 && in.u16(*end + 4) != 0xffff) {
    return error(Code::kUnsupported, "zip: the archive spans several disks");
  }
  Directory directory{in.u32(*end + 16), in.u32(*end + 12), in.u16(*end + 10)};
  const bool is_zip64 = *end >= 20 && in.u32(*end - 20) == kEndLocator64;
  if (is_zip64) {
    const uint64_t record = in.u64(*end - 20 + 8);
    if (!in.holds(record, 56) || in.u32(record) != kEndRecord64) {
      return error(Code::kInvalid, "zip: the zip64 end record is not where its locator says");
    }
    directory = {in.u64(record + 48), in.u64(record + 40), in.u64(record + 32)};
  }
  if (!in.holds(directory.offset, directory.size)) {
    return error(Code::kInvalid,
                 "zip: the central directory lies outside the file ({} + {} of {} bytes)",
                 directory.offset, directory.size, in.file.size());
  }
  return directory;
}

struct DirectoryRow {
  std::string_view name;
  uint16_t flags = 0;
  uint16_t method = 0;
  uint32_t crc32 = 0;
  uint64_t stored_size = 0;
  uint64_t size = 0;
  uint64_t header_offset = 0;
};

// Replaces the 32-bit fields that are all ones by those of the zip64 extra field (id 1), in their
// fixed order.
Status apply_zip64(const Reader& in, uint64_t extra, uint64_t extra_size, DirectoryRow& row) {
  uint64_t* const wanted[] = {row.size == 0xffffffff ? &row.size : nullptr,
                              row.stored_size == 0xffffffff ? &row.stored_size : nullptr,
                              row.header_offset == 0xffffffff ? &row.header_offset : nullptr};
  if (std::all_of(std::begin(wanted), std::end(wanted), [](auto* p) { return p == nullptr; }))
    return {};
  for (uint64_t at = 0; at + 4 <= extra_size;) {
    const uint16_t id = in.u16(extra + at);
    const uint64_t size = in.u16(extra + at + 2);
    if (at + 4 + size > extra_size) break;
    if (id == 1) {
      uint64_t field = 0;
      for (uint64_t* target : wanted) {
        if (target == nullptr) continue;
        if (field + 8 > size)
          return error(Code::kInvalid, "zip: '{}': zip64 field is too short", row.name);
        *target = in.u64(extra + at + 4 + field);
        field += 8;
      }
      return {};
    }
    at += 4 + size;
  }
  return {};
}

// Checks one row against its local header and says where its data lie.
Result<ZipEntry> locate(const Reader& in, const DirectoryRow& row) {
  if (row.flags & 1) return error(Code::kUnsupported, "zip: '{}' is encrypted", row.name);
  if (row.method != 0 && row.method != 8) {
    return error(Code::kUnsupported,
                 "zip: '{}' uses compression method {}; stored and deflate are known", row.name,
                 row.method);
  }
  const uint64_t header = row.header_offset;
  if (!in.holds(header, kLocalHeaderSize) || in.u32(header) != kLocalHeader) {
    return error(Code::kInvalid, "zip: '{}' has no local header at offset {}", row.name, header);
  }
  const uint64_t name_size = in.u16(header + 26);
  const uint64_t data = header + kLocalHeaderSize + name_size + in.u16(header + 28);
  if (!in.holds(header + kLocalHeaderSize, name_size) ||
      in.text(header + kLocalHeaderSize, name_size) != row.name ||
      in.u16(header + 8) != row.method) {
    return error(Code::kInvalid, "zip: '{}': directory and local header disagree", row.name);
  }
  if (!in.holds(data, row.stored_size)) {
    return error(Code::kInvalid, "zip: '{}' claims {} bytes at offset {}, but the file has {}",
                 row.name, row.stored_size, data, in.file.size());
  }
  if (row.method == 0 && row.stored_size != row.size) {
    return error(Code::kInvalid, "zip: '{}' is stored, but claims {} bytes packed and {} unpacked",
                 row.name, row.stored_size, row.size);
  }
  return ZipEntry{row.name, data, row.stored_size, row.size, row.crc32, row.method == 8};
}

// Entries that share bytes are how a small archive unpacks to an enormous one.
Status check_overlaps(std::vector<std::pair<uint64_t, uint64_t>> ranges) {
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) {
      return error(
          Code::kInvalid,
          "zip: entries overlap at offset {}; archives like this are made to exhaust memory",
          ranges[i].first);
    }
  }
  return {};
}

}  // namespace

const ZipEntry* ZipArchive::find(std::string_view name) const {
  const auto it = index.find(name);
  return it == index.end() ? nullptr : &entries[it->second];
}

bool looks_like_zip(std::span<const std::byte> file) {
  if (file.size() < 4) return false;
  const uint32_t signature = Reader{file}.u32(0);
  return signature == kLocalHeader || signature == kEndRecord;
}

Result<ZipArchive> open_zip(Bytes file) {
  const Reader in{file.span};
  FERRY_TRY(directory, find_directory(in));
  ZipArchive archive{std::move(file), {}, {}};
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  uint64_t at = directory.offset;
  const uint64_t end = directory.offset + directory.size;
  for (uint64_t n = 0; n < directory.entries; ++n) {
    if (end - at < kDirectoryHeaderSize || in.u32(at) != kDirectoryHeader) {
      return error(Code::kInvalid, "zip: the directory ends after {} of {} entries", n,
                   directory.entries);
    }
    const uint64_t name_size = in.u16(at + 28);
    const uint64_t extra_size = in.u16(at + 30);
    const uint64_t row_size = kDirectoryHeaderSize + name_size + extra_size + in.u16(at + 32);
    if (end - at < row_size)
      return error(Code::kInvalid, "zip: entry {} of the directory is cut short", n);
    DirectoryRow row{.name = in.text(at + kDirectoryHeaderSize, name_size),
                     .flags = in.u16(at + 8),
                     .method = in.u16(at + 10),
                     .crc32 = in.u32(at + 16),
                     .stored_size = in.u32(at + 20),
                     .size = in.u32(at + 24),
                     .header_offset = in.u32(at + 42)};
    FERRY_CHECK_OK(apply_zip64(in, at + kDirectoryHeaderSize + name_size, extra_size, row));
    at += row_size;
    FERRY_TRY(entry, locate(in, row));
    ranges.emplace_back(row.header_offset, entry.data_offset + entry.stored_size);
    if (row.name.ends_with('/')) continue;  // a folder
    if (!archive.index.emplace(row.name, archive.entries.size()).second) {
      return error(Code::kInvalid, "zip: two entries are named '{}'", row.name);
    }
    archive.entries.push_back(entry);
  }
  FERRY_CHECK_OK(check_overlaps(std::move(ranges)));
  return archive;
}

Result<Bytes> read_entry(const ZipArchive& archive, const ZipEntry& entry, uint64_t limit) {
  const auto stored = archive.file.span.subspan(entry.data_offset, entry.stored_size);
  if (entry.size > limit) {
    return error(Code::kNoMemory, "zip: '{}' unpacks to {} bytes; the limit for it is {}",
                 entry.name, entry.size, limit);
  }
  if (!entry.deflated) return Bytes{archive.file.owner, stored};
  // Deflate makes at most 1032 bytes of one: a larger claim is a lie that need not be allocated.
  if (entry.size / 1032 > entry.stored_size) {
    return error(Code::kInvalid,
                 "zip: '{}' claims to unpack {} bytes to {}, which deflate cannot do", entry.name,
                 entry.stored_size, entry.size);
  }
  auto memory = std::make_shared<std::vector<std::byte>>(entry.size);
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return error(Code::kNoMemory, "zip: zlib cannot start");
  // zlib counts in 32 bits: feed and drain in pieces.
  constexpr uint64_t kPiece = 1u << 30;
  uint64_t fed = 0, drained = 0;
  int status = Z_OK;
  std::byte spare{};  // one byte past the declared end: what lands here is too much
  while (status == Z_OK) {
    if (stream.avail_in == 0 && fed < stored.size()) {
      const uint64_t n = std::min(kPiece, stored.size() - fed);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(stored.data() + fed));
      stream.avail_in = static_cast<uInt>(n);
      fed += n;
    }
    const bool full = drained == entry.size;
    const uint64_t room = full ? 1 : std::min(kPiece, entry.size - drained);
    stream.next_out = reinterpret_cast<Bytef*>(full ? &spare : memory->data() + drained);
    stream.avail_out = static_cast<uInt>(room);
    status = inflate(&stream, Z_NO_FLUSH);
    const uint64_t made = room - stream.avail_out;
    if (full && made > 0) status = Z_MEM_ERROR;
    if (!full) drained += made;
    if (status == Z_OK && made == 0 && stream.avail_in == 0 && fed == stored.size())
      status = Z_BUF_ERROR;
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END || drained != entry.size) {
    return error(Code::kInvalid, "zip: '{}' does not unpack to the {} bytes it declares",
                 entry.name, entry.size);
  }
  const std::span<const std::byte> unpacked(*memory);
  return Bytes{std::move(memory), unpacked};
}

bool checksum_matches(const ZipEntry& entry, const Bytes& bytes) {
  const auto* data = reinterpret_cast<const Bytef*>(bytes.span.data());
  return crc32_z(0, data, bytes.span.size()) == entry.crc32;
}

ZipRemains walk_local_headers(const Bytes& file) {
  const Reader in{file.span};
  ZipRemains remains;
  uint64_t at = 0;
  while (in.holds(at, kLocalHeaderSize) && in.u32(at) == kLocalHeader) {
    const uint64_t name_size = in.u16(at + 26);
    const uint64_t data = at + kLocalHeaderSize + name_size + in.u16(at + 28);
    if (!in.holds(at + kLocalHeaderSize, name_size)) break;
    ZipEntry entry{in.text(at + kLocalHeaderSize, name_size),
                   data,
                   in.u32(at + 18),
                   in.u32(at + 22),
                   in.u32(at + 14),
                   in.u16(at + 8) == 8};
    uint64_t next = 0;
    const bool has_descriptor = (in.u16(at + 6) & 8) != 0 && entry.stored_size == 0;
    if (!has_descriptor && in.holds(data, entry.stored_size)) {
      next = data + entry.stored_size;
    }
    // With a descriptor the length stands behind the data: look for the signature followed by that
    // very length.
    for (uint64_t d = data; has_descriptor && next == 0 && in.holds(d, 16); ++d) {
      const void* hit = std::memchr(in.file.data() + d, 'P', in.file.size() - d);
      if (hit == nullptr) break;
      d = static_cast<uint64_t>(static_cast<const std::byte*>(hit) - in.file.data());
      if (!in.holds(d, 16) || in.u32(d) != kDescriptor) continue;
      const bool is_64 = in.holds(d, 24) && in.u64(d + 8) == d - data &&
                         (d - data > 0xffffffff || in.u32(d + 12) == 0);
      if (in.u32(d + 8) != d - data && !is_64) continue;
      entry.crc32 = in.u32(d + 4);
      entry.stored_size = d - data;
      entry.size = is_64 ? in.u64(d + 16) : in.u32(d + 12);
      next = d + (is_64 ? 24 : 16);
    }
    if (next == 0) {
      remains.cut_name = entry.name;
      remains.cut_bytes = in.file.size() > data ? in.file.size() - data : 0;
      break;
    }
    remains.whole.push_back(entry);
    at = next;
  }
  remains.end = at;
  return remains;
}

}  // namespace ferry::import::torch

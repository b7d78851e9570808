// A file is a magic, a version, the length of a header, the header (a Python literal), the values.
#include "perf/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstring>
#include <span>
#include <string_view>

#include "base/mapped_file.h"

namespace ferry::perf {

namespace {

constexpr std::string_view kMagic("\x93NUMPY");

// What follows `'key':` in a header, up to its end.
std::string_view after(std::string_view header, std::string_view key) {
  const size_t at = header.find(key);
  if (at == std::string_view::npos) return {};
  std::string_view rest = header.substr(at + key.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" :'"), rest.size()));
  return rest;
}

}  // namespace

Status write_npy(const std::string& path, const NpyArray& array) {
  std::string header = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}",
                                   fmt::join(array.shape, ", "));
  header.resize((header.size() + 10 + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::string file(kMagic);
  file += '\x01';
  file += '\0';
  file += static_cast<char>(header.size() & 255);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  file.append(reinterpret_cast<const char*>(array.values.data()),
              array.values.size() * sizeof(float));
  return write_file(path, std::string_view(file));
}

Result<NpyArray> read_npy(const std::string& path) {
  FERRY_TRY(file, MappedFile::open(path));
  const std::string_view bytes(reinterpret_cast<const char*>(file->bytes().data()),
                               file->bytes().size());
  const auto refuse = [&](std::string_view why) {
    return error(Code::kInvalid, "{}: {}", path, why);
  };
  if (bytes.size() < 12 || !bytes.starts_with(kMagic)) return refuse("is no NumPy file");
  const size_t field = bytes[6] == 1 ? 2 : 4;
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, field);
  if (length > bytes.size() - 8 - field) return refuse("ends within its header");
  const std::string_view header = bytes.substr(8 + field, length);
  if (!after(header, "'descr'").starts_with("<f4")) return refuse("holds no 32-bit floats");
  if (!after(header, "'fortran_order'").starts_with("False")) return refuse("is not in C order");
  NpyArray array;
  std::string_view shape = after(header, "'shape'");
  shape = shape.substr(0, shape.find(')'));
  const std::string_view data = bytes.substr(8 + field + length);
  const auto limit = static_cast<int64_t>(data.size() / sizeof(float));
  int64_t count = 1;
  for (size_t at = shape.find_first_of("0123456789"); at != std::string_view::npos;
       at = shape.find_first_of("0123456789", at)) {
    int64_t side = 0;
    const auto end = std::from_chars(shape.data() + at, shape.data() + shape.size(), side);
    at = static_cast<size_t>(end.ptr - shape.data());
    if (end.ec != std::errc() || (side > 0 && count > limit / side)) {
      return refuse("is shorter than its shape says");
    }
    count *= side;
    array.shape.push_back(side);
  }
  array.values.resize(static_cast<size_t>(count));
  if (count > 0) std::memcpy(array.values.data(), data.data(), array.values.size() * sizeof(float));
  return array;
}

}  // namespace ferry::perf

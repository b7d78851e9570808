#include "import/content.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace ferry::import {
namespace {

struct Signature {
  size_t offset;
  std::string_view bytes;
  std::string_view what;
};

using namespace std::string_view_literals;

constexpr Signature kSignatures[] = {
    {0, "version https://git-lfs.github.com/spec"sv,
     "a Git LFS pointer, not the file it stands for: run `git lfs pull`, or download the file itself"sv},
    {0, "\x1f\x8b"sv, "a gzip file: unpack it first"sv},
    {0, "BZh"sv, "a bzip2 file: unpack it first"sv},
    {0,
     "\xfd"
     "7zXZ\0"sv,
     "an xz file: unpack it first"sv},
    {0, "7z\xbc\xaf\x27\x1c"sv, "a 7z archive: unpack it first"sv},
    {0, "Rar!\x1a\x07"sv, "a RAR archive: unpack it first"sv},
    {0, "\x89PNG\r\n\x1a\n"sv, "a PNG picture"sv},
    {0, "\xff\xd8\xff"sv, "a JPEG picture"sv},
    {0,
     "\x7f"
     "ELF"sv,
     "a Linux program or library"sv},
    {0, "\x89HDF\r\n\x1a\n"sv, "an HDF5 file (Keras weights?)"sv},
    {4, "TFL3"sv, "a TensorFlow Lite model; ferry reads .pt and .onnx"sv},
    {0, "7767517\n"sv, "an ncnn parameter file; ferry reads .pt and .onnx"sv},
    {257, "ustar"sv,
     "a tar archive; PyTorch wrote checkpoints like this before 0.1.10: load and save it again with a newer PyTorch"sv},
    {0, "\x93NUMPY"sv, "a NumPy array"sv},
    {0, "%PDF"sv, "a PDF document"sv},
};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return out;
}

// The text between <title> and </title>, spaces squeezed; empty when there is none.
std::string page_title(std::string_view page) {
  const std::string low = lower(page);
  const size_t open = low.find("<title");
  if (open == std::string::npos) return {};
  const size_t begin = low.find('>', open);
  const size_t end = begin == std::string::npos ? begin : low.find("</title", begin);
  if (end == std::string::npos) return {};
  std::string title;
  for (const char c : page.substr(begin + 1, std::min<size_t>(end - begin - 1, 100))) {
    const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!space) title += c;
    if (space && !title.empty() && title.back() != ' ') title += ' ';
  }
  return title;
}

}  // namespace

std::string describe_foreign(std::span<const std::byte> file) {
  if (file.empty()) return "an empty file (0 bytes)";
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  for (const Signature& s : kSignatures) {
    if (text.size() >= s.offset && text.substr(s.offset).starts_with(s.bytes))
      return std::string(s.what);
  }
  const std::string_view head = text.substr(0, 64 * 1024);
  const size_t first = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string_view::npos) return "a file of white space only";
  const std::string start = lower(head.substr(first, 200));
  const bool is_page = start.starts_with("<!doctype") || start.starts_with("<html") ||
                       start.starts_with("<head") || start.starts_with("<?xml") ||
                       start.starts_with("<!--");
  if (is_page) {
    const std::string title = page_title(head);
    return fmt::format("a web page{}, saved in place of the file: download it again",
                       title.empty() ? "" : fmt::format(" (titled '{}')", title));
  }
  if (start.starts_with("{\"") || start.starts_with("{\n") || start.starts_with("[{")) {
    return fmt::format(
        "JSON text ('{}…'), perhaps a server's error message saved in place of the file",
        head.substr(first, 60));
  }
  if (std::all_of(text.begin(), text.begin() + std::min<std::ptrdiff_t>(std::ssize(text), 4096),
                  [](char c) { return c == 0; })) {
    return "a file of zeros: its download or copy did not finish";
  }
  return {};
}

}  // namespace ferry::import

#include "vision/sources.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <span>
#include <system_error>

namespace ferry::vision {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPictureSuffixes[] = {".bmp", ".dng", ".gif", ".jpeg", ".jpg",  ".jpe",
                                                 ".mpo", ".png", ".tif", ".tiff", ".webp", ".pfm"};
constexpr std::string_view kVideoSuffixes[] = {".asf",  ".avi", ".flv", ".h264", ".h265",
                                               ".hevc", ".m4v", ".mkv", ".mov",  ".mp4",
                                               ".mpeg", ".mpg", ".ts",  ".webm", ".wmv"};
constexpr std::string_view kSchemes[] = {"rtsp://",  "rtsps://", "rtmp://", "http://",
                                         "https://", "tcp://",   "udp://",  "srt://"};
constexpr std::string_view kListSuffixes[] = {".txt", ".streams"};
constexpr int kMaxListDepth = 4;  // lists in lists

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return c < 0x80 ? std::tolower(c) : c; });
  return out;
}

bool has_suffix(std::string_view path, std::span<const std::string_view> suffixes) {
  const std::string text = lower(path);
  return std::ranges::any_of(suffixes, [&](std::string_view s) { return text.ends_with(s); });
}

bool is_stream(std::string_view source) {
  const std::string text = lower(source);
  const bool number =
      !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  return number ||
         std::ranges::any_of(kSchemes, [&](std::string_view s) { return text.starts_with(s); });
}

Source file_source(const std::string& path) {
  return {path, has_video_suffix(path) ? SourceKind::kVideo : SourceKind::kPicture};
}

bool is_media(const fs::path& path) {
  return has_picture_suffix(path.native()) || has_video_suffix(path.native());
}

Result<std::vector<Source>> in_folder(const std::string& folder) {
  std::error_code failed;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    std::error_code ignored;
    if (is_media(entry->path()) && entry->is_regular_file(ignored))
      names.push_back(entry->path().string());
  }
  if (failed) return error(Code::kIo, "cannot read folder '{}': {}", folder, failed.message());
  if (names.empty()) {
    return error(Code::kNotFound,
                 "folder '{}' holds no picture or video (looked for {}, … and {}, …)", folder,
                 kPictureSuffixes[3], kVideoSuffixes[9]);
  }
  std::ranges::sort(names);
  std::vector<Source> sources;
  for (const std::string& name : names) sources.push_back(file_source(name));
  return sources;
}

bool is_glob(std::string_view text) { return text.find_first_of("*?[") != std::string_view::npos; }

// Matches path components from `at` on below `folder` (empty: the working folder), depth first.
void expand(const fs::path& folder, const std::vector<std::string>& parts, size_t at,
            std::vector<std::string>& out) {
  if (at == parts.size()) return;
  const std::string& part = parts[at];
  const bool last = at + 1 == parts.size();
  std::error_code failed;
  if (!is_glob(part)) {
    const fs::path next = folder / part;
    if (last ? fs::is_regular_file(next, failed) : fs::is_directory(next, failed)) {
      last ? out.push_back(next.string()) : expand(next, parts, at + 1, out);
    }
    return;
  }
  const bool any_depth = part == "**";
  if (any_depth && !last)
    expand(folder, parts, at + 1, out);  // `**` may stand for no folder at all
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, failed), end;
       !failed && entry != end; entry.increment(failed)) {
    std::error_code ignored;
    const std::string name = entry->path().filename().string();
    const fs::path next = folder / name;
    const bool is_folder =
        entry->is_directory(ignored) && !(any_depth && entry->is_symlink(ignored));
    if (name.starts_with('.') && !part.starts_with('.')) continue;
    if (any_depth) {
      if (is_folder)
        expand(next, parts, at, out);
      else if (last && is_media(next))
        out.push_back(next.string());
      continue;
    }
    if (::fnmatch(part.c_str(), name.c_str(), FNM_PERIOD) != 0) continue;
    if (last && !is_folder && is_media(next)) out.push_back(next.string());
    if (!last && is_folder) expand(next, parts, at + 1, out);
  }
}

Result<std::vector<Source>> matching(const std::string& pattern) {
  std::vector<std::string> parts, found;
  for (const fs::path& part : fs::path(pattern).relative_path()) {
    if (!part.empty()) parts.push_back(part.string());
  }
  expand(fs::path(pattern).root_path(), parts, 0, found);
  if (found.empty()) return error(Code::kNotFound, "no picture or video matches '{}'", pattern);
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<Source> sources;
  for (const std::string& path : found) sources.push_back(file_source(path));
  return sources;
}

Result<std::vector<Source>> find(const std::string& source, std::istream& input,
                                 const fs::path& base, int depth);

Result<std::vector<Source>> in_list(std::istream& list, const std::string& name,
                                    std::istream& input, const fs::path& base, int depth) {
  if (depth > kMaxListDepth)
    return error(Code::kInvalid, "list '{}': lists within lists, more than {} deep", name,
                 kMaxListDepth);
  std::vector<Source> sources;
  int number = 0;
  for (std::string line; std::getline(list, line);) {
    ++number;
    if (number == 1 && line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);  // a byte order mark
    line.erase(line.find_last_not_of(" \t\r") + 1);
    line.erase(0, line.find_first_not_of(" \t"));
    if (line.empty() || line[0] == '#') continue;
    if (line == "-") return error(Code::kInvalid, "{}, line {}: '-' inside a list", name, number);
    auto more = find(line, input, base, depth + 1).within(fmt::format("{}, line {}", name, number));
    if (!more.ok() && more.error().code != Code::kNotFound) return more;
    // One name that is not there is that input's failure, not the list's: whoever opens it says so,
    // and goes on.
    if (!more.ok())
      sources.push_back(file_source(line));
    else
      sources.insert(sources.end(), more->begin(), more->end());
  }
  if (list.bad()) return error(Code::kIo, "cannot read list '{}'", name);
  if (sources.empty()) return error(Code::kInvalid, "list '{}' names nothing", name);
  return sources;
}

Result<std::vector<Source>> find(const std::string& source, std::istream& input,
                                 const fs::path& base, int depth) {
  if (source.find('\0') != std::string::npos)
    return error(Code::kInvalid, "a name with a zero byte");
  if (source == "-") return in_list(input, "standard input", input, {}, depth);
  std::error_code failed;
  for (const fs::path& candidate : {fs::path(source), base / source}) {
    const fs::file_status status = fs::status(candidate, failed);
    if (fs::is_directory(status)) return in_folder(candidate.string());
    if (!fs::exists(status)) continue;
    if (!has_suffix(source, kListSuffixes))
      return std::vector<Source>{file_source(candidate.string())};
    std::ifstream list(candidate);
    if (!list) return error(Code::kIo, "cannot read list '{}'", candidate.string());
    return in_list(list, candidate.string(), input, candidate.parent_path(), depth);
  }
  if (is_stream(source)) return std::vector<Source>{{source, SourceKind::kStream}};
  if (is_glob(source)) return matching(source);
  return error(Code::kNotFound, "'{}' does not exist", source);
}

}  // namespace

Result<std::vector<Source>> find_sources(const std::string& source) {
  return find_sources(source, std::cin);
}

Result<std::vector<Source>> find_sources(const std::string& source, std::istream& input) {
  if (source.empty()) return error(Code::kInvalid, "an empty source");
  return find(source, input, {}, 0);
}

bool has_picture_suffix(std::string_view path) { return has_suffix(path, kPictureSuffixes); }
bool has_video_suffix(std::string_view path) { return has_suffix(path, kVideoSuffixes); }

}  // namespace ferry::vision

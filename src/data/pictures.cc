// The cache is a text file, a line a sound picture: `bytes mtime width height orientation path`,
// mtime in nanoseconds. What changed, is new or was not sound is decoded again.
#include "data/pictures.h"

#include <sys/stat.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <unordered_map>

#include "base/mapped_file.h"
#include "base/sha256.h"
#include "base/thread_pool.h"
#include "data/labels.h"
#include "vision/decode.h"

namespace ferry::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHeader = "ferry pictures 1\n";
constexpr int64_t kMaxCacheBytes = int64_t{1} << 30;
constexpr int64_t kMaxSide = int64_t{1} << 20;
constexpr int64_t kChunk = 64;  // pictures between two reports of progress

struct Stamp {
  int64_t bytes = -1, mtime_ns = 0;
  bool operator==(const Stamp&) const = default;
};

Stamp stamp_of(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return {};
  return {status.st_size, status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
}

struct Remembered {
  Stamp stamp = {};
  PictureFacts facts;
};
using Memory = std::unordered_map<std::string, Remembered>;

// Empty where there is no place for caches.
std::string cache_path(const std::string& key) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  fs::path folder;
  if (cache != nullptr && *cache == '/') {
    folder = cache;
  } else if (home != nullptr && *home == '/') {
    folder = fs::path(home) / ".cache";
  } else {
    return {};
  }
  const std::string name = sha256_hex(std::as_bytes(std::span(key))).substr(0, 32);
  return (folder / "ferry" / ("pictures-" + name + ".txt")).string();
}

// Takes the next number of `line`; false when there is none.
bool take(std::string_view& line, int64_t& value) {
  const auto [at, failure] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (failure != std::errc() || at == line.data() + line.size() || *at != ' ') return false;
  line.remove_prefix(static_cast<size_t>(at - line.data()) + 1);
  return true;
}

Memory recall(const std::string& path) {
  Memory memory;
  auto text = read_text(path, kMaxCacheBytes);
  if (!text.ok() || !text->starts_with(kHeader)) return memory;
  std::string_view rest = std::string_view(*text).substr(kHeader.size());
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    if (end == rest.npos) break;
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    Remembered r{.facts = {.seen = Seen::kSound, .remembered = true}};
    int64_t orientation = 0;
    if (!take(line, r.stamp.bytes) || !take(line, r.stamp.mtime_ns) || !take(line, r.facts.width) ||
        !take(line, r.facts.height) || !take(line, orientation)) {
      continue;
    }
    const auto bad = [](int64_t side) { return side < 1 || side > kMaxSide; };
    if (bad(r.facts.width) || bad(r.facts.height) || orientation < 1 || orientation > 8) continue;
    r.facts.orientation = static_cast<int>(orientation);
    memory.insert_or_assign(std::string(line), std::move(r));
  }
  return memory;
}

// Without a cache the next run is slower; nothing else.
void remember(const std::string& path, std::span<const std::string> pictures,
              std::span<const Stamp> stamps, std::span<const PictureFacts> facts) {
  std::string text(kHeader);
  for (size_t i = 0; i < pictures.size(); ++i) {
    const PictureFacts& f = facts[i];
    if (f.seen != Seen::kSound || pictures[i].find('\n') != std::string::npos) continue;
    text += fmt::format("{} {} {} {} {} {}\n", stamps[i].bytes, stamps[i].mtime_ns, f.width,
                        f.height, f.orientation, pictures[i]);
  }
  std::error_code failure;
  fs::create_directories(fs::path(path).parent_path(), failure);
  static_cast<void>(write_file(path, text));
}

PictureFacts look(const std::string& path) {
  auto decoded = vision::decode_picture(path);
  if (!decoded.ok()) {
    return {.seen = decoded.error().code == Code::kNotFound ? Seen::kMissing : Seen::kCorrupt,
            .message = decoded.error().message};
  }
  return {.seen = decoded->warning.empty() ? Seen::kSound : Seen::kDamaged,
          .width = decoded->picture.width(),
          .height = decoded->picture.height(),
          .orientation = decoded->orientation,
          .message = decoded->warning};
}

}  // namespace

Result<std::vector<PictureFacts>> look_at(std::span<const std::string> paths,
                                          const std::string& key, const OpenOptions& options) {
  const std::string cache = options.cache ? cache_path(key) : "";
  const Memory memory = cache.empty() ? Memory() : recall(cache);
  std::vector<PictureFacts> facts(paths.size());
  std::vector<Stamp> stamps(paths.size());
  std::vector<size_t> unseen;
  for (size_t i = 0; i < paths.size(); ++i) {
    stamps[i] = stamp_of(paths[i]);
    const auto found = memory.find(paths[i]);
    if (stamps[i].bytes >= 0 && found != memory.end() && found->second.stamp == stamps[i]) {
      facts[i] = found->second.facts;
    } else {
      unseen.push_back(i);
    }
  }
  ThreadPool pool(options.threads);
  const auto total = static_cast<int64_t>(unseen.size());
  for (int64_t begin = 0; begin < total; begin += kChunk) {
    if (options.progress && !options.progress(begin, total))
      return error(Code::kCancelled, "stopped while looking at the pictures");
    pool.parallel_for(std::min(kChunk, total - begin), [&](int64_t k, int) {
      const size_t i = unseen[static_cast<size_t>(begin + k)];
      facts[i] = look(paths[i]);
    });
  }
  if (!cache.empty() && !unseen.empty()) remember(cache, paths, stamps, facts);
  return facts;
}

}  // namespace ferry::data

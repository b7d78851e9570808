// A file mapped read-only into memory, and files written whole or not at all.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"

namespace ferry {

// The bytes of one regular file. Immutable; may be shared by threads. The mapping is private:
// another process that changes the file in place may be seen, one that truncates it raises SIGBUS,
// as for every program that maps files.
class MappedFile {
 public:
  // Fails with kNotFound, or kIo for a directory, device or unreadable file. An empty file maps to
  // an empty span.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Gives the pages that have been read back to the system; they are read again when they are
  // needed. For a file that was copied from and will hardly be looked at again, while views of it
  // still live.
  void drop_pages() const;
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, const std::byte* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}
  std::string path_;
  const std::byte* data_;
  size_t size_;
};

// Writes aside, syncs and renames, so that `path` holds the old or the whole new content, never a
// part. Links are followed; a device, pipe or socket is written through, when the content is whole.
// `produce` may write the temporary file by its path itself (encoders, muxers); the file is removed
// when it fails.
Status write_file(const std::string& path, std::span<const std::byte> content);
Status write_file(const std::string& path, std::string_view content);
Status write_file_with(const std::string& path,
                       const std::function<Status(const std::string& temporary)>& produce);

// The same for what is written over a longer time, as a video is: write `temporary()`, then
// `commit()`. Destroyed before that, it removes the temporary file and leaves `path` as it was.
class PendingFile {
 public:
  static Result<PendingFile> create(const std::string& path);
  ~PendingFile() { discard(); }
  PendingFile(PendingFile&& other) noexcept { *this = std::move(other); }
  PendingFile& operator=(PendingFile&& other) noexcept;

  const std::string& path() const { return path_; }
  const std::string& temporary() const { return temporary_; }  // beside `path`, with its extension
  Status commit();                                             // syncs and renames

 private:
  enum class Kind : unsigned char { kReplace, kThrough };
  PendingFile(std::string path, std::string temporary, Kind kind)
      : path_(std::move(path)), temporary_(std::move(temporary)), kind_(kind) {}
  void discard();
  std::string path_;
  std::string temporary_;  // empty once committed or discarded
  Kind kind_ = Kind::kReplace;
};

}  // namespace ferry

#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace ferry {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxSuffix = 16;
constexpr int kMaxLinks = 40;

Error io_error(std::string_view what, const std::string& path) {
  const int code = errno;
  return error(code == ENOENT ? Code::kNotFound : Code::kIo, "{} '{}': {}", what, path,
               std::strerror(code));
}

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

// Into a file that exists, from where it begins.
Status write_bytes(const std::string& path, std::span<const std::byte> content) {
  Descriptor file{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
  if (file.fd < 0) return io_error("cannot open", path);
  for (size_t done = 0; done < content.size();) {
    const ssize_t n = ::write(file.fd, content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error("cannot write", path);
    done += static_cast<size_t>(n);
  }
  return {};
}

Status sync_path(const std::string& path, int flags) {
  Descriptor file{::open(path.c_str(), flags | O_CLOEXEC)};
  if (file.fd < 0) return io_error("cannot open", path);
  if (::fsync(file.fd) != 0 && errno != EINVAL) return io_error("cannot write", path);
  return {};
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return io_error("cannot open", path);
  struct stat info = {};
  if (::fstat(file.fd, &info) != 0) return io_error("cannot stat", path);
  if (S_ISDIR(info.st_mode)) return error(Code::kIo, "'{}' is a folder, not a file", path);
  if (!S_ISREG(info.st_mode)) return error(Code::kIo, "'{}' is not a regular file", path);
  const auto size = static_cast<size_t>(info.st_size);
  const std::byte* data = nullptr;
  if (size > 0) {
    void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
    if (mapped == MAP_FAILED) return io_error("cannot map", path);
    data = static_cast<const std::byte*>(mapped);
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(path, data, size));
}

void MappedFile::drop_pages() const {
  if (data_ != nullptr) ::madvise(const_cast<std::byte*>(data_), size_, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

Result<PendingFile> PendingFile::create(const std::string& path) {
  if (path.empty()) return error(Code::kInvalid, "a file to write needs a name");
  std::error_code failure;
  struct stat info = {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  std::string target = path;
  if (!exists || S_ISREG(info.st_mode)) {
    // Through links, so that they go on being links; also through those that lead to nothing yet.
    fs::path followed = path;
    for (int links = 0; links < kMaxLinks && fs::is_symlink(followed, failure); ++links) {
      followed = followed.parent_path() / fs::read_symlink(followed, failure);
    }
    target = followed.string();
  }
  if (exists && S_ISDIR(info.st_mode))
    return error(Code::kIo, "'{}' is a folder, not a file", path);
  // Renaming asks the folder only; who protected the file meant it.
  constexpr mode_t kAnyWrite = S_IWUSR | S_IWGRP | S_IWOTH;
  if (exists && ((info.st_mode & kAnyWrite) == 0 || ::access(target.c_str(), W_OK) != 0))
    return error(Code::kIo, "'{}' is write-protected", path);
  const Kind kind = exists && !S_ISREG(info.st_mode) ? Kind::kThrough : Kind::kReplace;

  // Hidden, so that what a killed process leaves is not taken for a result; short, so that it fits
  // wherever `path` does; with the extension, since encoders choose their format by it.
  std::string suffix = fs::path(target).extension().string();
  if (suffix.size() > kMaxSuffix) suffix.clear();
  const fs::path folder =
      kind == Kind::kThrough ? fs::temp_directory_path(failure) : fs::path(target).parent_path();
  std::string temporary = (folder / (".ferry-XXXXXX" + suffix)).string();
  const int fd = ::mkostemps(temporary.data(), static_cast<int>(suffix.size()), O_CLOEXEC);
  if (fd < 0) return io_error("cannot create a file beside", path);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(fd, 0666 & ~mask);
  ::close(fd);
  return PendingFile(std::move(target), std::move(temporary), kind);
}

PendingFile& PendingFile::operator=(PendingFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  path_ = std::move(other.path_);
  temporary_ = std::exchange(other.temporary_, {});
  kind_ = other.kind_;
  return *this;
}

Status PendingFile::commit() {
  if (kind_ == Kind::kThrough) {
    FERRY_TRY(content, MappedFile::open(temporary_));
    FERRY_CHECK_OK(write_bytes(path_, content->bytes()));
    discard();
    return {};
  }
  FERRY_CHECK_OK(sync_path(temporary_, O_RDWR));
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return io_error("cannot replace", path_);
  temporary_.clear();
  return {};
}

void PendingFile::discard() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

Status write_file_with(const std::string& path,
                       const std::function<Status(const std::string& temporary)>& produce) {
  FERRY_TRY(file, PendingFile::create(path));
  FERRY_CHECK_OK(produce(file.temporary()));
  return file.commit();
}

Status write_file(const std::string& path, std::span<const std::byte> content) {
  return write_file_with(path, [&](const std::string& temporary) {
    return write_bytes(temporary, content).within(fmt::format("cannot write '{}'", path));
  });
}

Status write_file(const std::string& path, std::string_view content) {
  return write_file(path, std::as_bytes(std::span(content.data(), content.size())));
}

}  // namespace ferry

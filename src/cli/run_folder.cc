#include "cli/run_folder.h"

#include <filesystem>
#include <system_error>

namespace ferry::cli {

namespace fs = std::filesystem;

Status make_folder(const std::string& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  if (failed) return error(Code::kIo, "cannot make folder '{}': {}", path, failed.message());
  return {};
}

Result<std::string> make_run_folder(const std::string& project, const std::string& name,
                                    IfExists if_exists) {
  const fs::path wish = fs::path(project) / name;
  if (wish.has_parent_path()) FERRY_CHECK_OK(make_folder(wish.parent_path().string()));
  fs::path path = wish;
  for (int number = 2;; ++number) {
    std::error_code failed;
    if (fs::create_directory(path, failed)) return path.string();
    if (failed && failed != std::errc::file_exists) {
      return error(Code::kIo, "cannot make folder '{}': {}", path.string(), failed.message());
    }
    if (if_exists == IfExists::kReuse && fs::is_directory(path)) return path.string();
    path = wish.string() + std::to_string(number);
  }
}

}  // namespace ferry::cli

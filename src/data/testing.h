// What the tests of datasets share: a folder with pictures and texts made on the spot.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "vision/encode.h"
#include "vision/picture.h"

namespace ferry::data {

// Removed with the test. The cache lies in it too, in cache/.
class DatasetFolder {
 public:
  DatasetFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ferry-data-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
    ::setenv("XDG_CACHE_HOME", (path_ / "cache").c_str(), 1);
  }
  ~DatasetFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  DatasetFolder(const DatasetFolder&) = delete;
  DatasetFolder& operator=(const DatasetFolder&) = delete;

  std::string at(const std::string& name) const { return (path_ / name).string(); }

  std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = path_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }

  std::string read(const std::string& name) const {
    std::ifstream file(path_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string picture(const std::string& name, int64_t width, int64_t height) const {
    const std::filesystem::path path = path_ / name;
    std::filesystem::create_directories(path.parent_path());
    auto made = vision::Picture::create(width, height);
    EXPECT_TRUE(made.ok());
    for (int64_t y = 0; y < height; ++y)
      std::fill(made->row(y), made->row(y) + made->stride(), uint8_t{200});
    EXPECT_TRUE(vision::encode_picture(*made, path.string()).ok());
    return path.string();
  }

  // A JPEG that EXIF says is to be turned by 90 degrees.
  std::string turned_picture(const std::string& name, int64_t width, int64_t height) const {
    const std::string path = picture(name, width, height);
    const std::string plain = read(name);
    const std::string exif(
        "\xFF\xE1\x00\x22"
        "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0",
        36);
    write(name, plain.substr(0, 2) + exif + plain.substr(2));
    return path;
  }

 private:
  std::filesystem::path path_;
};

// `FERRY_DATA`, else ../shared/data.
inline std::string real_data(const std::string& name) {
  const char* root = std::getenv("FERRY_DATA");
  return std::string(root != nullptr ? root : "../shared/data") + "/" + name;
}

#define FERRY_NEED_DATA(path)               \
  if (!std::filesystem::exists(path))       \
  GTEST_SKIP() << "NOT CHECKED: " << (path) \
               << " is absent; set FERRY_DATA to the folder of real files"

// "kind: where: message" of each, paths without their folders.
inline std::vector<std::string> texts_of(const std::vector<Problem>& problems) {
  std::vector<std::string> texts;
  for (const Problem& p : problems) {
    texts.push_back(std::string(name_of(p.trouble)) + ": " +
                    p.where.substr(p.where.rfind('/') + 1) + ": " + p.message);
  }
  return texts;
}

}  // namespace ferry::data

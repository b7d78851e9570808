#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace ferry {
namespace {

namespace fs = std::filesystem;

class WriteFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "ferry_write_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string text_of(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return std::move(text).str();
  }
  int64_t files() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

  fs::path folder_;
};

TEST_F(WriteFile, ReplacesTheWholeContentAndLeavesNothingElse) {
  const fs::path path = folder_ / "a.txt";
  ASSERT_TRUE(write_file(path.string(), "old content").ok());
  ASSERT_TRUE(write_file(path.string(), "new").ok());
  EXPECT_EQ(text_of(path), "new");
  EXPECT_EQ(files(), 1);
}

TEST_F(WriteFile, WhatFailsLeavesTheOldContent) {
  const fs::path path = folder_ / "a.txt";
  ASSERT_TRUE(write_file(path.string(), "old").ok());
  const Status status = write_file_with(path.string(), [](const std::string& temporary) -> Status {
    std::ofstream(temporary) << "half";
    return error(Code::kIo, "disk full");
  });
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(text_of(path), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(WriteFile, FollowsALink) {
  fs::create_symlink(folder_ / "real.txt", folder_ / "link.txt");
  ASSERT_TRUE(write_file((folder_ / "link.txt").string(), "content").ok());  // it dangled
  EXPECT_TRUE(fs::is_symlink(folder_ / "link.txt"));
  EXPECT_EQ(text_of(folder_ / "real.txt"), "content");
}

TEST_F(WriteFile, APipeStaysAPipe) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::jthread reader([&] { read = text_of(pipe); });
  ASSERT_TRUE(write_file(pipe.string(), "through").ok());
  reader.join();
  EXPECT_EQ(read, "through");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(WriteFile, NamesMayBeAsLongAsTheFileSystemAllows) {
  const fs::path path = folder_ / (std::string(251, 'x') + ".txt");
  EXPECT_TRUE(write_file(path.string(), "content").ok());
  EXPECT_EQ(text_of(path), "content");
}

TEST_F(WriteFile, AFolderIsRefused) {
  const Status status = write_file(folder_.string(), "content");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("is a folder"), std::string::npos);
}

TEST_F(WriteFile, AProtectedFileIsNotReplaced) {
  const fs::path path = folder_ / "weights.pt";
  ASSERT_TRUE(write_file(path.string(), "weights").ok());
  fs::permissions(path, fs::perms::owner_read);
  const Status status = write_file(path.string(), "json");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("write-protected"), std::string::npos);
  EXPECT_EQ(text_of(path), "weights");
}

// What a killed process leaves must not look like a result.
TEST_F(WriteFile, TheTemporaryFileIsHiddenAndKeepsTheExtension) {
  auto pending = PendingFile::create((folder_ / "video.mp4").string());
  ASSERT_TRUE(pending.ok());
  const fs::path temporary = pending->temporary();
  EXPECT_TRUE(temporary.filename().string().starts_with('.'));
  EXPECT_EQ(temporary.extension(), ".mp4");
  EXPECT_EQ(temporary.parent_path(), folder_);
}

}  // namespace
}  // namespace ferry

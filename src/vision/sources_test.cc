#include "vision/sources.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace ferry::vision {
namespace {

namespace fs = std::filesystem;

class Sources : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "ferry_sources_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    for (const char* name :
         {"b.JPG", "a.png", "图片.jpg", "clip.mp4", "notes.md", "sub/c.jpg", "sub/deep/d.webp"}) {
      fs::create_directories((folder_ / name).parent_path());
      std::ofstream(folder_ / name) << "x";
    }
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  std::vector<std::string> names(const std::string& source, const std::string& input = "") {
    std::istringstream stream(input);
    const auto found = find_sources(source, stream);
    if (!found.ok()) return {"error: " + found.error().message};
    std::vector<std::string> out;
    for (const Source& s : *found)
      out.push_back(fs::path(s.path).lexically_relative(folder_).string());
    return out;
  }
  using Names = std::vector<std::string>;
  fs::path folder_;
};

TEST_F(Sources, AFolderGivesItsPicturesAndVideosSortedAndNothingElse) {
  EXPECT_EQ(names(folder_.string()), (Names{"a.png", "b.JPG", "clip.mp4", "图片.jpg"}));
}

TEST_F(Sources, KindsGoBySuffix) {
  EXPECT_EQ((*find_sources(at("clip.mp4")))[0].kind, SourceKind::kVideo);
  EXPECT_EQ((*find_sources(at("b.JPG")))[0].kind, SourceKind::kPicture);
  EXPECT_EQ((*find_sources(at("notes.md")))[0].kind, SourceKind::kPicture);
  EXPECT_EQ((*find_sources("rtsp://camera/1"))[0].kind, SourceKind::kStream);
  EXPECT_EQ((*find_sources("RTSP://camera/1"))[0].kind, SourceKind::kStream);
  EXPECT_EQ((*find_sources("0"))[0].kind, SourceKind::kStream);
}

TEST_F(Sources, GlobsMatchWithinAComponentAndTwoStarsAcrossFolders) {
  EXPECT_EQ(names(at("*.jpg")), (Names{"图片.jpg"}));
  EXPECT_EQ(names(at("?.*")), (Names{"a.png", "b.JPG"}));
  EXPECT_EQ(names(at("**/*.jpg")), (Names{"sub/c.jpg", "图片.jpg"}));
  EXPECT_EQ(names(at("sub/**")), (Names{"sub/c.jpg", "sub/deep/d.webp"}));
  EXPECT_NE(names(at("*.gif"))[0].find("no picture or video matches"), std::string::npos);
}

TEST_F(Sources, AFileLiterallyNamedLikeAGlobIsThatFile) {
  std::ofstream(folder_ / "x[1].jpg") << "x";
  EXPECT_EQ(names(at("x[1].jpg")), (Names{"x[1].jpg"}));
}

TEST_F(Sources, ListsSkipCommentsAndLookBesideThemselves) {
  std::ofstream(folder_ / "list.txt")
      << "\xef\xbb\xbf# pictures\r\n\r\nsub/c.jpg\r\n  " << at("a.png") << " \n";
  EXPECT_EQ(names(at("list.txt")), (Names{"sub/c.jpg", "a.png"}));
  EXPECT_EQ(names("-", at("a.png") + "\n" + at("sub")), (Names{"a.png", "sub/c.jpg"}));
}

TEST_F(Sources, AListKeepsWhatIsNotThereForTheReaderToReport) {
  std::ofstream(folder_ / "list.txt") << "a.png\nmissing.jpg\n";
  const auto found = find_sources(at("list.txt"));
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ((*found)[1], (Source{"missing.jpg", SourceKind::kPicture}));
}

TEST_F(Sources, ErrorsNameTheThing) {
  EXPECT_NE(names("-", "\n\n")[0].find("names nothing"), std::string::npos);
  EXPECT_NE(names(at("nowhere"))[0].find("nowhere' does not exist"), std::string::npos);
  fs::create_directory(folder_ / "empty");
  EXPECT_NE(names(at("empty"))[0].find("holds no picture or video"), std::string::npos);
  std::ofstream(folder_ / "loop.txt") << "loop.txt\n";
  EXPECT_NE(names(at("loop.txt"))[0].find("lists within lists"), std::string::npos);
}

}  // namespace
}  // namespace ferry::vision

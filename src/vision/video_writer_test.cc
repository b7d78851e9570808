#include "vision/video_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "vision/test_files.h"
#include "vision/video_reader.h"

namespace ferry::vision {
namespace {

// A bright square on a dark ground that moves with the frame's number.
Picture moving(int64_t width, int64_t height, int64_t number) {
  Picture picture = *Picture::create(width, height);
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      const bool inside = x / 16 == number % std::max<int64_t>(width / 16, 1) && y < height / 2;
      uint8_t* pixel = picture.row(y) + x * 3;
      pixel[0] = inside ? 40 : 100;
      pixel[1] = inside ? 200 : 60;
      pixel[2] = inside ? 220 : 30;
    }
  return picture;
}

std::vector<VideoFrame> read_all(const std::string& path) {
  std::vector<VideoFrame> frames;
  auto reader = VideoReader::open(path);
  EXPECT_TRUE(reader.ok()) << reader.error().message;
  while (reader.ok()) {
    auto next = reader->next();
    EXPECT_TRUE(next.ok());
    if (!next.ok() || !next->has_value()) break;
    frames.push_back(**std::move(next));
  }
  return frames;
}

double mean_difference(const PictureView& a, const PictureView& b) {
  int64_t sum = 0;
  for (int64_t y = 0; y < b.height; ++y)
    for (int64_t i = 0; i < b.width * 3; ++i) sum += std::abs(a.row(y)[i] - b.row(y)[i]);
  return static_cast<double>(sum) / static_cast<double>(b.width * b.height * 3);
}

class EveryCodec : public ::testing::TestWithParam<std::tuple<VideoCodec, const char*>> {};

TEST_P(EveryCodec, FramesComeBackInOrderWithTheirTimes) {
  const auto [codec, name] = GetParam();
  const testing::TemporaryFolder folder;
  const std::string path = folder.file(name);
  // A variable rate: 0, 0.04, 0.10, 0.18, ... on a clock that does not begin at zero.
  std::vector<double> times;
  for (int i = 0; i < 12; ++i) times.push_back(1000 + 0.03 * i + 0.01 * i * i);
  auto writer = VideoWriter::create(path, {.fps = 10, .quality = 12, .codec = codec});
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  for (int i = 0; i < 12; ++i)
    ASSERT_TRUE(writer->write(moving(192, 96, i), times[static_cast<size_t>(i)]).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  const Status closed = writer->close();
  ASSERT_TRUE(closed.ok()) << closed.error().message;
  EXPECT_EQ(folder.names(), std::vector<std::string>{name});
  const auto frames = read_all(path);
  ASSERT_EQ(frames.size(), 12u);
  for (size_t i = 0; i < frames.size(); ++i) {
    EXPECT_NEAR(frames[i].seconds, times[i] - 1000, 0.0011) << i;  // Matroska counts milliseconds
    EXPECT_LT(mean_difference(frames[i].picture, moving(192, 96, static_cast<int64_t>(i))), 4) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, EveryCodec,
                         ::testing::Values(std::tuple(VideoCodec::kBest, "a.mp4"),
                                           std::tuple(VideoCodec::kMpeg4, "b.mp4"),
                                           std::tuple(VideoCodec::kBest, "c.mkv"),
                                           std::tuple(VideoCodec::kMpeg4, "d.mkv")));

TEST(VideoWriter, UsesH264WhereThereIsAnEncoder) {
  const testing::TemporaryFolder folder;
  const auto best = VideoWriter::create(folder.file("a.mp4"));
  ASSERT_TRUE(best.ok());
  if (best->codec() != "libx264") GTEST_SKIP() << "NOT CHECKED: this libavcodec has no libx264";
  EXPECT_EQ(VideoWriter::create(folder.file("b.mp4"), {.codec = VideoCodec::kMpeg4})->codec(),
            "mpeg4");
}

TEST(VideoWriter, DoublesTheLastRowAndColumnOfOddPictures) {
  const testing::TemporaryFolder folder;
  for (const VideoCodec codec : {VideoCodec::kBest, VideoCodec::kMpeg4}) {
    auto writer = VideoWriter::create(folder.file("odd.mp4"), {.quality = 5, .codec = codec});
    ASSERT_TRUE(writer.ok());
    const Picture picture = moving(101, 53, 2);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(writer->write(picture, i * 0.04).ok());
    ASSERT_TRUE(writer->close().ok());
    const auto frames = read_all(folder.file("odd.mp4"));
    ASSERT_EQ(frames.size(), 3u);
    EXPECT_EQ(frames[0].picture.width(), 102);
    EXPECT_EQ(frames[0].picture.height(), 54);
    EXPECT_LT(mean_difference(frames[0].picture, picture), 6);
    EXPECT_NEAR(frames[0].picture.row(53)[101 * 3], 100,
                8);  // the doubled corner: blue of the ground
  }
}

TEST(VideoWriter, ASinglePixelIsAVideoToo) {
  const testing::TemporaryFolder folder;
  auto writer = VideoWriter::create(folder.file("a.mp4"), {.codec = VideoCodec::kMpeg4});
  ASSERT_TRUE(writer.ok());
  const Status wrote = writer->write(moving(1, 1, 0), 0);
  if (wrote.ok()) {
    EXPECT_TRUE(writer->close().ok());
  } else {
    EXPECT_EQ(wrote.error().code, Code::kUnsupported) << wrote.error().message;
  }
}

TEST(VideoWriter, ScalesFramesWhoseSizeChanges) {
  const testing::TemporaryFolder folder;
  auto writer = VideoWriter::create(folder.file("a.mp4"));
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->write(moving(64, 48, 0), 0).ok());
  ASSERT_TRUE(writer->write(moving(128, 97, 0), 0.04).ok());
  ASSERT_TRUE(writer->write(moving(32, 24, 0), 0.08).ok());
  ASSERT_TRUE(writer->close().ok());
  const auto frames = read_all(folder.file("a.mp4"));
  ASSERT_EQ(frames.size(), 3u);
  for (const VideoFrame& frame : frames) EXPECT_EQ(frame.picture.width(), 64);
}

TEST(VideoWriter, TimesThatStandStillOrGoBackAreMovedOn) {
  const testing::TemporaryFolder folder;
  auto writer = VideoWriter::create(folder.file("a.mkv"));
  ASSERT_TRUE(writer.ok());
  for (const double seconds : {5.0, 5.0, 4.0, std::nan(""), 6.0})
    ASSERT_TRUE(writer->write(moving(64, 48, 1), seconds).ok());
  ASSERT_TRUE(writer->close().ok());
  const auto frames = read_all(folder.file("a.mkv"));
  ASSERT_EQ(frames.size(), 5u);
  EXPECT_NEAR(frames[4].seconds, 1.0, 0.002);
}

TEST(VideoWriter, LeavesNothingWhenItIsNotClosed) {
  const testing::TemporaryFolder folder;
  {
    auto writer = VideoWriter::create(folder.file("a.mp4"));
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->write(moving(64, 48, 0), 0).ok());
    EXPECT_EQ(folder.names().size(), 1u);  // the temporary file
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(VideoWriter, RefusesWhatItCannotDo) {
  const testing::TemporaryFolder folder;
  EXPECT_EQ(VideoWriter::create(folder.file("a.txt")).error().code, Code::kUnsupported);
  EXPECT_EQ(VideoWriter::create("no/such/folder/a.mp4").error().code, Code::kNotFound);
  auto writer = VideoWriter::create(folder.file("a.mp4"));
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ(writer->close().error().code, Code::kInvalid);  // no frame
  EXPECT_FALSE(writer->write(moving(8, 8, 0), 0).ok());     // closed
  EXPECT_TRUE(folder.names().empty());
}

TEST(VideoWriter, AFullDiskIsAnErrorAndKeepsTheOldFile) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.file("a.mp4");
  {
    auto writer = VideoWriter::create(path);
    ASSERT_TRUE(writer.ok() && writer->write(moving(64, 48, 0), 0).ok() && writer->close().ok());
  }
  const auto old_size = std::filesystem::file_size(path);
  // A limit on file sizes stands in for the full disk: write() fails in the same way.
  struct rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit tiny = {40000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tiny);
  Status status;
  {
    auto writer = VideoWriter::create(path, {.quality = 0});
    uint32_t random = 1;
    for (int i = 0; i < 60 && status.ok(); ++i) {
      Picture noise = moving(160, 120, i);
      for (int64_t y = 0; y < 120; ++y)
        for (int64_t x = 0; x < 480; ++x)
          noise.row(y)[x] = static_cast<uint8_t>((random = random * 1664525 + 1013904223) >> 24);
      status = writer->write(noise, i * 0.04);
    }
    if (status.ok()) status = writer->close();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kIo) << status.error().message;
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.mp4"});
  EXPECT_EQ(std::filesystem::file_size(path), old_size);
}

TEST(VideoWriter, KeepsTheFramesAndTimesOfARealVideo) {
  const std::string path = testing::data_path("video/shop_cctv_1280x720_vfr_h264.mp4");
  FERRY_NEED_FILE(path);
  const testing::TemporaryFolder folder;
  auto reader = VideoReader::open(path);
  ASSERT_TRUE(reader.ok());
  auto writer = VideoWriter::create(folder.file("copy.mp4"), {.fps = reader->info().fps});
  ASSERT_TRUE(writer.ok());
  std::vector<double> times;
  for (;;) {
    auto next = reader->next();
    ASSERT_TRUE(next.ok());
    if (!next->has_value()) break;
    times.push_back((*next)->seconds);
    ASSERT_TRUE(writer->write((*next)->picture, (*next)->seconds).ok());
  }
  ASSERT_TRUE(writer->close().ok());
  const auto copy = read_all(folder.file("copy.mp4"));
  ASSERT_EQ(copy.size(), 29u);
  for (size_t i = 0; i < copy.size(); ++i) EXPECT_NEAR(copy[i].seconds, times[i], 2e-5);
}

}  // namespace
}  // namespace ferry::vision

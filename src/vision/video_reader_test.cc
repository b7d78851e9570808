// Expected numbers of frames come from `ffprobe -count_frames`, times from its packet times,
// checksums of frames from OpenCV 4.11's VideoCapture (`zlib.crc32(image.tobytes())`). The turned
// file's frame was checked against ffmpeg, which turns the frames of the 360p transport stream (the
// same pictures) by 90 degrees clockwise.
#include "vision/video_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/mapped_file.h"
#include "vision/picture_orient.h"
#include "vision/test_files.h"

namespace ferry::vision {
namespace {

using testing::data_path;

struct Row {
  const char* file;
  int64_t width, height, frames;
  double fps;
  const char* codec;
  uint32_t first, second, last;  // checksums of frames
  double last_seconds;
};

constexpr Row kVideos[] = {
    {"street_pedestrians_1080p25_h264.mp4", 1920, 1080, 96, 25, "h264", 0x187ddeca, 0x5681c236,
     0x81fb3c20, 3.8},
    {"rigger_helmet_360x640p30_h264.mp4", 360, 640, 630, 30, "h264", 0x3b71d7dc, 0xb885b8ca,
     0xbfdb9fd1, 20.966667},
    {"persons_one_by_one_768x432p10_h264.mp4", 768, 432, 1394, 10, "h264", 0x190f71a8, 0xe4826f5e,
     0x94900edf, 139.3},
    {"shop_cctv_1280x720_vfr_h264.mp4", 1280, 720, 29, 15.930467, "h264", 0x458dd332, 0x2302dffb,
     0x95c823a7, 1.759844},
    {"derived/street_360p.ts", 640, 360, 50, 25, "h264", 0x1adbc0dd, 0x16afa047, 0x9d6fe976, 1.96},
    {"derived/street_hevc_480p.mkv", 854, 480, 50, 25, "hevc", 0x131d3fe2, 0xf16bd3b9, 0x523e46f2,
     1.96},
    {"derived/street_annexb_bframes_540p.h264", 960, 540, 50, 25, "h264", 0x7de90f00, 0x8a9a3f24,
     0x5820044d, 1.96},
};

class RealVideo : public ::testing::TestWithParam<Row> {};

TEST_P(RealVideo, GivesEveryFrameAsOpenCvDoes) {
  const Row& row = GetParam();
  const std::string path = data_path(std::string("video/") + row.file);
  FERRY_NEED_FILE(path);
  auto reader = VideoReader::open(path);
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_EQ(reader->info().width, row.width);
  EXPECT_EQ(reader->info().height, row.height);
  EXPECT_NEAR(reader->info().fps, row.fps, 1e-5);
  EXPECT_EQ(reader->info().codec, row.codec);
  Picture reuse;
  int64_t frames = 0;
  double seconds = -1;
  uint32_t crc = 0;
  for (;;) {
    auto next = reader->next(std::move(reuse));
    ASSERT_TRUE(next.ok()) << next.error().message;
    if (!next->has_value()) break;
    VideoFrame& frame = **next;
    EXPECT_EQ(frame.index, frames);
    EXPECT_GT(frame.seconds, seconds);
    EXPECT_FALSE(frame.damaged);
    seconds = frame.seconds;
    if (frames < 2 || frames == row.frames - 1) crc = testing::crc_of(frame.picture);
    if (frames == 0) {
      EXPECT_EQ(crc, row.first);
      EXPECT_EQ(seconds, 0);
    }
    if (frames == 1) {
      EXPECT_EQ(crc, row.second);
    }
    ++frames;
    reuse = std::move(frame.picture);
  }
  EXPECT_EQ(frames, row.frames);
  EXPECT_EQ(crc, row.last);
  EXPECT_NEAR(seconds, row.last_seconds, 1e-5);
  EXPECT_EQ(reader->counters().skipped_packets, 0);
  EXPECT_EQ(reader->counters().frames, row.frames);
  const int64_t expected = reader->info().frames == 0 ? 0 : row.frames;  // raw H.264 does not say
  EXPECT_EQ(reader->info().frames, expected);
}

std::string test_name(const ::testing::TestParamInfo<Row>& info) {
  std::string name(info.param.file);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Files, RealVideo, ::testing::ValuesIn(kVideos), test_name);

// Reads to the end; the number of frames, or -1 after an error.
int64_t count(VideoReader& reader) {
  int64_t frames = 0;
  for (;;) {
    const auto next = reader.next();
    if (!next.ok()) return -1;
    if (!next->has_value()) return frames;
    ++frames;
  }
}

TEST(VideoReader, KeepsTheTimesOfAVariableRate) {
  const std::string path = data_path("video/shop_cctv_1280x720_vfr_h264.mp4");
  FERRY_NEED_FILE(path);
  auto reader = VideoReader::open(path);
  ASSERT_TRUE(reader.ok());
  std::vector<double> times;
  for (int i = 0; i < 3; ++i) times.push_back((**reader->next()).seconds);
  EXPECT_NEAR(times[1], 0.057178, 1e-5);
  EXPECT_NEAR(times[2], 0.119678, 1e-5);
}

TEST(VideoReader, TurnsAPictureThatWasFilmedOnItsSide) {
  const std::string turned_path = data_path("video/derived/street_rotate90_360p.mp4");
  const std::string level_path = data_path("video/derived/street_360p.ts");
  FERRY_NEED_FILE(turned_path);
  auto turned = VideoReader::open(turned_path);
  auto level = VideoReader::open(level_path);
  ASSERT_TRUE(turned.ok() && level.ok());
  EXPECT_EQ(turned->info().width, 360);
  EXPECT_EQ(turned->info().height, 640);
  const Picture seen = std::move((**turned->next()).picture);
  const auto expected = orient(std::move((**level->next()).picture), 6);  // 90 degrees clockwise
  ASSERT_TRUE(expected.ok());
  EXPECT_EQ(testing::crc_of(seen), testing::crc_of(*expected));
  EXPECT_EQ(count(*turned), 49);
}

TEST(VideoReader, DeliversTheLastOfEveryStrideFramesAsUpstreamDoes) {
  const std::string path = data_path("video/derived/street_360p.ts");
  FERRY_NEED_FILE(path);
  auto reader = VideoReader::open(path, {.stride = 7});
  ASSERT_TRUE(reader.ok());
  const auto first = reader->next();
  EXPECT_EQ((*first)->index, 6);
  EXPECT_NEAR((*first)->seconds, 6 * 0.04, 1e-6);
  EXPECT_EQ(count(*reader),
            6);  // 13, 20, 27, 34, 41, 48; the fiftieth frame begins an eighth group
  EXPECT_EQ(reader->counters().frames, 50);
  EXPECT_EQ(VideoReader::open(path, {.stride = 0}).error().code, Code::kInvalid);
}

TEST(VideoReader, IsDoneOnceAtTheEnd) {
  const std::string path = data_path("video/derived/street_360p.ts");
  FERRY_NEED_FILE(path);
  auto reader = VideoReader::open(path, {.threads = 1});
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(count(*reader), 50);
  EXPECT_EQ(count(*reader), 0);
}

TEST(VideoReader, RefusesWhatIsNoVideoWithTheReason) {
  const testing::TemporaryFolder folder;
  EXPECT_EQ(VideoReader::open(folder.file("none.mp4")).error().code, Code::kNotFound);
  EXPECT_EQ(VideoReader::open(folder.file("")).error().code, Code::kIo);
  ASSERT_TRUE(write_file(folder.file("empty.mp4"), "").ok());
  ASSERT_TRUE(write_file(folder.file("text.mp4"), std::string(5000, 'x')).ok());
  for (const char* name : {"empty.mp4", "text.mp4"}) {
    const auto reader = VideoReader::open(folder.file(name));
    ASSERT_FALSE(reader.ok()) << name;
    EXPECT_EQ(reader.error().code, Code::kInvalid) << reader.error().message;
    EXPECT_NE(reader.error().message.find(folder.file(name)), std::string::npos);
  }
}

TEST(VideoReader, RefusesAnMp4CutBeforeItsIndex) {
  const std::string path = data_path("video/derived/street_truncated_1080p.mp4");
  FERRY_NEED_FILE(path);
  const auto reader = VideoReader::open(path);
  ASSERT_FALSE(reader.ok());
  EXPECT_EQ(reader.error().code, Code::kInvalid);
}

// The beginning of a file, under a name with the same ending and a colon, which is no protocol.
std::string cut_copy(const testing::TemporaryFolder& folder, const std::string& path, double part) {
  const auto file = MappedFile::open(path);
  EXPECT_TRUE(file.ok());
  const auto bytes = (*file)->bytes();
  const std::string copy = folder.file("cut:1" + std::filesystem::path(path).extension().string());
  EXPECT_TRUE(
      write_file(copy, bytes.first(static_cast<size_t>(static_cast<double>(bytes.size()) * part)))
          .ok());
  return copy;
}

TEST(VideoReader, GivesWhatIsThereOfACutFile) {
  const testing::TemporaryFolder folder;
  for (const char* name : {"derived/street_360p.ts", "derived/street_hevc_480p.mkv",
                           "derived/street_annexb_bframes_540p.h264"}) {
    const std::string path = data_path(std::string("video/") + name);
    FERRY_NEED_FILE(path);
    auto reader = VideoReader::open(cut_copy(folder, path, 0.6));
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    const int64_t frames = count(*reader);
    EXPECT_GE(frames, 15) << name;
    EXPECT_LT(frames, 50) << name;
  }
}

TEST(VideoReader, SurvivesBytesThatAreWrong) {
  const std::string path = data_path("video/derived/street_360p.ts");
  FERRY_NEED_FILE(path);
  const testing::TemporaryFolder folder;
  const std::string copy = cut_copy(folder, path, 1);
  uint32_t random = 7;
  {
    std::fstream file(copy, std::ios::in | std::ios::out | std::ios::binary);
    for (int i = 0; i < 200; ++i) {
      random = random * 1664525 + 1013904223;
      file.seekp(static_cast<std::streamoff>(8000 + (random >> 8) % 70000));
      file.put(static_cast<char>(random >> 24));
    }
  }
  auto reader = VideoReader::open(copy);
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  const int64_t frames = count(*reader);
  EXPECT_GE(frames, 10);
  EXPECT_GT(reader->counters().damaged_frames + reader->counters().skipped_packets, 0);
}

TEST(VideoReader, RefusesFramesBeyondTheLimit) {
  const std::string path = data_path("video/derived/street_360p.ts");
  FERRY_NEED_FILE(path);
  auto reader = VideoReader::open(path, {.max_pixels = 640 * 300});
  EXPECT_TRUE(!reader.ok() || count(*reader) <= 0);
}

TEST(VideoReader, StopsWhenAsked) {
  std::stop_source stop;
  stop.request_stop();
  // 192.0.2.0/24 is set aside for documentation: nothing answers there.
  const auto reader = VideoReader::open("rtsp://192.0.2.1/stream", {.stop = stop.get_token()});
  ASSERT_FALSE(reader.ok());
  EXPECT_EQ(reader.error().code, Code::kCancelled) << reader.error().message;
}

TEST(VideoReader, DoesNotWaitForASourceThatStaysSilent) {
  const auto reader = VideoReader::open("rtsp://192.0.2.1/stream", {.open_timeout = 0.2});
  ASSERT_FALSE(reader.ok());
  EXPECT_EQ(reader.error().code, Code::kIo) << reader.error().message;
}

}  // namespace
}  // namespace ferry::vision

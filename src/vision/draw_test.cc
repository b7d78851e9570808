#include "vision/draw.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/mapped_file.h"
#include "vision/draw_label.h"
#include "vision/test_files.h"

namespace ferry::vision {
namespace {

constexpr Color kRed{255, 0, 0};

Picture black(int64_t width, int64_t height, PixelFormat format = PixelFormat::kBgr8) {
  Picture picture = *Picture::create(width, height, format);
  std::memset(picture.data(), 0, static_cast<size_t>(picture.stride() * height));
  return picture;
}

// Rows of '#' where the red channel is full, '.' where it is zero, '+' between.
std::vector<std::string> red_map(const Picture& picture) {
  std::vector<std::string> rows;
  for (int64_t y = 0; y < picture.height(); ++y) {
    rows.emplace_back();
    for (int64_t x = 0; x < picture.width(); ++x) {
      const uint8_t red = picture.view().at(x, y)[picture.format() == PixelFormat::kBgr8 ? 2 : 0];
      rows.back() += red == 255 ? '#' : red == 0 ? '.' : '+';
    }
  }
  return rows;
}

TEST(ClassColor, IsUltralyticsPaletteRoundAndRound) {
  EXPECT_EQ(class_color(0), (Color{0xFF, 0x38, 0x38}));
  EXPECT_EQ(class_color(5), (Color{0x48, 0xF9, 0x0A}));
  EXPECT_EQ(class_color(19), (Color{0xFF, 0x37, 0xC7}));
  EXPECT_EQ(class_color(20), class_color(0));
  EXPECT_EQ(class_color(79), class_color(19));
  EXPECT_EQ(class_color(std::numeric_limits<int64_t>::min()).red,
            class_color(8).red);  // no overflow
}

TEST(DefaultLineWidth, FollowsUpstreamsFormula) {
  EXPECT_EQ(default_line_width(810, 1080), 3);   // 1893 / 2 * 0.003 = 2.84
  EXPECT_EQ(default_line_width(640, 480), 2);    // 1.68
  EXPECT_EQ(default_line_width(1920, 1080), 5);  // 4.50
  EXPECT_EQ(default_line_width(3840, 2160), 9);  // 9.00
  EXPECT_EQ(default_line_width(10, 10), 2);
}

TEST(Annotator, DrawsAFrameAroundTheCorners) {
  Picture picture = black(10, 8);
  ASSERT_TRUE(Annotator({.line_width = 1})
                  .draw(picture, std::vector<LabeledBox>{{2.9, 1.2, 7.0, 5.9, kRed}})
                  .ok());
  EXPECT_EQ(red_map(picture), (std::vector<std::string>{
                                  "..........",
                                  "..######..",
                                  "..#....#..",
                                  "..#....#..",
                                  "..#....#..",
                                  "..######..",
                                  "..........",
                                  "..........",
                              }));
}

TEST(Annotator, CentresThickLinesOnTheEdges) {
  Picture picture = black(9, 9);
  ASSERT_TRUE(
      Annotator({.line_width = 3}).draw(picture, std::vector<LabeledBox>{{1, 1, 7, 7, kRed}}).ok());
  const auto rows = red_map(picture);
  EXPECT_EQ(rows[0], "#########");
  EXPECT_EQ(rows[2], "#########");
  EXPECT_EQ(rows[3], "###...###");
  EXPECT_EQ(rows[8], "#########");
}

TEST(Annotator, TakesCornersInAnyOrderAndColoursInThePicturesOrder) {
  Picture bgr = black(10, 8);
  Picture rgb = black(10, 8, PixelFormat::kRgb8);
  Annotator annotator({.line_width = 1});
  ASSERT_TRUE(annotator.draw(bgr, std::vector<LabeledBox>{{2, 1, 7, 5, kRed}}).ok());
  ASSERT_TRUE(annotator.draw(rgb, std::vector<LabeledBox>{{7, 5, 2, 1, kRed}}).ok());
  EXPECT_EQ(red_map(bgr), red_map(rgb));
  EXPECT_EQ(testing::sums_of(bgr)[0], 0);
}

TEST(Annotator, SurvivesBoxesOutsideThePictureAndNumbersThatAreNone) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::nan("");
  Picture picture = black(20, 20);
  Annotator annotator;
  const std::vector<LabeledBox> boxes = {
      {-50, -50, -10, -10, kRed, "x"},
      {100, 100, 200, 200, kRed, "x"},
      {-inf, -inf, inf, inf, kRed, "x"},
      {nan, 0, 5, 5, kRed, "x"},
      {1e300, -1e300, 0, 0, kRed, "x"},
      {5, 5, 5, 5, kRed, ""},
      {0, 0, 19, 19, kRed, "a label far wider than the whole picture is"},
  };
  EXPECT_TRUE(annotator.draw(picture, boxes).ok());
  Picture one = black(1, 1);
  EXPECT_TRUE(annotator.draw(one, boxes).ok());
  Picture none;
  EXPECT_FALSE(annotator.draw(none, boxes).ok());
}

TEST(Annotator, PutsTheLabelAboveTheBoxOrInsideAtTheTopEdge) {
  Annotator annotator({.line_width = 2});
  Picture low = black(200, 120);
  ASSERT_TRUE(
      annotator.draw(low, std::vector<LabeledBox>{{20, 60, 180, 110, {0, 0, 255}, "person 0.87"}})
          .ok());
  const auto above = red_map(low);  // the blue background has no red, white text has
  int64_t text_rows_above = 0;
  for (int64_t y = 0; y < 59; ++y)
    text_rows_above += above[static_cast<size_t>(y)].find('#') != std::string::npos;
  EXPECT_GE(text_rows_above, 8);
  EXPECT_EQ(low.view().at(22, 57)[0], 255);  // background just above the frame
  for (size_t y = 62; y < 109; ++y) EXPECT_EQ(above[y].find('#'), std::string::npos) << y;

  Picture high = black(200, 120);
  ASSERT_TRUE(
      annotator.draw(high, std::vector<LabeledBox>{{20, 4, 180, 110, {0, 0, 255}, "person 0.87"}})
          .ok());
  const auto inside = red_map(high);
  EXPECT_EQ(inside[2].find('#'), std::string::npos);
  int64_t text_rows_inside = 0;
  for (size_t y = 4; y < 40; ++y) text_rows_inside += inside[y].find('#') != std::string::npos;
  EXPECT_EQ(text_rows_inside, text_rows_above);
}

TEST(Annotator, MovesALabelLeftWhereItWouldLeaveThePicture) {
  Picture picture = black(200, 100);
  ASSERT_TRUE(
      Annotator({.line_width = 2})
          .draw(picture, std::vector<LabeledBox>{{190, 50, 199, 99, {0, 0, 255}, "person 0.87"}})
          .ok());
  EXPECT_EQ(picture.view().at(150, 40)[0], 255);
  EXPECT_EQ(picture.view().at(199, 40)[0], 255);
}

TEST(LabelMaker, TextThatIsNotUtf8IsShownAllTheSame) {
  auto maker = LabelMaker::create("sans-serif");
  ASSERT_TRUE(maker.ok()) << maker.error().message;
  for (const std::string text : {"\xff\xfe\x80", "a\nb\r\nc", "\t", " ", "\xe4\xba", "%s%n"}) {
    const auto mask = maker->mask(text, 20);
    ASSERT_TRUE(mask.ok());
    EXPECT_EQ((*mask)->coverage.size(), static_cast<size_t>((*mask)->width * (*mask)->height));
    EXPECT_LT((*mask)->height, 60);  // one line
  }
}

TEST(LabelMakerDeathTest, WithoutAnyFontSaysWhatToInstall) {
  // In a process of its own: fontconfig reads its settings once.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const testing::TemporaryFolder folder;
  const std::string settings = folder.file("fonts.conf");
  ASSERT_TRUE(write_file(settings, "<?xml version=\"1.0\"?><fontconfig></fontconfig>").ok());
  EXPECT_EXIT(
      {
        setenv("FONTCONFIG_FILE", settings.c_str(), 1);
        const auto maker = LabelMaker::create("sans-serif");
        if (!maker.ok()) std::fputs(maker.error().message.c_str(), stderr);
        _exit(maker.ok() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "apt-get install");
}

TEST(LabelMaker, LongTextIsCut) {
  auto maker = LabelMaker::create("sans-serif");
  ASSERT_TRUE(maker.ok());
  const auto mask = maker->mask(std::string(1 << 20, 'w'), 16);
  ASSERT_TRUE(mask.ok());
  EXPECT_LT((*mask)->width, 202 * 16);
}

TEST(LabelMaker, TheSameLabelIsLaidOutOnce) {
  auto maker = LabelMaker::create("sans-serif");
  ASSERT_TRUE(maker.ok());
  const LabelMask* first = *maker->mask("person", 20);
  EXPECT_EQ(*maker->mask("person", 20), first);
  EXPECT_NE((*maker->mask("person", 30))->height, first->height);
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(maker->mask(std::to_string(i), 12).ok());  // bounded
}

TEST(LabelMaker, ChineseIsDrawnWithARealFont) {
  auto maker = LabelMaker::create("sans-serif");
  ASSERT_TRUE(maker.ok());
  EXPECT_EQ((*maker->mask("person 0.5", 20))->missing, 0);
  const LabelMask& chinese = **maker->mask("安全帽", 20);
  if (chinese.missing > 0)
    GTEST_SKIP() << "NOT CHECKED: no font for Chinese; install fonts-wqy-microhei";
  EXPECT_GE(chinese.width, 50);  // three full squares
  Picture picture = black(100, 100);
  Annotator annotator;
  ASSERT_TRUE(
      annotator.draw(picture, std::vector<LabeledBox>{{9, 50, 90, 90, kRed, "安全帽"}}).ok());
  EXPECT_FALSE(annotator.missing_glyphs());
  ASSERT_TRUE(
      annotator.draw(picture, std::vector<LabeledBox>{{9, 50, 90, 90, kRed, "\xf3\xb0\x80\x81"}})
          .ok());
  EXPECT_TRUE(annotator.missing_glyphs());  // a private character that no font has
}

}  // namespace
}  // namespace ferry::vision

#include <gtest/gtest.h>

#include "data/labels.h"

namespace ferry::data {
namespace {

void expect_box(const Label& label, int class_id, double x, double y, double width, double height) {
  EXPECT_EQ(label.class_id, class_id);
  EXPECT_NEAR(label.x, x, 1e-12);
  EXPECT_NEAR(label.y, y, 1e-12);
  EXPECT_NEAR(label.width, width, 1e-12);
  EXPECT_NEAR(label.height, height, 1e-12);
}

TEST(YoloRows, BoxesAndOutlinesMayMix) {
  const Labels labels = read_yolo_rows(
      "0 0.5 0.5 0.2 0.4\n1 0.1 0.2 0.5 0.2 0.3 0.8\n\n2.0\t0.25 0.25 0.5 0.5", "a.txt", 3);
  EXPECT_TRUE(labels.problems.empty());
  EXPECT_TRUE(labels.has_file);
  EXPECT_FALSE(labels.windows_text);
  ASSERT_EQ(labels.labels.size(), 3U);
  expect_box(labels.labels[0], 0, 0.5, 0.5, 0.2, 0.4);
  // Hull of (0.1, 0.2) (0.5, 0.2) (0.3, 0.8).
  expect_box(labels.labels[1], 1, 0.3, 0.5, 0.4, 0.6);
  ASSERT_EQ(labels.labels[1].polygons.size(), 1U);
  EXPECT_EQ(labels.labels[1].polygons[0], (std::vector<double>{0.1, 0.2, 0.5, 0.2, 0.3, 0.8}));
  expect_box(labels.labels[2], 2, 0.25, 0.25, 0.5, 0.5);
}

TEST(YoloRows, ABadRowIsLeftOutAndTheOthersStay) {
  const struct {
    const char* row;
    Trouble trouble;
    const char* says;
  } kRows[] = {
      {"3 0.5 0.5 0.1 0.1", Trouble::kBadRow, "class 3, but the classes are 0 to 2"},
      {"-1 0.5 0.5 0.1 0.1", Trouble::kBadRow, "not a whole number"},
      {"1.5 0.5 0.5 0.1 0.1", Trouble::kBadRow, "not a whole number"},
      {"1e30 0.5 0.5 0.1 0.1", Trouble::kBadRow, "not a whole number"},
      {"0 -0.1 0.5 0.1 0.1", Trouble::kBadRow, "-0.1 is outside of the picture"},
      {"0 0.5 0.5 1.01 0.1", Trouble::kBadRow, "1.01 is outside of the picture"},
      {"0 320 240 64 48", Trouble::kBadRow, "320 is outside of the picture"},
      {"0 nan 0.5 0.1 0.1", Trouble::kBadRow, "'nan' is not a finite number"},
      {"0 inf 0.5 0.1 0.1", Trouble::kBadRow, "'inf' is not a finite number"},
      {"0 0,5 0.5 0.1 0.1", Trouble::kBadRow, "'0,5' is not a finite number"},
      {"cat 0.5 0.5 0.1 0.1", Trouble::kBadRow, "'cat' is not a finite number"},
      {"0 0.5 0.5 0.1", Trouble::kBadRow, "4 columns"},
      {"0 0.5 0.5 0.1 0.1 0.9", Trouble::kBadRow, "a prediction's, with its score?"},
      {"0 0.1 0.1 0.2 0.2 0.3 0.3 0.4", Trouble::kBadRow, "8 columns"},
      {"0 0.5 0.5 0 0.1", Trouble::kZeroArea, "no area"},
      {"0 0.1 0.5 0.2 0.5 0.3 0.5", Trouble::kZeroArea, "no area"},
      {"2 0.5 0.5 0.1 0.1", Trouble::kDuplicate, "the same box again"},
  };
  for (const auto& row : kRows) {
    const std::string text =
        std::string("2 0.5 0.5 0.1 0.1\n") + row.row + "\n1 0.25 0.25 0.1 0.1\n";
    const Labels labels = read_yolo_rows(text, "labels/a.txt", 3);
    EXPECT_EQ(labels.labels.size(), 2U) << row.row;
    ASSERT_EQ(labels.problems.size(), 1U) << row.row;
    EXPECT_EQ(labels.problems[0].trouble, row.trouble) << row.row;
    EXPECT_EQ(labels.problems[0].where, "labels/a.txt:2");
    EXPECT_NE(labels.problems[0].message.find(row.says), std::string::npos)
        << labels.problems[0].message;
  }
}

TEST(YoloRows, RoundingIsDrawnIn) {
  const Labels labels =
      read_yolo_rows("0 1.00005 -0.00005 1.00009 0.5\n0 1.0002 0.5 0.1 0.1", "a", 1);
  ASSERT_EQ(labels.labels.size(), 1U);
  expect_box(labels.labels[0], 0, 1, 0, 1, 0.5);
  EXPECT_EQ(labels.problems.size(), 1U);
}

TEST(YoloRows, WindowsTextIsReadAndCounted) {
  const Labels crlf = read_yolo_rows("0 0.5 0.5 0.1 0.1\r\n1 0.5 0.5 0.1 0.1\r\n", "a", 2);
  EXPECT_EQ(crlf.labels.size(), 2U);
  EXPECT_TRUE(crlf.windows_text);
  const Labels mark = read_yolo_rows(
      "\xEF\xBB\xBF"
      "0 0.5 0.5 0.1 0.1",
      "a", 2);
  EXPECT_EQ(mark.labels.size(), 1U);
  EXPECT_TRUE(mark.windows_text);
  EXPECT_TRUE(mark.problems.empty());
}

TEST(YoloRows, WithoutNamesAnyClassWillDo) {
  EXPECT_EQ(read_yolo_rows("79 0.5 0.5 0.1 0.1", "a", -1).labels.at(0).class_id, 79);
}

TEST(YoloRows, EndlessRowsAndColumnsEnd) {
  std::string wide = "0";
  for (int i = 0; i < 30'000; ++i) wide += " 0.5";
  const Labels labels = read_yolo_rows(wide + "\n0 0.5 0.5 0.1 0.1", "a", 1);
  EXPECT_EQ(labels.labels.size(), 1U);
  ASSERT_EQ(labels.problems.size(), 1U);
  EXPECT_EQ(labels.problems[0].message, "an outline of more than 10000 points");

  std::string tall;
  for (int i = 0; i < 200'000; ++i) tall += "x\n";
  EXPECT_EQ(read_yolo_rows(tall, "a", 1).problems.size(), 100'001U);
}

TEST(YoloRows, AnyBytesAreRows) {
  EXPECT_EQ(read_yolo_rows(std::string_view("\0\0\n\xFF\n", 5), "a", 1).problems.size(), 2U);
  EXPECT_TRUE(read_yolo_rows("", "a", 1).labels.empty());
}

}  // namespace
}  // namespace ferry::data

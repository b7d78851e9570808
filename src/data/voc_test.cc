#include <gtest/gtest.h>

#include "data/testing.h"

#include "data/labels.h"

namespace ferry::data {
namespace {

std::string annotation(
    const std::string& objects,
    const std::string& size = "<size><width>200</width><height>100</height></size>") {
  return "<annotation><filename>a.jpg</filename>" + size + objects + "</annotation>";
}

std::string object(const std::string& name, const std::string& x1, const std::string& y1,
                   const std::string& x2, const std::string& y2, const std::string& more = "") {
  return "<object><name>" + name + "</name>" + more + "<bndbox><xmin>" + x1 + "</xmin><ymin>" + y1 +
         "</ymin><xmax>" + x2 + "</xmax><ymax>" + y2 + "</ymax></bndbox></object>";
}

Labels read(const std::string& xml, const std::vector<std::string>& names = {"cat", "dog"}) {
  Entry entry;
  read_voc_xml(xml, "a.xml", names, entry);
  return entry.labels;
}

TEST(Voc, AnObjectIsABoxInPixels) {
  Entry entry;
  const std::string said =
      read_voc_xml(annotation(object(" dog\n", "50", " 20 ", "100", "60.0",
                                     "<difficult>1</difficult><truncated>1</truncated>"
                                     "<part><bndbox><xmin>1</xmin></bndbox></part>")),
                   "a.xml", {"cat", "dog"}, entry);
  EXPECT_EQ(said, "a.jpg");
  EXPECT_EQ(entry.said_width, 200);
  EXPECT_EQ(entry.said_height, 100);
  ASSERT_EQ(entry.labels.labels.size(), 1U);
  const Label& l = entry.labels.labels[0];
  EXPECT_EQ(l.class_id, 1);
  EXPECT_DOUBLE_EQ(l.x, 75.0 / 200);
  EXPECT_DOUBLE_EQ(l.y, 0.4);
  EXPECT_DOUBLE_EQ(l.width, 0.25);
  EXPECT_DOUBLE_EQ(l.height, 0.4);
  EXPECT_TRUE(l.difficult);
  EXPECT_TRUE(l.truncated);
}

TEST(Voc, BadObjectsAreLeftOutByNumber) {
  const Labels labels = read(
      annotation(object("cat", "0", "0", "10", "10") + object("cow", "0", "0", "10", "10") +
                 object("cat", "5", "0", "5", "10") + object("cat", "9", "0", "5", "10") +
                 object("cat", "x", "0", "5", "10") + object("cat", "nan", "0", "5", "10") +
                 object("cat", "300", "0", "400", "10") + object("dog", "0", "0", "201", "101")));
  EXPECT_EQ(
      texts_of(labels.problems),
      (std::vector<std::string>{
          "bad row: a.xml: object 2: class 'cow' is not among the classes",
          "zero area: a.xml: object 3: the box has no area",
          "bad row: a.xml: object 4: xmax is below xmin, or ymax below ymin",
          "bad row: a.xml: object 5: <bndbox> does not hold four finite numbers",
          "bad row: a.xml: object 6: <bndbox> does not hold four finite numbers",
          "bad row: a.xml: object 7: the box's centre is outside of the picture, at 1.75 0.05 "
          "of it"}));
  ASSERT_EQ(labels.labels.size(), 2U);
  // One pixel beyond, as tools that count from 1 write: drawn in.
  EXPECT_EQ(labels.labels[1].width, 1);
  EXPECT_EQ(labels.labels[1].height, 1);
}

TEST(Voc, EntitiesAndDocumentTypesAreNotFollowed) {
  const std::string file =
      read("<!DOCTYPE annotation [<!ENTITY x SYSTEM \"file:///etc/hostname\">]>" +
           annotation(object("&x;", "0", "0", "10", "10")))
          .problems.at(0)
          .message;
  EXPECT_EQ(file, "class '&x;' is not among the classes");
  std::string bomb = "<!DOCTYPE b [<!ENTITY a0 \"ha\">";
  for (int i = 1; i < 40; ++i) {
    const std::string before = "&a" + std::to_string(i - 1) + ";";
    bomb += "<!ENTITY a" + std::to_string(i) + " \"" + before + before + "\">";
  }
  bomb += "]>" + annotation(object("&a39;", "0", "0", "10", "10"));
  EXPECT_EQ(read(bomb).problems.at(0).message, "class '&a39;' is not among the classes");
  EXPECT_EQ(read(annotation(object("a&lt;b", "0", "0", "10", "10")), {"a<b"}).labels.size(), 1U);
}

TEST(Voc, WhatIsNoAnnotationIsOneProblem) {
  for (const std::string& xml : {std::string("<html></html>"), std::string(),
                                 std::string("<annotation><size>"), std::string(5'000'000, '<')}) {
    const Labels labels = read(xml);
    ASSERT_EQ(labels.problems.size(), 1U);
    EXPECT_EQ(labels.problems[0].trouble, Trouble::kBadLabelFile);
  }
  std::string deep;
  for (int i = 0; i < 1'000'000; ++i) deep += "<a>";
  EXPECT_EQ(read(deep).problems.size(), 1U);
}

// A VOC dataset of three pictures.
void make_voc(const DatasetFolder& folder) {
  for (const char* name : {"a", "b", "c"})
    folder.picture(fmt::format("JPEGImages/{}.png", name), 200, 100);
  folder.write("Annotations/a.xml", annotation(object("dog", "0", "0", "100", "50")));
  folder.write("Annotations/b.xml", annotation(object("cat", "50", "25", "150", "75") +
                                                   object("cat", "500", "0", "600", "9"),
                                               "<size><width>0</width><height>0</height></size>"));
}

TEST(Voc, ClassesAreTheNamesFoundSorted) {
  const DatasetFolder folder;
  make_voc(folder);
  const auto dataset = open_dataset(folder.at(""));
  ASSERT_TRUE(dataset.ok()) << dataset.error().message;
  EXPECT_EQ(dataset->format, Format::kVoc);
  EXPECT_EQ(dataset->names, (std::vector<std::string>{"cat", "dog"}));
  ASSERT_EQ(dataset->samples.size(), 3U);
  EXPECT_EQ(dataset->summary.unlabelled, 1);  // c
  EXPECT_EQ(dataset->samples[0].labels.at(0).class_id, 1);
  // The annotation gives no size: the picture does.
  ASSERT_EQ(dataset->samples[1].labels.size(), 1U);
  EXPECT_DOUBLE_EQ(dataset->samples[1].labels[0].x, 0.5);
  EXPECT_DOUBLE_EQ(dataset->samples[1].labels[0].width, 0.5);
  EXPECT_EQ(dataset->summary.bad_rows, 1);
  EXPECT_EQ(*splits_of(folder.at("")), std::vector<std::string>{"val"});
}

TEST(Voc, ClassesMayBeNamedInOrder) {
  const DatasetFolder folder;
  make_voc(folder);
  folder.write("classes.txt", "dog\r\ncat\r\n");
  EXPECT_EQ(open_dataset(folder.at(""))->samples.at(0).labels.at(0).class_id, 0);
  const auto named = open_dataset(folder.at(""), {.names = {"bird", "cat", "dog"}});
  EXPECT_EQ(named->samples.at(0).labels.at(0).class_id, 2);
}

TEST(Voc, SplitsAreListsOfNames) {
  const DatasetFolder folder;
  make_voc(folder);
  folder.write("ImageSets/Main/train.txt", "a\r\nc  1\r\nb -1\n");
  folder.write("ImageSets/Main/val.txt", "b\nlost\n");
  EXPECT_EQ(*splits_of(folder.at("")), (std::vector<std::string>{"train", "val"}));
  const auto train = open_dataset(folder.at(""), {.split = "train"});
  ASSERT_TRUE(train.ok());
  EXPECT_EQ(train->samples.size(), 2U);
  const auto val = open_dataset(folder.at(""));
  EXPECT_EQ(val->samples.size(), 1U);
  EXPECT_EQ(val->summary.missing, 1);
  EXPECT_EQ(open_dataset(folder.at(""), {.split = "test"}).error().code, Code::kNotFound);
}

TEST(Voc, BccdHasTheKnownCounts) {
  const std::string path = real_data("bccd");
  FERRY_NEED_DATA(path);
  const DatasetFolder cache;
  std::vector<int64_t> boxes(3);
  int64_t zero_area = 0, pictures = 0;
  for (const char* split : {"train", "val", "test"}) {
    const auto dataset = open_dataset(path, {.split = split, .threads = 2});
    ASSERT_TRUE(dataset.ok()) << dataset.error().message;
    EXPECT_EQ(dataset->names, (std::vector<std::string>{"Platelets", "RBC", "WBC"}));
    pictures += dataset->summary.sound;
    zero_area += dataset->summary.zero_area;
    EXPECT_EQ(dataset->summary.bad_rows, 0);
    for (const Sample& sample : dataset->samples)
      for (const Label& label : sample.labels) ++boxes[static_cast<size_t>(label.class_id)];
  }
  // SOURCES.md: 364 pictures; WBC 372, RBC 4155, Platelets 361, of which two have no area.
  EXPECT_EQ(pictures, 364);
  EXPECT_EQ(zero_area, 2);
  EXPECT_EQ(boxes[0] + boxes[1] + boxes[2], 372 + 4155 + 361 - 2);
  EXPECT_EQ(boxes[2], 372);
}

}  // namespace
}  // namespace ferry::data

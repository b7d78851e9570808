#include <gtest/gtest.h>

#include "data/labels.h"
#include "data/testing.h"

namespace ferry::data {
namespace {

const std::string kImages = R"("images":[{"id":7,"file_name":"a.jpg","width":200,"height":100}])";
const std::string kCategories = R"("categories":[{"id":90,"name":"cat"},{"id":4,"name":"dog"}])";

Result<Listing> parse(const std::string& text, const std::vector<std::string>& names = {}) {
  return parse_coco(text, "x.json", "", names);
}

Result<Listing> with_annotations(const std::string& annotations,
                                 const std::vector<std::string>& names = {}) {
  return parse(R"({"annotations":[)" + annotations + "]," + kImages + "," + kCategories + "}",
               names);
}

TEST(Coco, CategoriesBecomeClassesInTheOrderOfTheirIds) {
  const auto listing = with_annotations(
      R"({"id":1,"image_id":7,"category_id":90,"bbox":[50,20,50,40],"area":900.5,"iscrowd":0},
         {"id":2,"image_id":7,"category_id":4,"bbox":[0,0,200,100],"iscrowd":1,
          "segmentation":{"counts":[1,2,3],"size":[100,200],"bbox":[9,9,9,9]}})");
  ASSERT_TRUE(listing.ok()) << listing.error().message;
  EXPECT_EQ(listing->names, (std::vector<std::string>{"dog", "cat"}));
  EXPECT_EQ(listing->category_ids, (std::vector<int64_t>{4, 90}));
  ASSERT_EQ(listing->entries.size(), 1U);
  EXPECT_EQ(listing->entries[0].image_id, 7);
  const std::vector<Label>& labels = listing->entries[0].labels.labels;
  ASSERT_EQ(labels.size(), 2U);
  EXPECT_EQ(labels[0].class_id, 1);
  EXPECT_DOUBLE_EQ(labels[0].x, 0.375);
  EXPECT_DOUBLE_EQ(labels[0].y, 0.4);
  EXPECT_DOUBLE_EQ(labels[0].width, 0.25);
  EXPECT_DOUBLE_EQ(labels[0].height, 0.4);
  EXPECT_DOUBLE_EQ(labels[0].area, 900.5);
  EXPECT_TRUE(labels[1].crowd);
  EXPECT_DOUBLE_EQ(labels[1].width, 1);
}

TEST(Coco, CategoriesFindNamedClassesByName) {
  const auto listing = with_annotations(
      R"({"id":1,"image_id":7,"category_id":90,"bbox":[50,20,50,40]},
         {"id":2,"image_id":7,"category_id":4,"bbox":[50,20,50,40]})",
      {"cat", "bird"});
  ASSERT_TRUE(listing.ok());
  EXPECT_EQ(listing->category_ids, (std::vector<int64_t>{90, 91}));
  EXPECT_EQ(listing->entries[0].labels.labels.size(), 1U);
  EXPECT_EQ(texts_of(listing->entries[0].labels.problems),
            std::vector<std::string>{
                "bad row: x.json: annotation 2: its category 4 is not among the classes"});
}

TEST(Coco, OutlinesAreKept) {
  const auto listing = with_annotations(
      R"({"segmentation":[[50,20,100,20,75,60],[1,2,3],[50,20,60,20,55,30]],
          "id":1,"image_id":7,"category_id":4,"bbox":[50,20,50,40]})");
  ASSERT_TRUE(listing.ok());
  const std::vector<std::vector<double>>& polygons =
      listing->entries[0].labels.labels.at(0).polygons;
  ASSERT_EQ(polygons.size(), 2U);
  EXPECT_EQ(polygons[0], (std::vector<double>{0.25, 0.2, 0.5, 0.2, 0.375, 0.6}));
}

TEST(Coco, BadAnnotationsAreLeftOutByTheirId) {
  const auto listing = with_annotations(
      R"({"id":1,"image_id":8,"category_id":4,"bbox":[0,0,1,1]},
         {"id":2,"image_id":7,"category_id":5,"bbox":[0,0,1,1]},
         {"id":3,"image_id":7,"category_id":4,"bbox":[0,0,1]},
         {"id":4,"image_id":7,"category_id":4,"bbox":[0,0,"1",1]},
         {"id":5,"image_id":7,"category_id":4,"bbox":[0,0,0,1]},
         {"id":6,"image_id":7,"category_id":4,"bbox":[0,0,9,-1]},
         {"id":7,"image_id":7,"category_id":4,"bbox":[500,0,9,1]},
         {"id":8,"image_id":7,"category_id":4},
         {"id":9,"image_id":7,"category_id":4,"bbox":[150,50,50.5,50.5]})");
  ASSERT_TRUE(listing.ok());
  EXPECT_EQ(
      texts_of(listing->problems),
      std::vector<std::string>{"orphan label: x.json: annotation 1: its `image_id` is no image's"});
  EXPECT_EQ(
      texts_of(listing->entries[0].labels.problems),
      (std::vector<std::string>{
          "bad row: x.json: annotation 2: its category 5 is not among the classes",
          "bad row: x.json: annotation 3: `bbox` is not [x, y, width, height]",
          "bad row: x.json: annotation 4: `bbox` is not [x, y, width, height]",
          "zero area: x.json: annotation 5: the box has no area",
          "bad row: x.json: annotation 6: width or height is negative",
          "bad row: x.json: annotation 7: the box's centre is outside of the picture, at 2.522 "
          "0.005 of it",
          "bad row: x.json: annotation 8: `bbox` is not [x, y, width, height]"}));
  EXPECT_EQ(listing->entries[0].labels.labels.size(), 1U);
}

TEST(Coco, OtherFilesAreRefusedWithTheReason) {
  const struct {
    std::string text;
    const char* says;
  } kFiles[] = {
      {"", "not a json"},
      {"{\"images\":[", "not a json"},
      {"[{\"image_id\":1,\"bbox\":[1,2,3,4]}]", "no list `images`. A file of predictions"},
      {"{" + kImages + ",\"annotations\":[]}", "no list `categories`"},
      {R"({"images":[],"annotations":[],"categories":[{"name":"a"}]})", "a category without an id"},
      {R"({"images":[],"annotations":[],"categories":[{"id":1},{"id":1}]})",
       "two categories have the id 1"},
      {R"({"images":[{"id":1,"file_name":"a"},{"id":1,"file_name":"b"}]})",
       "two images have the id 1"},
      {R"({"images":[3]})", "an image without `file_name`"},
      {std::string(10'000'000, '['), "65 deep"},
      {"{\"annotations\":[{\"segmentation\":" + std::string(100, '['), "deep"},
  };
  for (const auto& file : kFiles) {
    const auto listing = parse(file.text);
    ASSERT_FALSE(listing.ok()) << file.text.substr(0, 100);
    EXPECT_NE(listing.error().message.find(file.says), std::string::npos)
        << listing.error().message;
  }
}

TEST(Coco, AnEndlessOutlineIsABadRow) {
  std::string outline = "0";
  for (int i = 0; i < 1'100'000; ++i) outline += ",0";
  const auto listing = with_annotations(
      R"({"id":1,"image_id":7,"category_id":4,"bbox":[0,0,1,1],"segmentation":[[)" + outline +
      "]]}");
  ASSERT_TRUE(listing.ok());
  EXPECT_EQ(listing->entries[0].labels.problems.size(), 1U);
}

TEST(Coco, AFolderIsKnownByItsAnnotations) {
  const DatasetFolder folder;
  folder.picture("images/train/a.png", 200, 100);
  folder.picture("images/val/a.png", 100, 100);
  const auto json = [](int width) {
    return fmt::format(R"({{"images":[{{"id":3,"file_name":"a.png","width":{},"height":100}}],
                           "annotations":[],"categories":[{{"id":1,"name":"cat"}}]}})",
                       width);
  };
  folder.write("annotations/instances_train.json", json(200));
  folder.write("annotations/instances_val2017.json", json(100));
  EXPECT_EQ(*splits_of(folder.at("")), (std::vector<std::string>{"train", "val"}));
  const auto train = open_dataset(folder.at(""), {.split = "train"});
  ASSERT_TRUE(train.ok()) << train.error().message;
  EXPECT_EQ(train->samples.at(0).width, 200);
  EXPECT_EQ(train->samples.at(0).image_id, 3);
  // images/val2017 is not there; images/ holds no a.png: said as missing.
  EXPECT_FALSE(open_dataset(folder.at("")).ok());
  const auto val = open_dataset(folder.at(""), {.images = folder.at("images/val")});
  ASSERT_TRUE(val.ok()) << val.error().message;
  EXPECT_EQ(*splits_of(folder.at("annotations/instances_train.json")),
            std::vector<std::string>{"train"});
}

TEST(Coco, OneHundredAndTwentyEightHasTheKnownCounts) {
  const std::string path = real_data("coco128/train128/instances_train128.json");
  FERRY_NEED_DATA(path);
  const DatasetFolder cache;
  const auto dataset = open_dataset(path, {.threads = 2});
  ASSERT_TRUE(dataset.ok()) << dataset.error().message;
  EXPECT_EQ(dataset->summary.sound, 128);  // SOURCES.md
  EXPECT_EQ(dataset->summary.boxes, 939);
  EXPECT_EQ(dataset->summary.crowds, 10);
  EXPECT_EQ(dataset->names.size(), 80U);
  EXPECT_EQ(dataset->category_ids.back(), 90);
  EXPECT_TRUE(dataset->problems.empty());
}

}  // namespace
}  // namespace ferry::data

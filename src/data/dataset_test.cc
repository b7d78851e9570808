// Datasets as users have them: files in many shapes, some of them broken.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "data/testing.h"

namespace ferry::data {
namespace {

namespace fs = std::filesystem;

const std::string kBox = "0 0.5 0.5 0.25 0.25\n";

// a.png with one box and b.png with none, as a train split and a val split.
void make_yolo(const DatasetFolder& folder, const std::string& yaml) {
  for (const char* split : {"train", "val"}) {
    folder.picture(fmt::format("set/images/{}/a.png", split), 40, 20);
    folder.picture(fmt::format("set/images/{}/deep/b.png", split), 40, 20);
    folder.write(fmt::format("set/labels/{}/a.txt", split), kBox);
    folder.write(fmt::format("set/labels/{}/deep/b.txt", split), "");
  }
  folder.write("set/data.yaml", yaml);
}

TEST(Dataset, YamlsOfManyKindsOpen) {
  const char* const kYamls[] = {
      "path: .\ntrain: images/train\nval: images/val\nnc: 1\nnames: [cat]\n",
      "val: ../set/images/val\nnames:\n  0: cat\n",
      "val: ./images/val/\nnames: {0: cat}\n",
      "path: ../set\nval: images/val\nnames: ['cat']\n",
      "path: set\nval: images/val\nnames: ['cat']\n",  // beside the yaml's folder
      "val: ../images/val\nnc: 1\nnames: ['cat']\n",   // Roboflow's slip
      "val: [images/val/a.png, images/val/deep]\nnames: [cat]\n",
      "val: val.txt\nnames: [cat]\n",
      "\xEF\xBB\xBFval: images/val\r\nnames: [cat]\r\n",
  };
  for (const char* yaml : kYamls) {
    const DatasetFolder folder;
    make_yolo(folder, yaml);
    folder.write("set/val.txt", "./images/val/a.png\r\n\r\n# a comment\n" +
                                    folder.at("set/images/val/deep/b.png"));
    const auto dataset = open_dataset(folder.at("set/data.yaml"));
    ASSERT_TRUE(dataset.ok()) << yaml << dataset.error().message;
    EXPECT_EQ(dataset->names, std::vector<std::string>{"cat"});
    ASSERT_EQ(dataset->samples.size(), 2U) << yaml;
    EXPECT_TRUE(dataset->samples[0].path.ends_with("a.png"));
    EXPECT_EQ(dataset->samples[0].labels.size(), 1U);
    EXPECT_EQ(dataset->samples[0].width, 40);
    EXPECT_EQ(dataset->samples[0].height, 20);
    EXPECT_EQ(dataset->summary.backgrounds, 1);
    EXPECT_EQ(dataset->summary.unlabelled, 0);
    EXPECT_EQ(dataset->summary.boxes, 1);
    EXPECT_TRUE(dataset->problems.empty());
  }
}

TEST(Dataset, BadYamlsSayWhatIsWrong) {
  const struct {
    const char* yaml;
    const char* says;
  } kYamls[] = {
      {"- a\n", "not a data.yaml"},
      {"a: [", "not a yaml"},
      {"names: [cat]\n", "has no `val:`"},
      {"val: nowhere\nnames: [cat]\n", "`val: nowhere` is not there; looked for "},
      {"val: images/val\nnc: 2\nnames: [cat]\n", "`nc` is 2, but `names` has 1 classes"},
      {"val: images/val\nnc: -1\n", "`nc` is -1"},
      {"val: images/val\nnc: many\n", "bad conversion"},
      {"val: images/val\nnames: cat\n", "neither a list nor a map"},
      {"val: images/val\nnames: {1000000000: cat}\n", "class number 1000000000"},
      {"val: images/val\nnames: [[cat]]\n", "bad conversion"},
  };
  for (const auto& bad : kYamls) {
    const DatasetFolder folder;
    make_yolo(folder, bad.yaml);
    const auto dataset = open_dataset(folder.at("set/data.yaml"));
    ASSERT_FALSE(dataset.ok()) << bad.yaml;
    EXPECT_NE(dataset.error().message.find(bad.says), std::string::npos) << dataset.error().message;
  }
}

TEST(Dataset, YamlBombsAreHarmless) {
  const DatasetFolder folder;
  std::string bomb = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 60; ++i) bomb += fmt::format("a{}: &a{} [*a{}, *a{}]\n", i, i, i - 1, i - 1);
  make_yolo(folder, bomb + "val: images/val\nnames: *a59\n");
  EXPECT_FALSE(open_dataset(folder.at("set/data.yaml")).ok());
  folder.write("set/data.yaml", std::string(1'000'000, '['));
  EXPECT_FALSE(open_dataset(folder.at("set/data.yaml")).ok());
  folder.write("set/data.yaml", std::string(8'000'000, ' '));
  EXPECT_FALSE(open_dataset(folder.at("set/data.yaml")).ok());
}

TEST(Dataset, FoldersAndListsOpenWithoutAYaml) {
  const DatasetFolder folder;
  folder.picture("pictures/a.jpg", 8, 8);
  folder.write("pictures/a.txt", "2 0.5 0.5 0.5 0.5");  // beside the picture
  const auto dataset = open_dataset(folder.at("pictures"));
  ASSERT_TRUE(dataset.ok()) << dataset.error().message;
  EXPECT_EQ(dataset->names, (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_EQ(dataset->samples.at(0).labels.at(0).class_id, 2);
  const auto listed = open_dataset(folder.write("list.txt", "pictures/a.jpg\npictures/gone.jpg\n"));
  ASSERT_TRUE(listed.ok()) << listed.error().message;
  EXPECT_EQ(listed->summary.missing, 1);
  EXPECT_EQ(open_dataset(folder.at("nowhere")).error().code, Code::kNotFound);
  EXPECT_FALSE(open_dataset(folder.at("pictures/a.jpg")).ok());
  EXPECT_FALSE(open_dataset(folder.write("zeros.txt", std::string(64, '\0'))).ok());
}

TEST(Dataset, OneBrokenFileIsReportedAndTheOthersGoOn) {
  const DatasetFolder folder;
  make_yolo(folder, "val: images/val\nnames: [cat]\n");
  folder.write("set/images/val/broken.jpg", "this is no picture");
  folder.write("set/labels/val/orphan.txt", kBox);
  fs::create_directories(folder.at("set/labels/val/c.txt"));
  folder.picture("set/images/val/c.png", 8, 8);
  folder.write("set/labels/val/d.txt", "0 0.5 0.5 0.5 0.5\n7 0.5 0.5 0.5 0.5\r\n");
  folder.picture("set/images/val/d.png", 8, 8);
  fs::resize_file(folder.write("set/labels/val/e.txt", ""),
                  uintmax_t{1} << 30);  // a gigabyte of zeros
  folder.picture("set/images/val/e.png", 8, 8);
  const auto dataset = open_dataset(folder.at("set/data.yaml"), {.threads = 3});
  ASSERT_TRUE(dataset.ok()) << dataset.error().message;
  const Summary& s = dataset->summary;
  EXPECT_EQ(s.pictures, 6);
  EXPECT_EQ(s.sound, 5);
  EXPECT_EQ(s.corrupt, 1);
  EXPECT_EQ(s.orphans, 1);
  EXPECT_EQ(s.bad_label_files, 2);
  EXPECT_EQ(s.bad_rows, 1);
  EXPECT_EQ(s.windows_text, 1);
  EXPECT_EQ(s.boxes, 2);
  bool found = false;
  for (const std::string& text : texts_of(dataset->problems))
    found = found || text == "bad row: d.txt:2: class 7, but the classes are 0 to 0";
  EXPECT_TRUE(found);
}

TEST(Dataset, AllPicturesBrokenIsAnError) {
  const DatasetFolder folder;
  folder.write("images/a.jpg", "");
  const auto dataset = open_dataset(folder.at("images"));
  ASSERT_FALSE(dataset.ok());
  EXPECT_NE(dataset.error().message.find("no sound picture: 1 named, 0 missing, 1 corrupt"),
            std::string::npos)
      << dataset.error().message;
}

TEST(Dataset, PathsMayHaveAnyCharacters) {
  const DatasetFolder folder;
  const std::string name = "数据 集/images/val été/图片 #1 ÿ";
  folder.picture(name + ".png", 8, 8);
  folder.write("数据 集/labels/val été/图片 #1 ÿ.txt", kBox);
  folder.write("数据 集/data.yaml", "val: images/val été\nnames: ['安全帽']\n");
  const auto dataset = open_dataset(folder.at("数据 集/data.yaml"));
  ASSERT_TRUE(dataset.ok()) << dataset.error().message;
  EXPECT_EQ(dataset->names[0], "安全帽");
  EXPECT_EQ(dataset->samples.at(0).labels.size(), 1U);
}

TEST(Dataset, LabelsAreFoundBesideTheLastImagesFolder) {
  const DatasetFolder folder;
  folder.picture("images/set/images/x/a.png", 8, 8);
  folder.write("images/set/labels/x/a.txt", kBox);
  folder.write("labels/set/images/x/a.txt", "");
  EXPECT_EQ(open_dataset(folder.at("images/set/images"))->summary.boxes, 1);
}

TEST(Dataset, FoldersThatHoldThemselvesEnd) {
  const DatasetFolder folder;
  folder.picture("images/a.png", 8, 8);
  fs::create_directory_symlink(folder.at("images"), folder.at("images/again"));
  fs::create_directory_symlink(folder.at("images"), folder.at("images/more"));
  const auto dataset = open_dataset(folder.at("images"));
  ASSERT_TRUE(dataset.ok());
  EXPECT_EQ(dataset->summary.pictures, 1);
}

TEST(Dataset, SizesAreAsThePictureIsShown) {
  const DatasetFolder folder;
  folder.turned_picture("images/a.jpg", 40, 20);
  const auto dataset = open_dataset(folder.at("images"));
  ASSERT_TRUE(dataset.ok()) << dataset.error().message;
  EXPECT_EQ(dataset->samples.at(0).width, 20);
  EXPECT_EQ(dataset->samples.at(0).height, 40);
  EXPECT_EQ(dataset->summary.rotated, 1);
}

TEST(Dataset, ImageIdsAreTheNumbersInTheNamesOrCount) {
  const DatasetFolder folder;
  folder.picture("images/000000000139.png", 8, 8);
  folder.picture("images/42.png", 8, 8);
  auto dataset = open_dataset(folder.at("images"));
  EXPECT_EQ(dataset->samples.at(0).image_id, 139);
  EXPECT_EQ(dataset->samples.at(1).image_id, 42);
  folder.picture("images/b.png", 8, 8);
  dataset = open_dataset(folder.at("images"));
  EXPECT_EQ(dataset->samples.at(0).image_id, 1);
  EXPECT_EQ(dataset->samples.at(2).image_id, 3);
}

TEST(Dataset, ASingleClassTakesAll) {
  const DatasetFolder folder;
  make_yolo(folder, "val: images/val\nnames: [cat, dog]\n");
  folder.write("set/labels/val/a.txt", "1 0.5 0.5 0.5 0.5");
  const auto dataset = open_dataset(folder.at("set/data.yaml"), {.single_class = true});
  EXPECT_EQ(dataset->names, std::vector<std::string>{"item"});
  EXPECT_EQ(dataset->samples.at(0).labels.at(0).class_id, 0);
}

TEST(Dataset, AYamlMayNameACocoJson) {
  const DatasetFolder folder;
  folder.picture("images/a.png", 100, 100);
  folder.write("val.json", R"({"images":[{"id":1,"file_name":"a.png","width":100,"height":100}],
      "annotations":[{"id":1,"image_id":1,"category_id":3,"bbox":[0,0,50,50]}],
      "categories":[{"id":3,"name":"dog"},{"id":9,"name":"cat"}]})");
  const auto dataset =
      open_dataset(folder.write("data.yaml", "val: val.json\nnames: [cat, dog]\n"));
  ASSERT_TRUE(dataset.ok()) << dataset.error().message;
  EXPECT_EQ(dataset->format, Format::kCoco);
  EXPECT_EQ(dataset->samples.at(0).labels.at(0).class_id, 1);  // by name
  EXPECT_EQ(dataset->category_ids, (std::vector<int64_t>{9, 3}));
}

TEST(Cache, OnlyWhatChangedIsLookedAtAgain) {
  const DatasetFolder folder;
  for (const char* name : {"a", "b", "c"}) folder.picture(fmt::format("images/{}.png", name), 8, 8);
  int64_t looked_at = 0;
  const OpenOptions options{.progress = [&](int64_t, int64_t total) {
    looked_at = total;
    return true;
  }};
  const auto open = [&] {
    looked_at = 0;
    auto dataset = open_dataset(folder.at("images"), options);
    EXPECT_TRUE(dataset.ok());
    return dataset->summary.remembered;
  };
  EXPECT_EQ(open(), 0);
  EXPECT_EQ(looked_at, 3);
  EXPECT_EQ(open(), 3);
  EXPECT_EQ(looked_at, 0);
  // Changed, added, removed.
  folder.picture("images/b.png", 16, 16);
  EXPECT_EQ(open(), 2);
  EXPECT_EQ(looked_at, 1);
  EXPECT_EQ(open_dataset(folder.at("images"))->samples.at(1).width, 16);
  folder.picture("images/d.png", 8, 8);
  EXPECT_EQ(open(), 3);
  fs::remove(folder.at("images/a.png"));
  EXPECT_EQ(open(), 3);
  EXPECT_EQ(looked_at, 0);
  // The same size, another time.
  folder.write("images/c.png", std::string(fs::file_size(folder.at("images/c.png")), 'x'));
  EXPECT_EQ(open_dataset(folder.at("images"))->summary.corrupt, 1);
  EXPECT_EQ(open_dataset(folder.at("images"), {.cache = false})->summary.remembered, 0);
}

TEST(Cache, LabelsAreAlwaysRead) {
  const DatasetFolder folder;
  make_yolo(folder, "val: images/val\nnames: [cat]\n");
  EXPECT_EQ(open_dataset(folder.at("set/data.yaml"))->summary.boxes, 1);
  folder.write("set/labels/val/a.txt", kBox + "0 0.1 0.1 0.1 0.1\n");
  const auto dataset = open_dataset(folder.at("set/data.yaml"));
  EXPECT_EQ(dataset->summary.boxes, 2);
  EXPECT_EQ(dataset->summary.remembered, 2);
}

TEST(Cache, ADamagedCacheIsNoCache) {
  const DatasetFolder folder;
  folder.picture("images/a.png", 8, 8);
  ASSERT_TRUE(open_dataset(folder.at("images")).ok());
  std::string cache;
  for (const auto& file : fs::directory_iterator(folder.at("cache/ferry")))
    cache = "cache/ferry/" + file.path().filename().string();
  ASSERT_FALSE(cache.empty());
  const std::string good = folder.read(cache);
  for (const std::string& bad :
       {std::string(), std::string("ferry pictures 99\n"), good.substr(0, good.size() - 1),
        std::string("ferry pictures 1\n99999999999999999999 1 1 1 1 a\n"),
        std::string("ferry pictures 1\n1 1 -5 0 9 ") + folder.at("images/a.png") + "\n",
        std::string(1'000'000, '\xFF')}) {
    folder.write(cache, bad);
    const auto dataset = open_dataset(folder.at("images"));
    ASSERT_TRUE(dataset.ok());
    EXPECT_EQ(dataset->summary.remembered, 0);
    EXPECT_EQ(dataset->samples.at(0).width, 8);
    EXPECT_EQ(folder.read(cache), good);  // written anew
  }
}

TEST(Cache, StoppingIsAnAnswer) {
  const DatasetFolder folder;
  folder.picture("images/a.png", 8, 8);
  const auto stop = [](int64_t, int64_t) { return false; };
  EXPECT_EQ(open_dataset(folder.at("images"), {.progress = stop}).error().code, Code::kCancelled);
}

TEST(Dataset, HelmetMixesBoxesAndOutlines) {
  const std::string path = real_data("helmet/data.yaml");
  FERRY_NEED_DATA(path);
  const DatasetFolder cache;
  int64_t pictures = 0, mixed = 0;
  for (const char* split : {"train", "val"}) {
    const auto dataset = open_dataset(path, {.split = split, .threads = 2});
    ASSERT_TRUE(dataset.ok()) << dataset.error().message;
    EXPECT_TRUE(dataset->problems.empty());
    pictures += dataset->summary.sound;
    for (const Sample& sample : dataset->samples) {
      int64_t outlines = 0;
      for (const Label& label : sample.labels) outlines += !label.polygons.empty();
      mixed += outlines > 0;
    }
  }
  EXPECT_EQ(pictures, 449);  // SOURCES.md; "about half of the label files hold polygon rows"
  EXPECT_GT(mixed, 449 / 3);
}

TEST(Dataset, Coco128HasTheKnownCounts) {
  const std::string path = real_data("coco128/data.yaml");
  FERRY_NEED_DATA(path);
  const DatasetFolder cache;
  const auto dataset = open_dataset(path, {.threads = 2});
  ASSERT_TRUE(dataset.ok()) << dataset.error().message;
  EXPECT_EQ(dataset->summary.sound, 128);  // SOURCES.md
  EXPECT_EQ(dataset->summary.boxes, 929);
  EXPECT_EQ(dataset->summary.unlabelled, 2);
  EXPECT_EQ(dataset->summary.orphans, 2);
  EXPECT_EQ(dataset->problems.size(), 2U);
}

}  // namespace
}  // namespace ferry::data

// There and back: what was read, written in another form and read again is the same.
#include "data/write.h"

#include <gtest/gtest.h>

#include <random>

#include "data/stats.h"
#include "data/testing.h"

namespace ferry::data {
namespace {

namespace fs = std::filesystem;

// Writes all splits of `path` to `folder` in `format`.
Written convert(const std::string& path, Format format, const std::string& folder,
                Place pictures = Place::kLink) {
  const std::vector<std::string> splits = *splits_of(path);
  std::vector<Dataset> datasets;
  for (const std::string& split : splits) {
    auto dataset = open_dataset(path, {.split = split, .threads = 2});
    EXPECT_TRUE(dataset.ok()) << dataset.error().message;
    datasets.push_back(*std::move(dataset));
  }
  std::filesystem::create_directories(folder);
  std::vector<SplitView> views;
  for (size_t i = 0; i < splits.size(); ++i) views.push_back({splits[i], &datasets[i]});
  const auto written =
      write_dataset(views, {.format = format, .folder = folder, .pictures = pictures});
  EXPECT_TRUE(written.ok()) << written.error().message;
  return written.ok() ? *written : Written();
}

// How far the parts of two datasets are from each other; infinite when they are not the same boxes.
double difference(const std::string& path_a, const std::string& path_b) {
  constexpr double kOther = std::numeric_limits<double>::infinity();
  const std::vector<std::string> splits = *splits_of(path_a);
  if (splits != *splits_of(path_b)) return kOther;
  double worst = 0;
  for (const std::string& split : splits) {
    const auto a = open_dataset(path_a, {.split = split}),
               b = open_dataset(path_b, {.split = split});
    if (!a.ok() || !b.ok() || a->names != b->names || a->samples.size() != b->samples.size())
      return kOther;
    for (size_t i = 0; i < a->samples.size(); ++i) {
      const Sample &s = a->samples[i], &t = b->samples[i];
      if (fs::path(s.path).filename() != fs::path(t.path).filename()) return kOther;
      if (s.labels.size() != t.labels.size()) return kOther;
      for (size_t k = 0; k < s.labels.size(); ++k) {
        const Label &l = s.labels[k], &m = t.labels[k];
        if (l.class_id != m.class_id || l.polygons.size() != m.polygons.size()) return kOther;
        for (const double d : {l.x - m.x, l.y - m.y, l.width - m.width, l.height - m.height})
          worst = std::max(worst, std::abs(d));
        for (size_t p = 0; p < l.polygons.size(); ++p) {
          if (l.polygons[p].size() != m.polygons[p].size()) return kOther;
          for (size_t v = 0; v < l.polygons[p].size(); ++v)
            worst = std::max(worst, std::abs(l.polygons[p][v] - m.polygons[p][v]));
        }
      }
    }
  }
  return worst;
}

// All texts in `sub` of a folder, one after the other.
std::string texts_in(const DatasetFolder& folder, const std::string& sub) {
  std::vector<std::string> names;
  for (const auto& file : fs::directory_iterator(folder.at(sub)))
    names.push_back(sub + "/" + file.path().filename().string());
  std::ranges::sort(names);
  std::string all;
  for (const std::string& name : names) all += name.substr(sub.size()) + "\n" + folder.read(name);
  return all;
}

TEST(Write, YoloRowsComeBackAsTheyWere) {
  const DatasetFolder folder;
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) {
    folder.picture(fmt::format("a/images/val/{:02}.png", i), 37 + 13 * i, 501 - 7 * i);
    std::string rows;
    for (int k = 0; k < 50; ++k) {
      const auto part = [&] { return static_cast<double>(random() % 999'999 + 1) / 1e6; };
      rows += fmt::format("{} {} {} {} {}\n", random() % 3, part(), part(), part(), part());
      if (k % 5 == 0)
        rows +=
            fmt::format("1 {} {} {} {} {} {}\n", part(), part(), part(), part(), part(), part());
    }
    folder.write(fmt::format("a/labels/val/{:02}.txt", i), rows);
  }
  folder.write("a/data.yaml", "val: images/val\nnames: [cat, 'a: \"b\"', 帽]\n");
  convert(folder.at("a"), Format::kYolo, folder.at("b"));
  const std::string once = texts_in(folder, "b/labels/val");
  EXPECT_EQ(once, texts_in(folder, "a/labels/val"));
  convert(folder.at("a"), Format::kCoco, folder.at("c"));
  convert(folder.at("c"), Format::kYolo, folder.at("d"));
  EXPECT_EQ(texts_in(folder, "d/labels/val"), once);
  EXPECT_EQ(folder.read("d/data.yaml"), folder.read("b/data.yaml"));
  // VOC has boxes only.
  const Written lost = convert(folder.at("a"), Format::kVoc, folder.at("e"));
  EXPECT_EQ(lost.outlines_lost, 20 * 10);
  convert(folder.at("e"), Format::kYolo, folder.at("f"));
  convert(folder.at("f"), Format::kVoc, folder.at("g"));
  convert(folder.at("g"), Format::kYolo, folder.at("h"));
  EXPECT_EQ(texts_in(folder, "h/labels/val"), texts_in(folder, "f/labels/val"));
}

TEST(Write, VocComesBackAsItWas) {
  const DatasetFolder folder;
  folder.picture("a/JPEGImages/a.png", 333, 777);
  folder.write("a/Annotations/a.xml",
               "<annotation><filename>a.png</filename><size><width>333</width><height>777</height>"
               "</size><object><name>x &amp; y</name><difficult>1</difficult><bndbox><xmin>1</xmin>"
               "<ymin>7</ymin><xmax>332</xmax><ymax>11.25</ymax></bndbox></object></annotation>");
  convert(folder.at("a"), Format::kVoc, folder.at("b"));
  EXPECT_NE(folder.read("b/Annotations/a.xml").find("<ymax>11.25</ymax>"), std::string::npos);
  EXPECT_NE(folder.read("b/Annotations/a.xml").find("<name>x &amp; y</name>"), std::string::npos);
  EXPECT_EQ(convert(folder.at("b"), Format::kCoco, folder.at("c")).difficult_lost, 0);
  convert(folder.at("c"), Format::kVoc, folder.at("d"));
  EXPECT_EQ(folder.read("d/Annotations/a.xml"), folder.read("b/Annotations/a.xml"));
  EXPECT_EQ(convert(folder.at("b"), Format::kYolo, folder.at("e")).difficult_lost, 1);
}

TEST(Write, PicturesAreLinkedOrCopied) {
  const DatasetFolder folder;
  const std::string original = folder.picture("images/a.png", 8, 8);
  convert(folder.at("images"), Format::kYolo, folder.at("link"));
  convert(folder.at("images"), Format::kYolo, folder.at("symlink"), Place::kSymlink);
  convert(folder.at("images"), Format::kYolo, folder.at("copy"), Place::kCopy);
  EXPECT_TRUE(fs::equivalent(original, folder.at("link/images/val/a.png")));
  EXPECT_TRUE(fs::is_symlink(folder.at("symlink/images/val/a.png")));
  EXPECT_TRUE(fs::equivalent(original, folder.at("symlink/images/val/a.png")));
  EXPECT_FALSE(fs::equivalent(original, folder.at("copy/images/val/a.png")));
  EXPECT_EQ(folder.read("copy/images/val/a.png"), folder.read("images/a.png"));
}

TEST(Write, TheDatasetItselfIsNotWrittenOver) {
  const DatasetFolder folder;
  const std::string picture = folder.picture("set/images/val/a.png", 8, 8);
  const auto dataset = open_dataset(folder.at("set/images/val"));
  const SplitView view{"val", &*dataset};
  const auto refused = write_dataset({&view, 1}, {.folder = folder.at("set")});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  // Nor through a link.
  fs::create_directories(folder.at("out"));
  fs::create_directory_symlink(folder.at("set/images"), folder.at("out/images"));
  EXPECT_TRUE(write_dataset({&view, 1}, {.folder = folder.at("out")}).ok());
  EXPECT_GT(fs::file_size(picture), 0U);
}

TEST(Write, EqualNamesAreToldApart) {
  const DatasetFolder folder;
  folder.picture("images/x/a.png", 8, 8);
  folder.picture("images/y/a.png", 8, 8);
  folder.write("labels/y/a.txt", "0 0.5 0.5 0.5 0.5\n");
  EXPECT_EQ(convert(folder.at("images"), Format::kYolo, folder.at("out")).renamed, 1);
  EXPECT_EQ(folder.read("out/labels/val/a.txt"), "");
  EXPECT_EQ(folder.read("out/labels/val/a_2.txt"), "0 0.5 0.5 0.5 0.5\n");
}

TEST(Write, CrowdsAreLostInFormsWithoutThem) {
  const DatasetFolder folder;
  folder.picture("images/a.png", 100, 100);
  folder.write("val.json", R"({"images":[{"id":1,"file_name":"a.png","width":100,"height":100}],
      "annotations":[{"id":1,"image_id":1,"category_id":3,"bbox":[0,0,50,50],"iscrowd":1},
                     {"id":2,"image_id":1,"category_id":3,"bbox":[0,0,50,50]},
                     {"id":3,"image_id":1,"category_id":3,"bbox":[0,0,50,50]}],
      "categories":[{"id":3,"name":"dog"}]})");
  const Written written = convert(folder.at("val.json"), Format::kYolo, folder.at("yolo"));
  EXPECT_EQ(written.crowds_lost, 1);
  EXPECT_EQ(written.boxes, 2);
  EXPECT_EQ(written.doubled, 1);
  EXPECT_EQ(convert(folder.at("val.json"), Format::kCoco, folder.at("coco")).crowds_lost, 0);
  EXPECT_EQ(open_dataset(folder.at("coco"))->category_ids, std::vector<int64_t>{3});
}

TEST(Stats, CountAndDraw) {
  const DatasetFolder folder;
  folder.picture("images/a.png", 640, 320);
  folder.picture("images/b.png", 64, 64);
  // 16 x 16, 64 x 64 and 320 x 320 pixels.
  folder.write("labels/a.txt", "0 0.5 0.5 0.025 0.05\n1 0.5 0.5 0.1 0.2\n1 0.5 0.5 0.5 1\n");
  const auto dataset = open_dataset(folder.at("images"));
  const Stats stats = stats_of(*dataset);
  EXPECT_EQ(stats.boxes, 3);
  EXPECT_EQ(stats.backgrounds, 1);
  EXPECT_EQ(stats.classes.at(1).boxes, 2);
  EXPECT_EQ(stats.classes.at(1).pictures, 1);
  EXPECT_EQ(stats.by_area, (std::array<int64_t, 3>{1, 1, 1}));
  EXPECT_EQ(stats.by_side, (std::array<int64_t, 8>{0, 0, 1, 0, 1, 0, 1, 0}));
  EXPECT_EQ(stats.by_aspect, (std::array<int64_t, 6>{0, 0, 0, 3, 0, 0}));
  EXPECT_EQ(stats.smallest_side, 64);
  EXPECT_EQ(stats.largest_side, 640);
  const auto drawn = draw_labels(*dataset);
  if (!drawn.ok() && drawn.error().code == Code::kUnsupported)
    GTEST_SKIP() << drawn.error().message;
  ASSERT_TRUE(drawn.ok()) << drawn.error().message;
  EXPECT_EQ(drawn->width(), 1600);
}

TEST(Write, BccdComesBackExactly) {
  const std::string path = real_data("bccd");
  FERRY_NEED_DATA(path);
  const DatasetFolder folder;
  convert(path, Format::kVoc, folder.at("voc"));
  const std::string voc = texts_in(folder, "voc/Annotations");
  convert(path, Format::kCoco, folder.at("coco"));
  convert(folder.at("coco"), Format::kVoc, folder.at("voc2"));
  EXPECT_EQ(texts_in(folder, "voc2/Annotations"), voc);  // marks and all
  EXPECT_EQ(difference(path, folder.at("voc2")), 0);
  convert(path, Format::kYolo, folder.at("yolo"));
  convert(folder.at("yolo"), Format::kVoc, folder.at("voc3"));
  EXPECT_EQ(difference(path, folder.at("voc3")), 0);
}

TEST(Write, HelmetComesBack) {
  const std::string path = real_data("helmet/data.yaml");
  FERRY_NEED_DATA(path);
  const DatasetFolder folder;
  convert(path, Format::kYolo, folder.at("yolo"));
  EXPECT_LE(difference(path, folder.at("yolo")), 2e-15);
  const Written coco = convert(path, Format::kCoco, folder.at("coco"));
  EXPECT_EQ(coco.outlines_lost, 0);
  convert(folder.at("coco"), Format::kYolo, folder.at("yolo2"));
  EXPECT_LE(difference(path, folder.at("yolo2")), 2e-10);
  // Through VOC the boxes come back, the outlines do not.
  const Written voc = convert(path, Format::kVoc, folder.at("voc"));
  EXPECT_GT(voc.outlines_lost, 900);
}

}  // namespace
}  // namespace ferry::data

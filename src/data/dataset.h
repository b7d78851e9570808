// A detection dataset as users have it, in one form: pictures, and the boxes in them.
//
// Three kinds of dataset open: YOLO txt with a data.yaml, COCO json, Pascal VOC xml. Rows of labels
// are judged one by one: a bad row is left out and reported with file and line, its picture stays.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace ferry::data {

enum class Format : unsigned char { kYolo, kCoco, kVoc };

// One box. Centre and size are parts of the picture (0 to 1), the picture being as it is shown: after
// its EXIF orientation.
struct Label {
  int32_t class_id = 0;  // index into Dataset::names
  double x = 0, y = 0, width = 0, height = 0;
  bool crowd = false;           // COCO's iscrowd: a region, not an object. Ultralytics' metric does not see it
  bool difficult = false;       // VOC
  double area = 0;              // COCO's, pixels of the picture; 0: that of the box
  std::vector<double> polygon;  // (optional) x, y, x, y, …, parts of the picture; the box is its hull
};

struct Sample {
  std::string path;               // of the picture
  int64_t width = 0, height = 0;  // pixels, as shown
  int64_t image_id = 0;           // COCO's; else the file's number, or its place in the dataset
  std::vector<Label> labels;
};

struct Dataset {
  Format format = Format::kYolo;
  std::vector<std::string> names;     // one a class
  std::vector<int64_t> category_ids;  // one a class: COCO's ids; else 0, 1, …
  std::vector<Sample> samples;        // sound pictures, by path
};

}  // namespace ferry::data

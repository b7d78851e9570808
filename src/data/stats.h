// What is in a dataset, counted: how many of each class, how large, where in the picture.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/dataset.h"
#include "vision/picture.h"

namespace ferry::data {

struct ClassCount {
  int64_t boxes = 0, pictures = 0;  // pictures that hold at least one
};

struct Stats {
  std::vector<ClassCount> classes;  // one a class
  int64_t boxes = 0, pictures = 0, backgrounds = 0;
  // By COCO's areas in pixels of the picture: below 32^2, below 96^2, above.
  std::array<int64_t, 3> by_area = {};
  // The longer side once the picture is brought to 640: below 8, 16, 32, 64, 128, 256, 512, above.
  std::array<int64_t, 8> by_side = {};
  // Height to width: below 1/4, 1/2, 1, 2, 4, above.
  std::array<int64_t, 6> by_aspect = {};
  double boxes_a_picture = 0;                   // mean
  int64_t most_boxes = 0;                       // in one picture
  int64_t smallest_side = 0, largest_side = 0;  // of a picture, pixels
};

Stats stats_of(const Dataset& dataset);

// Boxes of each class, all boxes over each other, where their centres are, how large they are: what
// Ultralytics' labels.jpg shows.
Result<vision::Picture> draw_labels(const Dataset& dataset);

}  // namespace ferry::data

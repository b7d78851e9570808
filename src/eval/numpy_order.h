// The order in which numpy's default argsort puts equal values, which YOLOv5's validation depends
// on: it sorts pictures by aspect ratio to share rectangles, most datasets have a handful of
// ratios, and a picture's rectangle moves its boxes.
//
// numpy before 1.25 (and later ones on processors without AVX-512) sorts by introsort: quicksort of
// the median of three down to 16 values, then insertion (npysort/quicksort.cpp). It is not stable,
// but always the same. Measured on COCO128: YOLOv5n's mAP50 is 0.5627 with this order, and 0.5577
// with a stable sort.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace ferry::eval {

// Indices of the values, rising. REQUIRES: no value is NaN
std::vector<size_t> numpy_argsort(std::span<const double> values);

}  // namespace ferry::eval

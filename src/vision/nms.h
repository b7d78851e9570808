// Non-maximum suppression as Ultralytics YOLOv5 v7.0 does it (utils/general.py,
// `non_max_suppression`, with torchvision.ops.nms), but without its wall-clock limit.
//
// Candidates are taken in the order of falling confidence; of equal ones the earlier comes first
// (torch's argsort leaves that order open; its CPU sort does the same). A candidate goes when a
// kept box of its class (of any class: `agnostic`) has an IoU with it of strictly more than the
// threshold. IoU is computed in fp32 on boxes moved by 7680 pixels a class, as upstream does, so
// the bits that are lost in the move are lost here too. Boxes of different classes never meet,
// where upstream's would from 7680 pixels of input on.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "vision/boxes.h"
#include "vision/simd.h"

namespace ferry::vision {

struct NmsOptions {
  double conf_threshold = 0.25;  // objectness, and objectness x class, must be greater; 0 to 1
  double iou_threshold = 0.45;   // 0 to 1
  bool multi_label = false;      // a row gives a box for each class above, not only for its best
  bool agnostic = false;
  std::vector<int32_t> classes =
      {};  // only these; empty: all. Tested after the best class is chosen
  int64_t max_detections = 300;
  int64_t max_candidates = 30000;  // the best so many take part
};

// kInvalid for thresholds outside 0 to 1 (NaN too) and negative counts.
Status check_options(const NmsOptions& options);

// Boxes that could be detections. `items` stand in upstream's order, by row and then by class.
struct Candidates {
  struct Item {
    float confidence;   // > 0
    int32_t class_id;   // >= 0
    int32_t box_index;  // of boxes
  };
  std::vector<Box> boxes;  // finite
  std::vector<Item> items;
};

// The kept boxes, by falling confidence; at most max_detections. Of the options it reads
// iou_threshold, agnostic, max_detections, max_candidates.
// REQUIRES: check_options(options) passes; fewer than 2^32 items
std::vector<Detection> suppress(const Candidates& candidates, const NmsOptions& options,
                                Simd simd = best_simd());

// Keeps the `count` items that `suppress` would take first, in their order. Returns the lowest
// confidence among them.
// REQUIRES: 1 <= count <= items.size()
float keep_best(std::vector<Candidates::Item>& items, int64_t count);

}  // namespace ferry::vision

// A network over a dataset: each picture loaded as YOLOv5's validation loads it, and its boxes back
// in the picture's own pixels (Ultralytics YOLOv5 v7.0: val.py, utils/dataloaders.py).
//
// The longer side is brought to the input size first (INTER_AREA when it shrinks, INTER_LINEAR when
// it grows, the other side rounded down), then a border is added; nothing is scaled up for it. With
// `rect`, pictures are sorted by aspect ratio and those of a batch share the smallest rectangle,
// half a stride larger.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/dataset.h"
#include "detect/engine.h"
#include "ferry/ferry.h"
#include "vision/nms.h"
#include "vision/picture.h"

namespace ferry::eval {

struct PredictOptions {
  vision::NmsOptions nms;
  bool rect = true;    // has no effect on a network whose input has one size
  double pad = 0.5;    // strides that a shared rectangle is larger than it need be
  int64_t batch = 32;  // pictures that share a rectangle, and that are decoded together
  bool augment = false;
  int threads = 1;  // that decode pictures
};

// What came of one picture. Borrowed for the call.
struct Prediction {
  size_t sample = 0;  // index into Dataset::samples
  size_t batch = 0;   // its batch, and its place there
  size_t place = 0;
  vision::PictureView picture;  // as the network saw it, without the border
  int64_t input_width = 0, input_height = 0;
  // In pixels of the whole picture, inside it, by falling confidence.
  std::span<const vision::Detection> detections;
};

struct PredictTotals {
  int64_t pictures = 0;
  double preprocess_ms = 0, inference_ms = 0, postprocess_ms = 0;  // sums
  double decode_ms = 0;                                            // decoding and first scaling
  std::vector<std::string> unread;                                 // pictures left out, and why
};

// One picture's place in the order of evaluation, and the input it is fitted into.
struct Place {
  size_t sample = 0;
  int64_t input_width = 0, input_height = 0;  // pixels
};

// All pictures in the order of evaluation; consecutive `batch` ones share an input.
std::vector<Place> plan_batches(const data::Dataset& dataset, int64_t width, int64_t height,
                                int64_t stride, const PredictOptions& options);

// Calls `each` for every picture, in the order of evaluation, on the calling thread. A picture that
// cannot be decoded is left out and named in the totals. Fails as the network or `each` does.
Result<PredictTotals> predict(detect::Engine& engine, const data::Dataset& dataset,
                              const PredictOptions& options,
                              const std::function<Status(const Prediction&)>& each);

}  // namespace ferry::eval

// The detector's own decoding of boxes starts from raw maps: this strips the graph's, and says what
// it knew.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"

namespace ferry::passes {

// A YOLOv5 head behind its last convolutions. Maps are [batch, anchors * (5 + classes), height,
// width] of logits.
struct HeadSpec {
  int64_t classes = 0;
  std::vector<double> strides = {};  // pixels of one cell, a level each
  std::vector<std::vector<std::array<double, 2>>> anchors =
      {};  // [level][anchor] width, height in pixels
};

// Replaces output 0, which must be a yolo_detect's, by that node's inputs: from then on the graph
// returns the raw maps in order of level, and nothing else. Not a pass: it changes what the graph
// returns. Runs before or after the passes. Fails, and changes nothing, when output 0 comes from
// another op.
Result<HeadSpec> expose_raw_heads(graph::Graph& graph);

}  // namespace ferry::passes

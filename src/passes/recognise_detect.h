// YOLOv5's Detect tail, as exporters spell it out, becomes one yolo_detect.
#pragma once

#include "base/result.h"
#include "graph/graph.h"

namespace ferry::passes {

// reshape, transpose, sigmoid, split or slices, (2s - 0.5 + grid) * stride, (2s)^2 * anchors,
// concat, reshape, concat = yolo_detect(heads).
//
// An output [batch, rows, 5 + classes] is taken when the nodes between it and values
// [batch, anchors * (5 + classes), h, w] compute what yolo_detect computes. How they are written
// does not matter: anchors and strides are read off the tail's own answer to a probe, and the tail
// and yolo_detect must agree on random heads within 1e-4 (relative to 1 and to the value). Returns
// the number of outputs recognised; a graph without a Detect tail is left as it is. REQUIRES:
// verify(graph).ok().
Result<int> recognise_detect(graph::Graph& graph);

}  // namespace ferry::passes

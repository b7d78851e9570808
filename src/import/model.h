// What every importer makes: a graph, and what the file says about the detector in it.
//
// The graph computes what the network computes in eval mode, with nothing optimised: batch norms
// are nodes, weights are f32 constants. Its input 0 is `images`, f32[batch, channels, height,
// width], RGB, 0..1.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"

namespace ferry::import {

struct ImportOptions {
  // Size of the input picture in pixels. 0: what the file fixes, or 640 when it does not fix one. A
  // size that the file cannot have (not a multiple of its largest stride; another than a static
  // ONNX model's) is an error that says so.
  int64_t height = 0;
  int64_t width = 0;
  int64_t batch = 1;
  // (optional) A model yaml for checkpoints that hold weights only (a state_dict).
  std::string cfg = {};
  // Weights of a model made from a yaml alone: the same seed gives the same weights on every
  // machine.
  uint64_t seed = 0;
};

enum class Head {
  kNone,    // outputs mean what the graph says; no boxes are known in them
  kYolov5,  // output 0 is f32[batch, rows, 5 + nc]: centre x, centre y, width, height in input
            // pixels, objectness, then one score a class, all between 0 and 1. Rows in Ultralytics'
            // order: level, anchor, y, x.
};

struct DetectorInfo {
  Head head = Head::kNone;
  int64_t nc = 0;
  std::vector<std::string> names;  // one a class, UTF-8; "0", "1", … when the file names none
  std::vector<double> strides;     // one a level, input pixels a cell
  std::vector<std::vector<std::array<double, 2>>>
      anchors;  // level, anchor: width, height in input pixels
};

struct SourceInfo {
  std::string format;   // "PyTorch zip checkpoint, f16", "ONNX opset 12, f16 weights", "model yaml,
                        // random weights"
  std::string release;  // what it looks like: "YOLOv5 v6.0 or newer"; empty when it cannot be told
  std::string producer;  // class or tool that the file names: "models.yolo.Model", "pytorch 1.12.1"
  std::string date;      // as the file says, else empty
  int64_t params_stored =
      0;  // elements of trainable tensors in the file (Ultralytics' "parameters")
  int64_t params_fused = 0;           // the same with batch norms folded into convolutions
  std::vector<std::string> warnings;  // whole sentences; what was odd and what was done about it
};

struct Model {
  graph::Graph graph;
  // The graph may be given other picture sizes and batches (multiples of the largest stride) and
  // its types inferred anew.
  bool any_size = false;
  DetectorInfo detector;
  SourceInfo source;
};

}  // namespace ferry::import

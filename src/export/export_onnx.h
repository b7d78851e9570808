// A model becomes an ONNX file that other engines run: what stands behind `ferry export`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/tensor.h"
#include "import/model.h"

namespace ferry::exporter {

inline constexpr int64_t kOldestOpset = 12, kNewestOpset = 17;

struct OnnxOptions {
  int64_t opset = 12;  // kOldestOpset … kNewestOpset
  // Weights and arithmetic in f16; inputs, outputs and the decoding of boxes stay f32.
  bool half = false;
  // Batch, height and width are open. Refused for a model in which anything depends on them.
  bool dynamic = false;
  // Folds batch norms and constants and removes what does nothing. Without it the file holds what
  // the importer read, node for node.
  bool simplify = true;
  // The maps in front of the Detect layer instead of its rows.
  bool raw_heads = false;
  std::string producer_version = {};
};

struct OnnxReport {
  struct Port {
    std::string name;
    graph::TensorType type;
  };
  std::vector<Port> inputs, outputs;
  int64_t nodes = 0;
  int64_t bytes = 0;  // of the file
};

// Writes `model` to `path`, whole or not at all. The graph's input size and batch become the
// file's. A detector's ports are called `images` and `output0` (with raw_heads: `output0`,
// `output1`, …), and the metadata name its classes, stride and anchors as Ultralytics' exports do.
Result<OnnxReport> export_onnx(import::Model model, const OnnxOptions& options,
                               const std::string& path);

// The same in memory, for tests.
Result<std::string> onnx_bytes(import::Model model, const OnnxOptions& options);

// A Python literal, as Ultralytics' metadata hold them: {0: 'person', 1: "driver's cab"}.
std::string python_dict(const std::vector<std::string>& names);

}  // namespace ferry::exporter

// From ONNX nodes to ferry's graph.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"
#include "import/model.h"
#include "import/onnx/proto.h"
#include "import/onnx/tensor_data.h"

namespace ferry::import::onnx {

struct Lowered {
  graph::Graph graph;  // verified, dead nodes removed, outputs named as in the file
  bool dynamic_batch = false, dynamic_size = false;  // axes of the picture that the options bound
};

// Everything the outputs need, in f32: half, bfloat16 and double become f32 and casts between them
// go. What depends on constants and static shapes only is computed now, so Shape/Gather/Concat
// chains become the shapes they stand for; quantize_linear and dequantize_linear stay. An If with a
// known condition becomes its branch. Refuses, naming the node: ops and domains that ferry does not
// know, functions, Loop, Scan, sparse tensors, and whatever an op's own rules refuse.
Result<Lowered> lower(const ModelProto& model, TensorSource& source, const ImportOptions& options,
                      const std::vector<double>& exported_size);

}  // namespace ferry::import::onnx

// What the model's pictures look like: the input's static type, with dynamic axes bound.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "graph/tensor.h"
#include "import/model.h"
#include "import/onnx/proto.h"

namespace ferry::import::onnx {

struct BoundInput {
  graph::TensorType type;
  bool dynamic_batch = false;
  bool dynamic_size = false;
};

// The type of an input that is not an initializer. Dynamic axes (a symbol, none, or -1) of a
// picture input [batch, channels, height, width] take the options' batch, 3, and the options'
// height and width, which fall back on `exported_size` (what the metadata names, may be empty),
// then on 640. Static axes stay as they are. Fails on other dynamic inputs, on types that a picture
// cannot have and on sizes that overflow.
Result<BoundInput> bind_input(const ValueInfo& input, const ImportOptions& options,
                              const std::vector<double>& exported_size);

}  // namespace ferry::import::onnx

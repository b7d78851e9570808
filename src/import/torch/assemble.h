// From a module tree to a Model: refuses other tasks and families, walks the layers, reads names,
// counts parameters.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "import/model.h"
#include "import/torch/module.h"
#include "import/torch/tensors.h"

namespace ferry::import::torch {

// Paths lose what wrappers (AutoShape, DistributedDataParallel) put before them.
// `source.format` is left at the weights' type ("f16"); the caller knows the rest. `tensors` reads
// tensors that are attributes; null for trees of a yaml. `constant_bytes` bounds the f32 constants
// of the graph.
Result<Model> assemble(ModuleTree& tree, TensorReader* tensors, int64_t constant_bytes,
                       const ImportOptions& options);

}  // namespace ferry::import::torch

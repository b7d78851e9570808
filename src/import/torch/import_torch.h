// PyTorch checkpoints of YOLOv5 v3 to v7, as train.py, hub and torch.save leave them: the module
// (`ema`, else `model`), or the bare weights (a state_dict) with the model yaml beside them.
// Nothing in the file is executed.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "import/model.h"
#include "import/torch/zip.h"

namespace ferry::import {

// Reads the file at `path`, which stays mapped while the graph's constants need it. Errors begin
// with the path and name what is in the way: the module and layer that ferry does not know, what
// the file is instead, how much of it is missing.
Result<Model> import_torch(const std::string& path, const ImportOptions& options = {});

// The same for bytes in memory, kept alive by their owner. `options.cfg` is still a path.
Result<Model> import_torch_bytes(torch::Bytes file, const ImportOptions& options = {});

// True when the bytes begin as a checkpoint does: a zip archive or a pickle. Says nothing about the
// rest.
bool looks_like_torch(std::span<const std::byte> file);

}  // namespace ferry::import

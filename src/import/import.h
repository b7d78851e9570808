// One door to all importers: the file's content decides, never its name.
#pragma once

#include <string>

#include "base/result.h"
#include "import/model.h"

namespace ferry::import {

// Opens a PyTorch checkpoint, an ONNX file or a model yaml (random weights). Errors begin with the
// path and say what the file is instead, or what in it ferry does not know.
Result<Model> import_model(const std::string& path, const ImportOptions& options = {});

}  // namespace ferry::import

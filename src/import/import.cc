#include "import/import.h"

#include "base/mapped_file.h"
#include "import/content.h"
#include "import/onnx/import_onnx.h"
#include "import/torch/import_torch.h"
#include "import/yaml/import_yaml.h"

namespace ferry::import {

Result<Model> import_model(const std::string& path, const ImportOptions& options) {
  FERRY_TRY(file, MappedFile::open(path));
  const auto bytes = file->bytes();
  if (looks_like_torch(bytes)) return import_torch(path, options);
  if (looks_like_yaml(bytes)) return import_yaml(path, options);
  const std::string foreign = describe_foreign(bytes);
  if (!foreign.empty()) return error(Code::kInvalid, "{}: not a model: this is {}", path, foreign);
  if (looks_like_onnx(bytes)) return import_onnx(path, options);
  return error(Code::kInvalid, "{}: neither a PyTorch checkpoint nor an ONNX file nor a model yaml",
               path);
}

}  // namespace ferry::import

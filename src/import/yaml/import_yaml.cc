#include "import/yaml/import_yaml.h"

#include "base/mapped_file.h"
#include "import/torch/assemble.h"
#include "import/yaml/fill.h"

namespace ferry::import {
namespace {

Result<Model> import_text(std::string_view text, const ImportOptions& options) {
  FERRY_TRY(yaml, parse_model_yaml(text));
  FERRY_CHECK_OK(fill_random(yaml.tree, options.seed));
  FERRY_TRY(model, torch::assemble(yaml.tree, nullptr, INT64_MAX, options));
  model.source.format = "model yaml, random weights";
  model.source.release.clear();
  if (!yaml.note.empty()) model.source.warnings.push_back(yaml.note);
  return model;
}

}  // namespace

Result<Model> import_yaml(const std::string& path, const ImportOptions& options) {
  FERRY_TRY(file, MappedFile::open(path));
  const auto bytes = file->bytes();
  return import_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, options)
      .within(path);
}

}  // namespace ferry::import

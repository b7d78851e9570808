// The steps, in order: open the file, find the module in it, read the module tree, walk it, say
// what was found.
#include "import/torch/import_torch.h"

#include <algorithm>

#include "base/mapped_file.h"
#include "import/torch/assemble.h"
#include "import/torch/checkpoint.h"
#include "import/torch/module.h"
#include "import/yaml/fill.h"
#include "import/yaml/import_yaml.h"

namespace ferry::import {
namespace {

using namespace torch;

// What a checkpoint holds: a module, or tensors by name.
struct Content {
  const Value* module = nullptr;
  const Value* weights = nullptr;
};

// True for a mapping of names to tensors that holds at least one.
bool is_state_dict(const Value& value) {
  if (!is_mapping(value)) return false;
  const auto items = entries(value);
  return std::any_of(items.begin(), items.end(), [](const auto& item) {
    return item.first->is_string() && is_tensor(*item.second);
  });
}

// Looks at one candidate; `ema` was a pair (module, updates) for some releases.
bool take(const Value* candidate, Content& content) {
  if (candidate != nullptr && candidate->is_sequence() && !candidate->items.empty())
    candidate = candidate->items[0];
  if (candidate == nullptr) return false;
  if (is_module(*candidate)) content.module = candidate;
  if (is_state_dict(*candidate)) content.weights = candidate;
  return content.module != nullptr || content.weights != nullptr;
}

Result<Content> find_content(const Value& root) {
  Content content;
  if (is_mapping(root)) {
    for (const std::string_view key :
         {"ema", "model", "state_dict", "model_state_dict", "net", "weights"}) {
      if (take(find(root, key), content)) return content;
    }
  }
  if (take(&root, content)) return content;
  if (!is_mapping(root))
    return error(Code::kInvalid, "the checkpoint holds {}, not a model", describe(root));
  std::string keys;
  for (const auto& [key, value] : entries(root)) {
    if (keys.size() < 200) keys += fmt::format("{}{}", keys.empty() ? "" : ", ", describe(*key));
  }
  return error(Code::kInvalid,
               "the checkpoint holds no model: neither 'ema' nor 'model' is one (keys: {})", keys);
}

// f32 constants a file may make: its weights as f16 double, and some room; many modules of one
// storage do not fit.
int64_t constant_budget(const Checkpoint& checkpoint) {
  return (int64_t{64} << 20) + 8 * static_cast<int64_t>(checkpoint.file_size());
}

Result<Model> import_module(Checkpoint& checkpoint, const Value& object,
                            const ImportOptions& options) {
  TensorReader tensors(checkpoint);
  FERRY_TRY(tree, read_modules(checkpoint.pickle(), object, tensors));
  return assemble(tree, &tensors, constant_budget(checkpoint), options);
}

// Weights alone need the yaml of their model.
Result<Model> import_weights(Checkpoint& checkpoint, const Value& weights,
                             const ImportOptions& options) {
  if (options.cfg.empty()) {
    return error(Code::kUnsupported,
                 "the checkpoint holds weights only (a state_dict), no modules: give the yaml of "
                 "its model (--cfg)");
  }
  FERRY_TRY(file, MappedFile::open(options.cfg));
  const Bytes text{file, file->bytes()};
  TensorReader tensors(checkpoint);
  FERRY_TRY(draft, parse_model_yaml(text.text()).within(options.cfg));
  FERRY_TRY(nc, classes_in_state_dict(*draft.layers, weights, tensors));
  FERRY_TRY(yaml, parse_model_yaml(text.text(), nc).within(options.cfg));
  FERRY_CHECK_OK(fill_from_state_dict(yaml.tree, weights, tensors));
  FERRY_TRY(model, assemble(yaml.tree, &tensors, constant_budget(checkpoint), options));
  if (!yaml.note.empty()) model.source.warnings.push_back(yaml.note);
  model.source.release.clear();  // weights do not tell
  model.source.producer.clear();
  return model;
}

}  // namespace

bool looks_like_torch(std::span<const std::byte> file) {
  const bool is_pickle = file.size() > 2 && file[0] == std::byte{0x80} && file[1] <= std::byte{5};
  return looks_like_zip(file) || is_pickle;
}

Result<Model> import_torch_bytes(Bytes file, const ImportOptions& options) {
  FERRY_TRY(checkpoint, Checkpoint::open(std::move(file)));
  FERRY_TRY(content, find_content(checkpoint.root()));
  auto imported = content.module != nullptr ? import_module(checkpoint, *content.module, options)
                                            : import_weights(checkpoint, *content.weights, options);
  FERRY_TRY(model, std::move(imported));
  SourceInfo& source = model.source;
  source.format = fmt::format("{}, {}{}", checkpoint.layout(),
                              content.module == nullptr ? "weights only, " : "", source.format);
  source.warnings.insert(source.warnings.begin(), checkpoint.warnings().begin(),
                         checkpoint.warnings().end());
  const Value* date = is_mapping(checkpoint.root()) ? find(checkpoint.root(), "date") : nullptr;
  if (date != nullptr && date->is_string()) source.date = std::string(date->text.substr(0, 64));
  return model;
}

Result<Model> import_torch(const std::string& path, const ImportOptions& options) {
  FERRY_TRY(file, MappedFile::open(path));
  const auto bytes = file->bytes();
  return import_torch_bytes({std::move(file), bytes}, options).within(path);
}

}  // namespace ferry::import

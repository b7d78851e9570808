// Writes pickles instruction by instruction, so that tests can say what torch.save would never
// write.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/torch/test_zip.h"

namespace ferry::import::test {

using Parts = std::vector<std::string>;

inline std::string joined(const Parts& parts) {
  std::string out;
  for (const std::string& part : parts) out += part;
  return out;
}
inline std::string py_int(int64_t value) {
  return "\x8a\x08" + little(static_cast<uint64_t>(value), 8);
}
inline std::string py_string(std::string_view text) {
  return "X" + little(text.size(), 4) + std::string(text);
}
inline std::string py_tuple(const Parts& items) { return "(" + joined(items) + "t"; }
inline std::string py_list(const Parts& items) { return "(" + joined(items) + "l"; }
inline std::string py_dict(const Parts& keys_and_values) {
  return "(" + joined(keys_and_values) + "d";
}
inline std::string py_global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}
inline std::string py_call(const std::string& callable, const Parts& args) {
  return callable + py_tuple(args) + "R";
}
inline std::string py_ints(const std::vector<int64_t>& values) {
  Parts items;
  for (const int64_t v : values) items.push_back(py_int(v));
  return py_tuple(items);
}
// Stores the value under `index`, to be had again by py_get.
inline std::string py_put(const std::string& value, int index) {
  return value + "r" + little(static_cast<uint64_t>(index), 4);
}
inline std::string py_get(int index) { return "j" + little(static_cast<uint64_t>(index), 4); }

inline std::string py_storage(std::string_view key, int64_t elements,
                              std::string_view type = "FloatStorage") {
  return py_tuple({py_string("storage"), py_global("torch", type), py_string(key), py_string("cpu"),
                   py_int(elements)}) +
         "Q";
}
struct TensorSpec {
  std::string storage;
  int64_t offset = 0;
  std::vector<int64_t> shape = {}, strides = {};
};
inline std::string py_tensor(const TensorSpec& t) {
  return py_call(
      py_global("torch._utils", "_rebuild_tensor_v2"),
      {t.storage, py_int(t.offset), py_ints(t.shape), py_ints(t.strides), "\x89", py_dict({})});
}
// An nn.Module: its class, tensors and children by name (alternating), other attributes.
struct ModuleSpec {
  std::string_view module, name;
  Parts parameters = {}, children = {}, attributes = {};
};
inline std::string py_module(const ModuleSpec& m) {
  Parts state = {py_string("_parameters"), py_dict(m.parameters), py_string("_modules"),
                 py_dict(m.children)};
  state.insert(state.end(), m.attributes.begin(), m.attributes.end());
  return py_global(m.module, m.name) + ")\x81" + py_dict(state) + "b";
}
// {'model': <models.yolo.Model with these layers>}, a whole data.pkl.
inline std::string py_checkpoint(const Parts& layers) {
  Parts named;
  for (size_t i = 0; i < layers.size(); ++i) {
    named.push_back(py_string(std::to_string(i)));
    named.push_back(layers[i]);
  }
  const std::string list = py_module({"torch.nn.modules.container", "Sequential", {}, named});
  const std::string model = py_module({"models.yolo", "Model", {}, {py_string("model"), list}});
  return "\x80\x02" + py_dict({py_string("model"), model}) + ".";
}
// The archive that torch.save makes around it; `records` are storages by key.
inline std::string torch_archive(
    const std::string& pickle, const std::vector<std::pair<std::string, std::string>>& records = {},
    const std::vector<ZipFile>& others = {}) {
  std::vector<ZipFile> files = {{.name = "archive/data.pkl", .data = pickle}};
  for (const auto& [key, data] : records)
    files.push_back({.name = "archive/data/" + key, .data = data});
  files.insert(files.end(), others.begin(), others.end());
  return make_zip(files);
}

}  // namespace ferry::import::test

// Opens what torch.save wrote: finds the pickle and the storages, whatever the layout.
//
// Layouts: the zip archive of torch 1.6 and newer (any root folder; `data.pkl`, `data/<key>`,
// `byteorder`, `version`,
// `.data/*`), and the stream of pickles before it (magic number, protocol, system, object, keys,
// storages). The tar file of torch 0.1 and TorchScript archives are refused with a reason.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/tensor.h"
#include "import/torch/pickle.h"
#include "import/torch/zip.h"

namespace ferry::import::torch {

// How a pickle names a storage: ('storage', torch.HalfStorage, '42', 'cuda:0', 1024).
struct StorageName {
  std::string_view key;
  graph::DType dtype = graph::DType::kU8;
  bool untyped = false;  // UntypedStorage: `elements` counts bytes, the tensor says its type
  int64_t elements = 0;
  int64_t view_offset = 0;  // of a storage that is part of another (torch before 0.4), in elements
};
// nullopt when the value is no persistent id of a storage. Fails for element types that ferry does
// not know.
Result<std::optional<StorageName>> storage_name(const Value& persistent);

class Checkpoint {
 public:
  // Errors say what the bytes are instead. The bytes stay shared with every tensor that views them.
  static Result<Checkpoint> open(Bytes file);

  const Value& root() const { return *pickle_.root; }
  const Pickle& pickle() const { return pickle_; }
  const std::string& layout() const {
    return layout_;
  }  // "PyTorch zip checkpoint", "PyTorch legacy checkpoint"
  const std::vector<std::string>& warnings() const { return warnings_; }
  size_t file_size() const { return file_.span.size(); }

  // The bytes of a storage; their length is what `name` declares. Fails when it is missing or of
  // another length.
  Result<Bytes> storage(const StorageName& name);

 private:
  static Result<Checkpoint> open_archive(Bytes file);
  static Result<Checkpoint> open_stream(Bytes file);

  std::string layout_;
  Bytes file_;
  Pickle pickle_;
  std::vector<std::string> warnings_;
  bool warned_of_checksum_ = false;
  // Zip layout.
  ZipArchive archive_;
  std::string root_folder_;                             // "archive/", or empty
  std::map<std::string, Bytes, std::less<>> unpacked_;  // storages already read
  uint64_t unpack_budget_ = 0;  // bytes that deflated storages may still unpack to
  // Legacy layout.
  bool is_stream_ = false;
};

}  // namespace ferry::import::torch

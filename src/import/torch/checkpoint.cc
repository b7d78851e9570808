#include "import/torch/checkpoint.h"

#include <algorithm>

#include "import/content.h"

namespace ferry::import::torch {
namespace {

using graph::DType;

constexpr uint64_t kPickleLimit = uint64_t{256} << 20;
constexpr uint64_t kStorageLimit = uint64_t{8} << 30;
// Weights hardly deflate: an archive that unpacks to more than this many times its length is made
// to exhaust memory.
constexpr uint64_t kUnpackRatio = 20;
// 0x1950a86a20f9469cfc6c, how a legacy checkpoint begins; little-endian, as the pickle writes it.
constexpr std::string_view kLegacyMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";

struct StorageRow {
  std::string_view name;
  DType dtype;
  bool untyped = false;
};
constexpr StorageRow kStorages[] = {
    {"FloatStorage", DType::kF32},        {"HalfStorage", DType::kF16},
    {"BFloat16Storage", DType::kBf16},    {"DoubleStorage", DType::kF64},
    {"LongStorage", DType::kI64},         {"IntStorage", DType::kI32},
    {"ShortStorage", DType::kI16},        {"CharStorage", DType::kI8},
    {"ByteStorage", DType::kU8},          {"BoolStorage", DType::kBool},
    {"UntypedStorage", DType::kU8, true}, {"_UntypedStorage", DType::kU8, true},
};

// The folder that holds data.pkl, with its slash. Fails when there is none, or several.
Result<std::string> find_root(const ZipArchive& archive) {
  std::optional<std::string> root;
  for (const ZipEntry& entry : archive.entries) {
    const bool hit = entry.name == "data.pkl" || entry.name.ends_with("/data.pkl");
    if (!hit) continue;
    if (root)
      return error(Code::kInvalid, "the archive holds several checkpoints ('{}data.pkl', '{}')",
                   *root, entry.name);
    root = std::string(entry.name.substr(0, entry.name.size() - 8));
  }
  if (root) return *std::move(root);
  const std::string_view first =
      archive.entries.empty() ? std::string_view("nothing") : archive.entries[0].name;
  for (const ZipEntry& entry : archive.entries) {
    if (entry.name.ends_with(".pt") || entry.name.ends_with(".pth") ||
        entry.name.ends_with(".onnx")) {
      return error(Code::kInvalid, "a zip archive that contains '{}': unpack it first", entry.name);
    }
  }
  return error(
      Code::kInvalid,
      "a zip archive without data.pkl, so no PyTorch checkpoint ({} entries; the first is '{}')",
      archive.entries.size(), first);
}

Status refuse_torchscript(const ZipArchive& archive, const std::string& root) {
  const std::string code = root + "code/";
  const bool has_code = std::any_of(archive.entries.begin(), archive.entries.end(),
                                    [&](const ZipEntry& e) { return e.name.starts_with(code); });
  if (has_code || archive.find(root + "constants.pkl") != nullptr) {
    return error(Code::kUnsupported,
                 "a TorchScript archive (it holds compiled code, not the modules): give the .pt "
                 "that it was exported "
                 "from, or export ONNX");
  }
  return {};
}

// What a cut upload still tells: how much is there, and what data.pkl names that is not.
Error describe_cut_archive(const Bytes& file) {
  const ZipRemains remains = walk_local_headers(file);
  const auto pkl = std::find_if(remains.whole.begin(), remains.whole.end(),
                                [](const ZipEntry& e) { return e.name.ends_with("data.pkl"); });
  const std::string cut =
      fmt::format("the file is cut short: {} bytes are here and the archive's directory is not",
                  file.span.size());
  if (pkl == remains.whole.end() || pkl->deflated) {
    return error(Code::kInvalid,
                 "{}; not even the list of its weights is whole. Download or copy it again", cut);
  }
  const Bytes bytes{file.owner, file.span.subspan(pkl->data_offset, pkl->stored_size)};
  auto pickle = read_pickle(bytes);
  if (!pickle.ok())
    return error(Code::kInvalid, "{}, and its data.pkl is broken. Download or copy it again", cut);

  const std::string_view root = pkl->name.substr(0, pkl->name.size() - 8);
  std::map<std::string_view, uint64_t> wanted;  // key -> bytes
  for (const Value& value : pickle->arena->values) {
    const auto name = storage_name(value);
    if (!name.ok() || !*name) continue;
    wanted[(*name)->key] = static_cast<uint64_t>((*name)->elements) *
                           static_cast<uint64_t>(dtype_size((*name)->dtype));
  }
  uint64_t total = 0, missing = 0, absent = 0;
  for (const auto& [key, size] : wanted) {
    total += size;
    const std::string path = fmt::format("{}data/{}", root, key);
    const bool whole = std::any_of(remains.whole.begin(), remains.whole.end(),
                                   [&](const ZipEntry& e) { return e.name == path; });
    if (whole) continue;
    ++absent;
    missing += size - (path == remains.cut_name ? std::min(size, remains.cut_bytes) : 0);
  }
  if (absent == 0) {
    return error(Code::kInvalid,
                 "{}, only its last bytes are missing: all {} tensors' storages that its data.pkl "
                 "names are there. Download or copy it again",
                 cut, wanted.size());
  }
  return error(Code::kInvalid,
               "{}. Its data.pkl names {} tensors' storages with {} bytes; {} of them ({} bytes) "
               "are missing or cut, so at least {} bytes did not arrive. Download or copy it again",
               cut, wanted.size(), total, absent, missing, missing);
}

// True when the first pickle is the magic number.
bool is_legacy_stream(const Bytes& file) {
  const Bytes head{file.owner, file.span.first(std::min<size_t>(file.span.size(), 64))};
  auto pickle = read_pickle(head);
  return pickle.ok() && pickle->root->kind == Kind::kBigInt && pickle->root->text == kLegacyMagic;
}

}  // namespace

Result<std::optional<StorageName>> storage_name(const Value& persistent) {
  if (persistent.kind != Kind::kPersistent || persistent.args->kind != Kind::kTuple)
    return std::optional<StorageName>();
  const auto& id = persistent.args->items;
  if (id.size() < 5 || !id[0]->is_string() || id[0]->text != "storage")
    return std::optional<StorageName>();
  const std::string_view type = short_name(class_name(*id[1]));
  const auto row = std::find_if(std::begin(kStorages), std::end(kStorages),
                                [&](const StorageRow& r) { return r.name == type; });
  if (row == std::end(kStorages)) {
    return error(
        Code::kUnsupported,
        "a storage of type '{}'; float, half, bfloat16, double, the integers and bool are known",
        class_name(*id[1]));
  }
  const auto elements = as_int(id[4]);
  if (!id[2]->is_string() || !elements || *elements < 0) {
    return error(Code::kInvalid, "a storage is named by {} with {} elements", describe(*id[2]),
                 describe(*id[4]));
  }
  StorageName name{id[2]->text, row->dtype, row->untyped, *elements, 0};
  const int64_t bytes = graph::dtype_size(name.dtype);
  if (name.elements > static_cast<int64_t>(kStorageLimit) / bytes) {
    return error(Code::kNoMemory, "storage '{}' claims {} elements", name.key, name.elements);
  }
  if (id.size() >= 6 && id[5]->kind == Kind::kTuple && id[5]->items.size() >= 3) {
    const auto offset = as_int(id[5]->items[1]);
    if (!offset || *offset < 0 || *offset > name.elements)
      return error(Code::kInvalid, "storage '{}' has a bad view", name.key);
    name.view_offset = *offset;
  }
  return std::optional<StorageName>(name);
}

Result<Checkpoint> Checkpoint::open(Bytes file) {
  if (looks_like_zip(file.span)) return open_archive(std::move(file));
  if (is_legacy_stream(file)) return open_stream(std::move(file));
  const std::string what = describe_foreign(file.span);
  if (!what.empty()) return error(Code::kInvalid, "not a PyTorch checkpoint: this is {}", what);
  const bool is_pickle =
      file.span.size() > 2 && file.span[0] == std::byte{0x80} && file.span[1] <= std::byte{5};
  if (is_pickle) {
    return error(Code::kInvalid,
                 "a Python pickle, but not one that torch.save wrote (or one that is cut short)");
  }
  return error(Code::kInvalid,
               "not a PyTorch checkpoint: neither a zip archive nor a stream of pickles");
}

Result<Checkpoint> Checkpoint::open_archive(Bytes file) {
  auto archive = open_zip(file);
  if (!archive.ok()) {
    if (archive.error().message.find("cut short") == std::string::npos)
      return std::move(archive).error();
    return describe_cut_archive(file);
  }
  Checkpoint checkpoint;
  checkpoint.layout_ = "PyTorch zip checkpoint";
  checkpoint.file_ = std::move(file);
  checkpoint.unpack_budget_ = (uint64_t{64} << 20) + kUnpackRatio * checkpoint.file_.span.size();
  checkpoint.archive_ = *std::move(archive);
  const ZipArchive& zip = checkpoint.archive_;
  FERRY_TRY(root, find_root(zip));
  checkpoint.root_folder_ = root;
  FERRY_CHECK_OK(refuse_torchscript(zip, root));
  if (const ZipEntry* order = zip.find(root + "byteorder")) {
    FERRY_TRY(text, read_entry(zip, *order, 64));
    if (text.text() != "little") {
      return error(Code::kUnsupported,
                   "the weights were saved on a machine with '{}' byte order; save the checkpoint "
                   "again on a little-endian one",
                   text.text());
    }
  }
  const ZipEntry& entry = *zip.find(root + "data.pkl");
  FERRY_TRY(bytes, read_entry(zip, entry, kPickleLimit));
  if (!checksum_matches(entry, bytes)) {
    checkpoint.warnings_.push_back(
        fmt::format("The checksum of '{}' does not match: the file is damaged, or was written "
                    "without checksums.",
                    entry.name));
    checkpoint.warned_of_checksum_ = true;
  }
  FERRY_TRY(pickle, read_pickle(bytes).within(entry.name));
  checkpoint.pickle_ = std::move(pickle);
  return checkpoint;
}

// magic, protocol (1001), system info, object, list of keys; then for each key: element count,
// elements.
Result<Checkpoint> Checkpoint::open_stream(Bytes file) {
  Checkpoint checkpoint;
  checkpoint.layout_ = "PyTorch legacy checkpoint";
  checkpoint.is_stream_ = true;
  checkpoint.file_ = file;
  size_t at = 0;
  Pickle parts[5];
  constexpr std::string_view kParts[] = {"magic number", "protocol version", "system info",
                                         "object", "list of storages"};
  for (size_t i = 0; i < 5; ++i) {
    const Bytes rest{file.owner, file.span.subspan(at)};
    const PickleLimits limits{.bytes = SIZE_MAX};
    FERRY_TRY(part, read_pickle(rest, limits)
                        .within(fmt::format("legacy checkpoint: {} (is the file cut short?)",
                                            kParts[i])));
    at += part.consumed;
    parts[i] = std::move(part);
  }
  if (parts[1].root->kind != Kind::kInt || parts[1].root->integer != 1001) {
    return error(Code::kUnsupported, "legacy checkpoint of protocol {}; 1001 is known",
                 describe(*parts[1].root));
  }
  const Value* little = find(*parts[2].root, "little_endian");
  if (little != nullptr && as_bool(little) == std::optional(false)) {
    return error(Code::kUnsupported,
                 "the weights were saved on a big-endian machine; save the checkpoint again on a "
                 "little-endian one");
  }
  checkpoint.pickle_ = std::move(parts[3]);

  std::map<std::string_view, StorageName> names;
  for (const Value& value : checkpoint.pickle_.arena->values) {
    FERRY_TRY(name, storage_name(value));
    if (name) names.emplace(name->key, *name);
  }
  for (const Value* key : parts[4].root->items) {
    const auto name = key->is_string() ? names.find(key->text) : names.end();
    if (name == names.end())
      return error(Code::kInvalid, "legacy checkpoint: storage {} belongs to no tensor",
                   describe(*key));
    const auto width = static_cast<uint64_t>(graph::dtype_size(name->second.dtype));
    const uint64_t size = static_cast<uint64_t>(name->second.elements) * width;
    const uint64_t left = file.span.size() - at;
    if (left < 8 || left - 8 < size) {
      uint64_t whole = 0;
      for (const auto& [k, n] : names)
        whole += 8 + static_cast<uint64_t>(n.elements) *
                         static_cast<uint64_t>(graph::dtype_size(n.dtype));
      for (const auto& [k, b] : checkpoint.unpacked_) whole -= 8 + b.span.size();
      return error(
          Code::kInvalid,
          "the file is cut short: {} bytes are here, {} did not arrive. Download or copy it again",
          file.span.size(), whole - left);
    }
    uint64_t declared = 0;
    for (size_t i = 8; i-- > 0;)
      declared = declared << 8 | static_cast<uint64_t>(file.span[at + i]);
    if (declared != static_cast<uint64_t>(name->second.elements)) {
      return error(Code::kInvalid,
                   "legacy checkpoint: storage '{}' has {} elements, its tensors say {}",
                   name->first, declared, name->second.elements);
    }
    checkpoint.unpacked_[std::string(name->first)] =
        Bytes{file.owner, file.span.subspan(at + 8, size)};
    at += 8 + size;
  }
  return checkpoint;
}

Result<Bytes> Checkpoint::storage(const StorageName& name) {
  const uint64_t size =
      static_cast<uint64_t>(name.elements) * static_cast<uint64_t>(graph::dtype_size(name.dtype));
  auto known = unpacked_.find(name.key);
  if (known == unpacked_.end() && !is_stream_) {
    const std::string path = fmt::format("{}data/{}", root_folder_, name.key);
    const ZipEntry* entry = archive_.find(path);
    if (entry == nullptr)
      return error(Code::kInvalid, "the archive has no '{}', which a tensor names", path);
    if (entry->size != size) {
      return error(Code::kInvalid, "'{}' has {} bytes, its tensors say {}", path, entry->size,
                   size);
    }
    FERRY_TRY(bytes,
              read_entry(archive_, *entry, entry->deflated ? unpack_budget_ : kStorageLimit));
    if (entry->deflated) unpack_budget_ -= entry->size;
    if (!warned_of_checksum_ && !checksum_matches(*entry, bytes)) {
      warnings_.push_back(
          fmt::format("The checksum of '{}' does not match: the file is damaged, or was written "
                      "without checksums.",
                      path));
      warned_of_checksum_ = true;
    }
    known = unpacked_.emplace(std::string(name.key), std::move(bytes)).first;
  }
  if (known == unpacked_.end()) return error(Code::kInvalid, "storage '{}' is missing", name.key);
  if (known->second.span.size() != size) {
    return error(Code::kInvalid, "storage '{}' has {} bytes, a tensor says {}", name.key,
                 known->second.span.size(), size);
  }
  return known->second;
}

}  // namespace ferry::import::torch

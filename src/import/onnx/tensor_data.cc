#include "import/onnx/tensor_data.h"

#include <charconv>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace ferry::import::onnx {
namespace {

using graph::DType;
using graph::TensorType;

// How one element lies in raw data.
struct Stored {
  DType dtype;
  int64_t size;
};

std::optional<Stored> stored_as(int64_t onnx_type) {
  switch (onnx_type) {
    case kOnnxFloat:
      return Stored{DType::kF32, 4};
    case kOnnxFloat16:
      return Stored{DType::kF16, 2};
    case kOnnxBfloat16:
      return Stored{DType::kBf16, 2};
    case kOnnxDouble:
      return Stored{DType::kF64, 8};
    case kOnnxUint8:
      return Stored{DType::kU8, 1};
    case kOnnxInt8:
      return Stored{DType::kI8, 1};
    case kOnnxUint16:
      return Stored{DType::kU16, 2};
    case kOnnxInt16:
      return Stored{DType::kI16, 2};
    case kOnnxInt32:
      return Stored{DType::kI32, 4};
    case kOnnxInt64:
      return Stored{DType::kI64, 8};
    case kOnnxBool:
      return Stored{DType::kBool, 1};
    case kOnnxUint32:
      return Stored{DType::kI32, 4};  // widened by hand, see wide_unsigned
    case kOnnxUint64:
      return Stored{DType::kI64, 8};
  }
  return std::nullopt;
}

Result<graph::Tensor> wide_unsigned(const TensorType& type, int64_t onnx_type, ByteSpan bytes) {
  FERRY_TRY(out, graph::Tensor::make(type));
  auto values = out.mut<int64_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    if (onnx_type == kOnnxUint32) {
      uint32_t value = 0;
      std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
      values[i] = value;
    } else {
      std::memcpy(&values[i], bytes.data() + i * sizeof values[i], sizeof values[i]);
      if (values[i] < 0) return error(Code::kUnsupported, "holds a uint64 above 2^63");
    }
  }
  return out;
}

Result<uint64_t> parse_offset(std::string_view key, std::string_view text) {
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) {
    return error(Code::kInvalid, "external data: {} '{}' is not a number", key, text.substr(0, 40));
  }
  return value;
}

// The path of external data, which must be relative and stay inside the model's folder even when
// symbolic links are followed.
Result<std::string> resolve(const std::string& folder, std::string_view location) {
  namespace fs = std::filesystem;
  const std::string_view shown = location.substr(0, 200);
  if (location.empty() || location.find('\0') != std::string_view::npos) {
    return error(Code::kInvalid, "external data: the location is empty or broken");
  }
  if (folder.empty()) {
    return error(Code::kUnsupported,
                 "its data lies in another file ('{}'), which a model given as bytes cannot reach: "
                 "open the model by its path",
                 shown);
  }
  const fs::path relative(location);
  bool inside = !relative.is_absolute();
  for (const fs::path& part : relative) inside = inside && part != "..";
  if (inside) {
    std::error_code failed;
    const fs::path root = fs::canonical(folder, failed);
    if (failed) return error(Code::kIo, "external data: cannot open the folder '{}'", folder);
    const fs::path full = fs::canonical(root / relative, failed);
    if (failed) {
      return error(
          Code::kNotFound,
          "its data should lie in '{}' beside the model, which cannot be opened ({}): copy "
          "that file there too",
          shown, failed.message());
    }
    const auto [at, rest] = std::mismatch(root.begin(), root.end(), full.begin(), full.end());
    if (at == root.end() && rest != full.end()) return full.string();
  }
  return error(Code::kInvalid, "external data: '{}' leads out of the model's folder, refused",
               shown);
}

}  // namespace

Result<graph::Tensor> TensorSource::tensor(const Tensor& proto) {
  const std::string where = fmt::format("initializer '{}'", proto.name);
  auto result = [&]() -> Result<graph::Tensor> {
    FERRY_TRY(dtype, computed_dtype(proto.data_type));
    const TensorType type{dtype, proto.dims};
    FERRY_CHECK_OK(graph::check_shape(type.shape, DType::kF64));
    if (proto.external) {
      FERRY_TRY(data,
                external(proto, graph::elements(type.shape) * stored_as(proto.data_type)->size));
      return from_raw(type, proto.data_type, std::move(data));
    }
    if (proto.raw) return from_raw(type, proto.data_type, {*proto.raw, owner_});
    return from_typed(type, proto);
  }();
  return std::move(result).within(where);
}

Result<graph::Tensor> TensorSource::from_raw(const TensorType& type, int64_t onnx_type,
                                             Located data) {
  const Stored stored = *stored_as(onnx_type);
  const int64_t size = graph::elements(type.shape) * stored.size;
  if (static_cast<int64_t>(data.bytes.size()) != size) {
    return error(Code::kInvalid, "holds {} bytes, {}{} needs {}", data.bytes.size(),
                 onnx_type_name(onnx_type), graph::shape_text(type.shape), size);
  }
  if (onnx_type == kOnnxUint32 || onnx_type == kOnnxUint64) {
    return wide_unsigned(type, onnx_type, data.bytes);
  }
  TensorType as_stored{stored.dtype, type.shape};
  const bool aligned =
      reinterpret_cast<uintptr_t>(data.bytes.data()) % static_cast<uintptr_t>(stored.size) == 0;
  graph::Tensor tensor;
  if (aligned && size > 0 && stored.dtype != DType::kBool) {
    tensor = graph::Tensor::view(std::move(as_stored), std::move(data.owner), data.bytes.data());
  } else {
    FERRY_TRY(copy, graph::Tensor::make(std::move(as_stored)));
    if (size > 0) std::memcpy(copy.mut_bytes().data(), data.bytes.data(), data.bytes.size());
    if (stored.dtype == DType::kBool) {  // any byte but zero is true; a C++ bool must be 0 or 1
      for (std::byte& b : copy.mut_bytes()) b = std::byte(b != std::byte(0) ? 1 : 0);
    }
    tensor = std::move(copy);
  }
  if (stored.dtype != type.dtype) converted_ += size;
  return tensor.cast(type.dtype);
}

Result<graph::Tensor> TensorSource::from_typed(const TensorType& type, const Tensor& proto) {
  const auto count = static_cast<size_t>(graph::elements(type.shape));
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<int64_t> ints;
  FieldReader fields(proto.message);
  while (fields.next()) {
    const Field& f = fields.field();
    switch (f.number) {
      case 4:
        FERRY_CHECK_OK(append_floats(f, count, floats));
        break;
      case 10:
        FERRY_CHECK_OK(append_doubles(f, count, doubles));
        break;
      case 5:
      case 7:
      case 11:
        FERRY_CHECK_OK(append_varints(f, count, ints));
        break;
    }
  }
  FERRY_CHECK_OK(fields.status());
  const bool is_float = proto.data_type == kOnnxFloat, is_double = proto.data_type == kOnnxDouble;
  const size_t found = is_float ? floats.size() : is_double ? doubles.size() : ints.size();
  if (found != count) {
    return error(Code::kInvalid, "holds {} elements, {}{} needs {}", found,
                 onnx_type_name(proto.data_type), graph::shape_text(type.shape), count);
  }
  if (is_float) return graph::Tensor::of<float>(type.shape, std::move(floats));
  if (is_double) return graph::Tensor::of<double>(type.shape, std::move(doubles)).cast(DType::kF32);

  // Everything else is kept as integers: halves by their bits.
  FERRY_TRY(out, graph::Tensor::make(type));
  const bool half = proto.data_type == kOnnxFloat16, bfloat = proto.data_type == kOnnxBfloat16;
  if (half || bfloat) {
    converted_ += static_cast<int64_t>(count) * 2;
    auto values = out.mut<float>();
    for (size_t i = 0; i < count; ++i) {
      const auto bits = static_cast<uint16_t>(ints[i]);
      values[i] = half ? graph::f16_to_f32(bits) : graph::bf16_to_f32(bits);
    }
    return out;
  }
  if (proto.data_type == kOnnxUint64) {
    for (const int64_t value : ints) {
      if (value < 0) return error(Code::kUnsupported, "holds a uint64 above 2^63");
    }
  }
  return graph::Tensor::of<int64_t>(type.shape, std::move(ints)).cast(type.dtype);
}

Result<TensorSource::Located> TensorSource::external(const Tensor& proto, int64_t size) {
  std::string_view location;
  uint64_t offset = 0;
  auto length = static_cast<uint64_t>(size);
  for (const auto& [key, value] : proto.external_entries) {
    if (key == "location") location = value;
    if (key != "offset" && key != "length") continue;
    FERRY_TRY(number, parse_offset(key, value));
    (key == "offset" ? offset : length) = number;
  }
  FERRY_TRY(path, resolve(folder_, location));
  auto& file = files_[path];
  if (file == nullptr) {
    FERRY_TRY(opened, MappedFile::open(path).within("external data"));
    file = std::move(opened);
  }
  const ByteSpan all = file->bytes();
  if (offset > all.size() || length > all.size() - offset) {
    return error(Code::kInvalid,
                 "external data: bytes {} to {} of '{}' are asked for, the file has {}: it is "
                 "truncated or belongs to another model",
                 offset, offset + length, location, all.size());
  }
  return Located{all.subspan(static_cast<size_t>(offset), static_cast<size_t>(length)), file};
}

}  // namespace ferry::import::onnx

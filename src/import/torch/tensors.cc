#include "import/torch/tensors.h"

#include <algorithm>
#include <cstring>

namespace ferry::import::torch {
namespace {

using graph::DType;
using graph::Shape;
using graph::Tensor;

struct DTypeRow {
  std::string_view name;
  DType dtype;
};
constexpr DTypeRow kDTypes[] = {
    {"float32", DType::kF32}, {"float", DType::kF32},     {"float16", DType::kF16},
    {"half", DType::kF16},    {"bfloat16", DType::kBf16}, {"float64", DType::kF64},
    {"double", DType::kF64},  {"int64", DType::kI64},     {"long", DType::kI64},
    {"int32", DType::kI32},   {"int", DType::kI32},       {"int16", DType::kI16},
    {"short", DType::kI16},   {"int8", DType::kI8},       {"uint16", DType::kU16},
    {"uint8", DType::kU8},    {"bool", DType::kBool},
};

// The integers of a shape or stride argument: a tuple, a list, or torch.Size(tuple).
Result<Shape> dimensions(const Value* value, std::string_view what) {
  if (value->kind == Kind::kCall && class_name(*value) == "torch.Size" &&
      value->args->is_sequence() && value->args->items.size() == 1) {
    value = value->args->items[0];
  }
  Shape shape;
  if (!value->is_sequence())
    return error(Code::kInvalid, "a tensor's {} is {}", what, describe(*value));
  for (const Value* item : value->items) {
    if (item->kind != Kind::kInt || item->integer < 0) {
      return error(Code::kInvalid, "a tensor's {} contains {}", what, describe(*item));
    }
    shape.push_back(item->integer);
  }
  return shape;
}

bool is_contiguous(const Shape& shape, const Shape& strides) {
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

// One past the last element that the view touches, or an error when that overflows.
Result<int64_t> extent(int64_t offset, const Shape& shape, const Shape& strides) {
  int64_t last = offset;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return offset;
    int64_t step = 0;
    if (__builtin_mul_overflow(shape[i] - 1, strides[i], &step) ||
        __builtin_add_overflow(last, step, &last)) {
      return error(Code::kInvalid, "a tensor of shape {} has strides {} that overflow",
                   graph::shape_text(shape), graph::shape_text(strides));
    }
  }
  if (last == INT64_MAX) return error(Code::kInvalid, "a tensor's offset overflows");
  return last + 1;
}

// Copies a strided view into row-major order. REQUIRES: every element lies inside `from`.
void copy_strided(const std::byte* from, const Shape& shape, const Shape& strides, size_t width,
                  std::byte* to) {
  const int64_t n = graph::elements(shape);
  Shape at(shape.size(), 0);
  uint64_t offset = 0;  // unsigned: a step past the last element may wrap before it is taken back
  for (int64_t i = 0; i < n; ++i, to += width) {
    std::memcpy(to, from + offset * width, width);
    for (size_t d = shape.size(); d-- > 0;) {
      const auto stride = static_cast<uint64_t>(strides[d]);
      offset += stride;
      if (++at[d] < shape[d]) break;
      offset -= stride * static_cast<uint64_t>(shape[d]);
      at[d] = 0;
    }
  }
}

enum class Rebuild { kNone, kTensor, kTensorV3, kWrapped, kFromType };

// What the callable's last name says; the module it lives in has moved between releases.
Rebuild rebuild_kind(const Value& value) {
  if (value.kind != Kind::kCall || !value.args->is_sequence()) return Rebuild::kNone;
  const std::string_view name = class_name(value);
  if (!name.starts_with("torch.")) return Rebuild::kNone;
  const std::string_view last = short_name(name);
  if (last == "_rebuild_tensor" || last == "_rebuild_tensor_v2") return Rebuild::kTensor;
  if (last == "_rebuild_tensor_v3") return Rebuild::kTensorV3;
  if (last == "_rebuild_parameter" || last == "_rebuild_parameter_with_state" ||
      name == "torch.nn.parameter.Parameter") {
    return Rebuild::kWrapped;
  }
  if (last == "_rebuild_from_type" || last == "_rebuild_from_type_v2") return Rebuild::kFromType;
  return Rebuild::kNone;
}

}  // namespace

bool is_tensor(const Value& value) {
  return rebuild_kind(value) != Rebuild::kNone ||
         (value.kind == Kind::kCall && class_name(value).starts_with("torch._utils._rebuild"));
}

TensorReader::TensorReader(Checkpoint& checkpoint)
    : checkpoint_(checkpoint),
      budget_((int64_t{64} << 20) + 4 * static_cast<int64_t>(checkpoint.file_size())) {}

Result<Tensor> TensorReader::read(const Value& value) {
  if (const auto it = known_.find(&value); it != known_.end()) return it->second;
  FERRY_TRY(tensor, rebuild(value, 0));
  known_.emplace(&value, tensor);
  return tensor;
}

Result<Tensor> TensorReader::rebuild(const Value& call, int depth) {
  if (depth > 8) return error(Code::kInvalid, "a tensor is wrapped too often");
  const Rebuild kind = rebuild_kind(call);
  const std::vector<const Value*>& args = kind == Rebuild::kNone ? call.items : call.args->items;
  switch (kind) {
    case Rebuild::kNone:
      return error(Code::kUnsupported, "a tensor is made by {}, which ferry does not know",
                   describe(call));
    case Rebuild::kTensor:
      return gather(call, false);
    case Rebuild::kTensorV3:
      return gather(call, true);
    case Rebuild::kWrapped:
      if (args.empty()) return error(Code::kInvalid, "a parameter without data");
      return rebuild(*args[0], depth + 1);
    case Rebuild::kFromType: {  // func, type, args, state
      if (args.size() < 3)
        return error(Code::kInvalid, "{} has {} arguments, needs 3", describe(call), args.size());
      Value inner;
      inner.kind = Kind::kCall;
      inner.callable = args[0];
      inner.args = args[2];
      return rebuild(inner, depth + 1);
    }
  }
  return error(Code::kBug, "unknown kind of tensor");
}

Result<Tensor> TensorReader::gather(const Value& call, bool typed_by_argument) {
  const auto& args = call.args->items;
  const size_t needed = typed_by_argument ? 7 : 4;
  if (args.size() < needed)
    return error(Code::kInvalid, "{} has {} arguments, needs {}", describe(call), args.size(),
                 needed);
  FERRY_TRY(name, storage_name(*args[0]));
  if (!name) return error(Code::kInvalid, "a tensor's storage is {}", describe(*args[0]));
  FERRY_TRY(shape, dimensions(args[2], "shape"));
  FERRY_TRY(strides, dimensions(args[3], "strides"));
  const auto offset = as_int(args[1]);
  if (!offset || *offset < 0 || strides.size() != shape.size()) {
    return error(Code::kInvalid, "a tensor of shape {} has offset {} and {} strides",
                 graph::shape_text(shape), describe(*args[1]), strides.size());
  }
  DType dtype = name->dtype;
  if (typed_by_argument) {
    const std::string_view type = short_name(class_name(*args[6]));
    const auto row = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                  [&](const DTypeRow& r) { return r.name == type; });
    if (row == std::end(kDTypes))
      return error(Code::kUnsupported, "a tensor of type '{}'", class_name(*args[6]));
    dtype = row->dtype;
  } else if (name->untyped) {
    return error(Code::kUnsupported, "a tensor of an untyped storage that does not say its type");
  }
  FERRY_CHECK_OK(graph::check_shape(shape, dtype));
  FERRY_TRY(bytes, checkpoint_.storage(*name));

  const int64_t width = graph::dtype_size(dtype);
  int64_t first = *offset;
  if (__builtin_add_overflow(first, name->view_offset, &first))
    return error(Code::kInvalid, "a tensor's offset overflows");
  FERRY_TRY(end, extent(first, shape, strides));
  const auto held = static_cast<int64_t>(bytes.span.size()) / width;
  if (end > held) {
    return error(Code::kInvalid,
                 "a tensor of shape {} reaches element {} of storage '{}', which has {}",
                 graph::shape_text(shape), end, name->key, held);
  }
  const graph::TensorType type{dtype, shape};
  const std::byte* data = bytes.span.data() + first * width;
  const bool aligned = reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(width) == 0;
  if (aligned && is_contiguous(shape, strides)) return Tensor::view(type, bytes.owner, data);

  budget_ -= graph::elements(shape) * width;
  if (budget_ < 0) {
    return error(Code::kNoMemory,
                 "the file's tensors are views that unpack to many times its length");
  }
  FERRY_TRY(copy, Tensor::make(type));
  copy_strided(data, shape, strides, static_cast<size_t>(width), copy.mut_bytes().data());
  return copy;
}

}  // namespace ferry::import::torch

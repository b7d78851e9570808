#include "import/onnx/inputs.h"

#include <algorithm>

namespace ferry::import::onnx {
namespace {

constexpr int64_t kDefaultSize = 640;
constexpr double kLargestSize = 1 << 16;

bool is_dynamic(const Dimension& dim) { return !dim.value || *dim.value == -1; }

std::string dims_text(const std::vector<Dimension>& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    text += i ? "," : "";
    text += !is_dynamic(dims[i])     ? std::to_string(*dims[i].value)
            : dims[i].symbol.empty() ? "?"
                                     : std::string(dims[i].symbol.substr(0, 40));
  }
  return text + "]";
}

int64_t size_or(int64_t wanted, const std::vector<double>& exported_size, size_t axis) {
  if (wanted > 0) return wanted;
  if (exported_size.empty()) return kDefaultSize;
  const double size = exported_size[std::min(axis, exported_size.size() - 1)];
  return size >= 1 && size <= kLargestSize ? static_cast<int64_t>(size) : kDefaultSize;
}

Result<BoundInput> bind(const ValueInfo& input, const ImportOptions& options,
                        const std::vector<double>& exported_size) {
  if (!input.is_tensor) {
    return error(Code::kUnsupported, "is no tensor (a sequence, map or optional)");
  }
  FERRY_TRY(dtype, computed_dtype(input.elem_type));
  if (!input.shape) return error(Code::kUnsupported, "has no shape: export the model with one");

  const std::vector<Dimension>& dims = *input.shape;
  BoundInput bound;
  bound.type.dtype = dtype;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t dim = dims[i].value.value_or(-1);
    if (is_dynamic(dims[i])) {
      if (dims.size() != 4) {
        return error(
            Code::kUnsupported,
            "is {}: dynamic axes can be bound for pictures [batch, channels, height, width] "
            "only; export the model with static shapes",
            dims_text(dims));
      }
      dim = i == 0   ? options.batch
            : i == 1 ? 3
                     : size_or(i == 2 ? options.height : options.width, exported_size, i - 2);
      if (i == 0) bound.dynamic_batch = true;
      if (i >= 2) bound.dynamic_size = true;
    }
    if (dim <= 0) {
      return error(Code::kInvalid, "is {}: every dimension must be positive", dims_text(dims));
    }
    bound.type.shape.push_back(dim);
  }
  FERRY_CHECK_OK(graph::check_shape(bound.type.shape, dtype));
  return bound;
}

}  // namespace

Result<BoundInput> bind_input(const ValueInfo& input, const ImportOptions& options,
                              const std::vector<double>& exported_size) {
  return bind(input, options, exported_size)
      .within(fmt::format("input '{}'", input.name.substr(0, 200)));
}

}  // namespace ferry::import::onnx

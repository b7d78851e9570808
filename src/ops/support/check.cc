#include "ops/support/check.h"

#include <algorithm>
#include <limits>

namespace ferry::ops {

using namespace graph;

Result<Types> one_output(DType dtype, Shape shape) {
  FERRY_CHECK_OK(check_shape(shape, dtype));
  return Types{{dtype, std::move(shape)}};
}

Status need_f32(const InferArgs& args) {
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    const TensorType* type = args.inputs[i];
    if (type != nullptr && type->dtype != DType::kF32) {
      return error(Code::kUnsupported, "input {} is {}, needs f32", i, type_text(*type));
    }
  }
  return {};
}

Status need_same_dtype(const InferArgs& args) {
  const TensorType* first = nullptr;
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    const TensorType* type = args.inputs[i];
    if (type == nullptr) continue;
    if (first == nullptr) first = type;
    if (type->dtype != first->dtype) {
      return error(Code::kInvalid, "input {} is {}, the first is {}", i, type_text(*type),
                   type_text(*first));
    }
  }
  return {};
}

Status need_rank(const InferArgs& args, size_t input, size_t rank, std::string_view what) {
  const Shape& shape = args.inputs[input]->shape;
  if (shape.size() == rank) return {};
  return error(Code::kInvalid, "{} is {}, needs {} dimensions", what, shape_text(shape), rank);
}

Status need_shape(const InferArgs& args, size_t i, const Shape& shape, std::string_view what) {
  const TensorType* type = input_or_null(args, i);
  if (type == nullptr || type->shape == shape) return {};
  return error(Code::kInvalid, "{} is {}, needs {}", what, shape_text(type->shape),
               shape_text(shape));
}

Result<size_t> axis_of(int64_t axis, size_t rank) {
  const auto count = static_cast<int64_t>(rank);
  if (axis < -count || axis >= count) {
    return error(Code::kInvalid, "axis {} of a tensor with {} dimensions", axis, rank);
  }
  return static_cast<size_t>(axis < 0 ? axis + count : axis);
}

Result<std::vector<size_t>> axes_of(const Ints& axes, size_t rank) {
  std::vector<size_t> out;
  if (axes.size() > rank) {
    return error(Code::kInvalid, "{} axes of a tensor with {} dimensions", axes.size(), rank);
  }
  if (rank > 64) return error(Code::kUnsupported, "{} dimensions, at most 8 are supported", rank);
  for (const int64_t axis : axes) {
    FERRY_TRY(index, axis_of(axis, rank));
    if (std::find(out.begin(), out.end(), index) != out.end()) {
      return error(Code::kInvalid, "axes {} name an axis twice", shape_text(axes));
    }
    out.push_back(index);
  }
  std::sort(out.begin(), out.end());
  return out;
}

int64_t saturating_product(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::numeric_limits<int64_t>::max();
  return product;
}

int64_t output_elements(const InferArgs& args) {
  const auto types = args.node.op->infer(args);
  return types.ok() ? elements((*types)[0].shape) : 0;
}

}  // namespace ferry::ops

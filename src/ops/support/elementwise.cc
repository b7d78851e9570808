#include "ops/support/elementwise.h"

namespace ferry::ops {

using namespace graph;

namespace {

Result<Types> infer_broadcast(const InferArgs& args, DType out) {
  FERRY_CHECK_OK(need_same_dtype(args));
  Shape shape = args.inputs[0]->shape;
  for (size_t i = 1; i < args.inputs.size(); ++i) {
    if (args.inputs[i] == nullptr) return error(Code::kInvalid, "input {} is absent", i);
    FERRY_TRY(wider, broadcast(shape, args.inputs[i]->shape));
    shape = std::move(wider);
  }
  return one_output(out, std::move(shape));
}

Status need_number(const TensorType& type) {
  if (is_number(type.dtype)) return {};
  return error(Code::kUnsupported, "cannot calculate with {}, needs f32, f64 or integers",
               type_text(type));
}

}  // namespace

Result<Types> infer_arithmetic(const InferArgs& args) {
  FERRY_CHECK_OK(need_number(*args.inputs[0]));
  return infer_broadcast(args, args.inputs[0]->dtype);
}

Result<Types> infer_comparison(const InferArgs& args) {
  if (args.inputs[0]->dtype != DType::kBool) FERRY_CHECK_OK(need_number(*args.inputs[0]));
  return infer_broadcast(args, DType::kBool);
}

Result<Types> infer_logic(const InferArgs& args) {
  if (args.inputs[0]->dtype != DType::kBool) {
    return error(Code::kInvalid, "input is {}, needs bool", type_text(*args.inputs[0]));
  }
  return infer_broadcast(args, DType::kBool);
}

Result<Types> infer_f32_map(const InferArgs& args) {
  FERRY_CHECK_OK(need_f32(args));
  return one_output(DType::kF32, args.inputs[0]->shape);
}

Result<Types> infer_number_map(const InferArgs& args) {
  FERRY_CHECK_OK(need_number(*args.inputs[0]));
  return one_output(args.inputs[0]->dtype, args.inputs[0]->shape);
}

}  // namespace ferry::ops

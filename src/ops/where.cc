// where: a where the condition holds, else b, under broadcasting.
#include <cstring>

#include "ops/support/check.h"
#include "ops/support/dtypes.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

constexpr size_t kCondition = 0, kA = 1, kB = 2;

Result<Types> infer(const InferArgs& args) {
  if (args.inputs[kCondition]->dtype != DType::kBool) {
    return error(Code::kInvalid, "condition is {}, needs bool",
                 type_text(*args.inputs[kCondition]));
  }
  if (args.inputs[kA]->dtype != args.inputs[kB]->dtype) {
    return error(Code::kInvalid, "chooses between {} and {}", type_text(*args.inputs[kA]),
                 type_text(*args.inputs[kB]));
  }
  FERRY_TRY(both, broadcast(args.inputs[kA]->shape, args.inputs[kB]->shape));
  FERRY_TRY(shape, broadcast(args.inputs[kCondition]->shape, both));
  return one_output(args.inputs[kA]->dtype, std::move(shape));
}

Status eval(const EvalArgs& args) {
  Tensor& output = *args.outputs[0];
  const auto condition = bool_bytes(*args.inputs[kCondition]);
  const std::byte* a = args.inputs[kA]->bytes().data();
  const std::byte* b = args.inputs[kB]->bytes().data();
  std::byte* y = output.mut_bytes().data();
  const int64_t size = dtype_size(output.dtype());
  std::array<Shape, 3> strides;
  for (size_t i = 0; i < 3; ++i) {
    strides[i] = broadcast_strides(args.inputs[i]->shape(), output.shape());
  }
  walk<3>(output.shape(), strides, [&](int64_t i, const auto& at) {
    const bool first = condition[static_cast<size_t>(at[kCondition])] != 0;
    const std::byte* from = first ? a + at[kA] * size : b + at[kB] * size;
    std::memcpy(y + i * size, from, static_cast<size_t>(size));
  });
  return {};
}

const OnnxRow kOnnx[] = {{"Where"}};

const OpCase kCases[] = {
    {R"(graph {
      input a: f32[2,3,4]
      const zero: f32[] = {0}
      positive = greater(a, zero)
      y = where(positive, a, zero)
      output y
    })"},
};

}  // namespace

extern const OpDef op_where;
const OpDef op_where = {
    .name = "where",
    .summary = "a where the condition holds, else b",
    .min_inputs = 3,
    .max_inputs = 3,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

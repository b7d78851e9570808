// pow: base to the power of exponent under broadcasting. The exponent may have another type than
// the base; the output has the base's. Calculated in f64.
#include <cmath>

#include "ops/support/check.h"
#include "ops/support/dtypes.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

Result<Types> infer(const InferArgs& args) {
  for (const TensorType* type : args.inputs) {
    if (!is_number(type->dtype)) {
      return error(Code::kUnsupported, "cannot calculate with {}", type_text(*type));
    }
  }
  FERRY_TRY(shape, broadcast(args.inputs[0]->shape, args.inputs[1]->shape));
  return one_output(args.inputs[0]->dtype, std::move(shape));
}

Status eval(const EvalArgs& args) {
  FERRY_TRY(base, args.inputs[0]->cast(DType::kF64));
  FERRY_TRY(exponent, args.inputs[1]->cast(DType::kF64));
  Tensor& output = *args.outputs[0];
  const auto bases = base.as<double>();
  const auto exponents = exponent.as<double>();
  FERRY_TRY(result, Tensor::make({DType::kF64, output.shape()}));
  const auto results = result.mut<double>();
  walk<2>(output.shape(),
          {broadcast_strides(base.shape(), output.shape()),
           broadcast_strides(exponent.shape(), output.shape())},
          [&](int64_t i, const auto& at) {
            results[static_cast<size_t>(i)] =
                std::pow(bases[static_cast<size_t>(at[0])], exponents[static_cast<size_t>(at[1])]);
          });
  FERRY_TRY(converted, result.cast(output.dtype()));
  copy_all(converted, output);
  return {};
}

const OnnxRow kOnnx[] = {{"Pow"}};

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,4,5]
      const two: f32[] = {2}
      y = pow(x, two)
      output y
    })"},
    {R"(graph {
      input x: f32[2,3]
      const three: i64[1] = {3}
      y = pow(x, three)
      output y
    })"},
};

}  // namespace

extern const OpDef op_pow;
const OpDef op_pow = {
    .name = "pow",
    .summary = "base to the power of exponent with broadcasting",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

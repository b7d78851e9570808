// range: start, start + delta, … as long as it has not reached limit. The three must be constants
// of one type.
#include <cmath>

#include "ops/support/check.h"
#include "ops/support/dtypes.h"
#include "ops/support/onnx_form.h"

namespace ferry::ops {

using namespace graph;

namespace {

Result<Types> infer(const InferArgs& args) {
  FERRY_CHECK_OK(need_same_dtype(args));
  const DType dtype = args.inputs[0]->dtype;
  for (size_t i = 0; i < 3; ++i) {
    if (elements(args.inputs[i]->shape) != 1) {
      return error(Code::kInvalid, "input {} is {}, needs one number", i,
                   type_text(*args.inputs[i]));
    }
    if (args.constants[i] == nullptr) {
      return error(Code::kUnsupported,
                   "input {} must be constant; it is computed while the model runs", i);
    }
  }
  double count = 0;
  FERRY_CHECK_OK(with_number(dtype, [&]<class T>() -> Status {
    const auto at = [&](size_t i) {
      return static_cast<long double>(args.constants[i]->as<T>()[0]);
    };
    if (at(2) == 0) return error(Code::kInvalid, "delta is 0");
    count = static_cast<double>(std::ceil((at(1) - at(0)) / at(2)));
    return {};
  }));
  if (std::isnan(count) || count > static_cast<double>(kMaxTensorBytes)) {
    return error(Code::kInvalid, "would have {} elements", count);
  }
  return one_output(dtype, {count > 0 ? static_cast<int64_t>(count) : 0});
}

Status eval(const EvalArgs& args) {
  return with_number(args.outputs[0]->dtype(), [&]<class T>() -> Status {
    const T start = args.inputs[0]->as<T>()[0], delta = args.inputs[2]->as<T>()[0];
    const auto y = args.outputs[0]->mut<T>();
    for (size_t i = 0; i < y.size(); ++i) {
      if constexpr (std::is_integral_v<T>) {
        y[i] = wrapping<T>(static_cast<uint64_t>(start) + i * static_cast<uint64_t>(delta));
      } else {
        y[i] = start + static_cast<T>(i) * delta;
      }
    }
    return {};
  });
}

const OnnxRow kOnnx[] = {{"Range"}};

Status to_onnx(OnnxForm& form) {
  if (form.type(0).dtype == DType::kF32) form.compute_in_f32();  // there is no Range of f16
  return write_as(form, "Range");
}

const OpCase kCases[] = {
    {R"(graph {
      const start: i64[] = {3}
      const limit: i64[] = {-4}
      const delta: i64[] = {-2}
      y = range(start, limit, delta)
      output y
    })"},
};

}  // namespace

extern const OpDef op_range;
const OpDef op_range = {
    .name = "range",
    .summary = "start, start + delta, … up to (not with) limit",
    .min_inputs = 3,
    .max_inputs = 3,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

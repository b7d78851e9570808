// clip: min(max(x, low), high). ONNX Clip with constant bounds; relu and relu6 where those are the
// bounds.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/support/elementwise.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"

namespace ferry::ops {

using namespace graph;

namespace {

constexpr double kLowest = std::numeric_limits<float>::lowest();
constexpr double kHighest = std::numeric_limits<float>::max();

const AttrDef kAttrs[] = {
    {"low", kLowest, "lower bound"},
    {"high", kHighest, "upper bound; wins when it lies below the lower one"},
};

// A bound as the tensor's type has it: integers saturate.
template <class T>
T bound(double value) {
  if constexpr (std::is_integral_v<T>) {
    if (std::isnan(value)) return 0;
    if (value <= static_cast<double>(std::numeric_limits<T>::min()))
      return std::numeric_limits<T>::min();
    if (value >= static_cast<double>(std::numeric_limits<T>::max()))
      return std::numeric_limits<T>::max();
  }
  return static_cast<T>(value);
}

Status eval(const EvalArgs& args) {
  const double low = attr<double>(args.node, "low"), high = attr<double>(args.node, "high");
  // For floats and for integers up to 2^53 the comparison in f64 is exact.
  return eval_number_map(args, [=]<class T>(T x) {
    const auto wide = static_cast<double>(x);
    if (wide > high) return bound<T>(high);
    return wide < low ? bound<T>(std::min(low, high)) : x;
  });
}

Result<double> bound_of(const ForeignNode& node, std::string_view name, size_t input,
                        double fallback) {
  if (!has_input(node, input)) return node.float_or(name, fallback);
  FERRY_TRY(values, need_floats(node, input));
  if (values.size() != 1) return error(Code::kInvalid, "{} has {} numbers", name, values.size());
  return values[0];
}

// Opset 6 has attributes, later ones inputs.
Result<Converted> from_onnx(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 1, 3));
  FERRY_TRY(low, bound_of(node, "min", 1, kLowest));
  FERRY_TRY(high, bound_of(node, "max", 2, kHighest));
  if (low == 0 && node.inputs[0]->dtype == DType::kF32 && (high == 6 || high >= kHighest)) {
    Converted out = with_inputs(node, 1);
    out.op = high == 6 ? "relu6" : "relu";
    return out;
  }
  return with_inputs(node, 1, {{"low", low}, {"high", high}});
}

const OnnxRow kOnnx[] = {{"Clip", from_onnx}};

Status to_onnx(OnnxForm& form) {
  std::vector<Ref> inputs = {form.input(0), kNone, kNone};
  const double bounds[] = {attr<double>(form.node(), "low"), attr<double>(form.node(), "high")};
  for (size_t i = 0; i < 2; ++i) {
    if (bounds[i] == (i == 0 ? kLowest : kHighest)) continue;
    FERRY_TRY(number, Tensor::scalar(bounds[i]).cast(form.type(0).dtype));
    inputs[1 + i] = form.constant(std::move(number));
  }
  while (inputs.back() == kNone) inputs.pop_back();
  form.add("Clip", std::move(inputs));
  return {};
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,4]
      y = clip(x) low=-0.5 high=0.25
      output y
    })"},
};

}  // namespace

extern const OpDef op_clip;
const OpDef op_clip = {
    .name = "clip",
    .summary = "min(max(x, low), high)",
    .attrs = kAttrs,
    .infer = infer_number_map,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

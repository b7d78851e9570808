// mod: remainder of a / b under broadcasting. Integers: with the sign of b (as Python's %), or with
// `fmod` the sign of a; an integer zero as divisor is an error. Floats: C's fmod.
#include <cmath>

#include "ops/support/elementwise.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {{"fmod", int64_t{0}, "1: the remainder has the sign of a"}};

Result<Types> infer(const InferArgs& args) {
  const bool fmod = attr<int64_t>(args.node, "fmod") != 0;
  if (!fmod && is_float(args.inputs[0]->dtype)) {
    return error(Code::kInvalid, "floating input {} needs fmod=1", type_text(*args.inputs[0]));
  }
  return infer_arithmetic(args);
}

Status eval(const EvalArgs& args) {
  const bool fmod = attr<int64_t>(args.node, "fmod") != 0;
  bool divided_by_zero = false;
  FERRY_CHECK_OK(eval_arithmetic(args, [&]<class T>(T a, T b) -> T {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) {
        divided_by_zero = true;
        return 0;
      }
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;  // INT_MIN % -1 is undefined
      const T rest = static_cast<T>(a % b);
      return !fmod && rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
    } else {
      return std::fmod(a, b);
    }
  }));
  if (divided_by_zero) return error(Code::kInvalid, "division by zero");
  return {};
}

Result<Converted> from_onnx(const ForeignNode& node) {
  return with_inputs(node, 2, {{"fmod", node.int_or("fmod", 0)}});
}

const OnnxRow kOnnx[] = {{"Mod", from_onnx}};

Status to_onnx(OnnxForm& form) {
  return write_as(form, "Mod", {{"fmod", attr<int64_t>(form.node(), "fmod")}});
}

const OpCase kCases[] = {
    {R"(graph {
      const a: i64[6] = {-7, 7, -7, 7, 6, 0}
      const b: i64[6] = {3, 3, -3, -3, 3, 5}
      y = mod(a, b)
      output y
    })"},
};

}  // namespace

extern const OpDef op_mod;
const OpDef op_mod = {
    .name = "mod",
    .summary = "remainder of a / b with broadcasting",
    .min_inputs = 2,
    .max_inputs = 2,
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

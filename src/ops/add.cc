// add: a + b under broadcasting, then the activation that a pass may have fused in.
#include "ops/support/activation.h"
#include "ops/support/elementwise.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {
    {"activation", std::string("none"),
     "applied to the sum: none, or the name of an activation op"},
    {"alpha", 0.0, "the activation's parameter, where it has one"},
};

Result<Types> infer(const InferArgs& args) {
  const std::string& name = attr<std::string>(args.node, "activation");
  FERRY_CHECK_OK(find_activation(name));
  if (name != "none") FERRY_CHECK_OK(need_f32(args));
  return infer_arithmetic(args);
}

Status eval(const EvalArgs& args) {
  FERRY_CHECK_OK(eval_arithmetic(args, []<class T>(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return wrapping<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    } else {
      return a + b;
    }
  }));
  const std::string& name = attr<std::string>(args.node, "activation");
  if (name == "none") return {};
  FERRY_TRY(activation, find_activation(name));
  const auto alpha = static_cast<float>(attr<double>(args.node, "alpha"));
  for (float& y : args.outputs[0]->mut<float>()) y = activation(y, alpha);
  return {};
}

Result<Converted> from_onnx_sum(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 2, 2));
  return with_inputs(node, 2);
}

const OnnxRow kOnnx[] = {{"Add"}, {"Sum", from_onnx_sum}};

Status to_onnx(OnnxForm& form) {
  FERRY_CHECK_OK(add_fused_activation(form, form.add("Add", form.inputs())));
  return {};
}

const OpCase kCases[] = {
    {R"(graph {
      input a: f32[2,3,4,5]
      input b: f32[2,3,4,5]
      y = add(a, b)
      output y
    })"},
    {R"(graph {
      input a: f32[2,3,4,5]
      const b: f32[3,1,1] = uniform(1, -1, 1)
      y = add(a, b) activation="relu"
      output y
    })"},
};

}  // namespace

extern const OpDef op_add;
const OpDef op_add = {
    .name = "add",
    .summary = "a + b with broadcasting and an optional fused activation",
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

#include "ops/support/activation_op.h"

#include "ops/support/activation.h"

namespace ferry::ops {

using namespace graph;

Result<Types> infer_activation(const InferArgs& args) {
  FERRY_CHECK_OK(need_f32(args));
  return one_output(DType::kF32, args.inputs[0]->shape);
}

Status eval_activation(const EvalArgs& args) {
  FERRY_TRY(activation, find_activation(args.node.op->name));
  const auto found = args.node.attrs.find("alpha");
  const float alpha =
      found == args.node.attrs.end() ? 0.0f : static_cast<float>(std::get<double>(found->second));
  const auto x = args.inputs[0]->as<float>();
  const auto y = args.outputs[0]->mut<float>();
  for (size_t i = 0; i < y.size(); ++i) y[i] = activation(x[i], alpha);
  return {};
}

}  // namespace ferry::ops

// identity: its input. Dropout, too, once a model is trained.
#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

Result<Types> infer(const InferArgs& args) {
  return one_output(args.inputs[0]->dtype, args.inputs[0]->shape);
}

Status eval(const EvalArgs& args) {
  copy_all(*args.inputs[0], *args.outputs[0]);
  return {};
}

Result<Converted> from_onnx_dropout(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 1, 3));  // ratio and training mode may follow
  FERRY_CHECK_OK(need_outputs(node, 1));
  if (has_input(node, 2)) {
    FERRY_TRY(training, need_ints(node, 2));
    if (!training.empty() && training[0] != 0) {
      return error(Code::kUnsupported, "training_mode is set; export the model in evaluation mode");
    }
  }
  return with_inputs(node, 1);
}

const OnnxRow kOnnx[] = {{"Identity"}, {"Dropout", from_onnx_dropout}};

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3]
      y = identity(x)
      output y
    })"},
};

}  // namespace

extern const OpDef op_identity;
const OpDef op_identity = {
    .name = "identity",
    .summary = "its input",
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

// size: the number of elements of its input, i64[].
#include "ops/support/check.h"

namespace ferry::ops {

using namespace graph;

namespace {

Result<Types> infer(const InferArgs&) { return one_output(DType::kI64, {}); }

Status eval(const EvalArgs& args) {
  args.outputs[0]->mut<int64_t>()[0] = args.inputs[0]->size();
  return {};
}

const OnnxRow kOnnx[] = {{"Size"}};

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,4]
      y = size(x)
      output y
    })"},
};

}  // namespace

extern const OpDef op_size;
const OpDef op_size = {
    .name = "size",
    .summary = "the number of elements of its input",
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

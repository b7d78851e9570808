// global_avg_pool: the mean of every channel, [N, C, …] → [N, C, 1, …].
#include "ops/support/check.h"

namespace ferry::ops {

using namespace graph;

namespace {

Result<Types> infer(const InferArgs& args) {
  FERRY_CHECK_OK(need_f32(args));
  Shape shape = args.inputs[0]->shape;
  if (shape.size() < 3)
    return error(Code::kInvalid, "input is {}, needs pixels", shape_text(shape));
  for (size_t i = 2; i < shape.size(); ++i) {
    if (shape[i] == 0) return error(Code::kInvalid, "input {} has no pixels", shape_text(shape));
    shape[i] = 1;
  }
  return one_output(DType::kF32, std::move(shape));
}

Status eval(const EvalArgs& args) {
  const auto y = args.outputs[0]->mut<float>();
  if (y.empty()) return {};
  const float* x = args.inputs[0]->as<float>().data();
  const int64_t pixels = args.inputs[0]->size() / static_cast<int64_t>(y.size());
  for (float& mean : y) {
    double sum = 0;
    for (int64_t i = 0; i < pixels; ++i) sum += *x++;
    mean = static_cast<float>(sum / static_cast<double>(pixels));
  }
  return {};
}

const OnnxRow kOnnx[] = {{"GlobalAveragePool"}};

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,4,5]
      y = global_avg_pool(x)
      output y
    })"},
};

}  // namespace

extern const OpDef op_global_avg_pool;
const OpDef op_global_avg_pool = {
    .name = "global_avg_pool",
    .summary = "mean of every channel",
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

// matmul: [..., m, k] x [..., k, n] → [..., m, n]; leading dimensions broadcast. One-dimensional
// operands stand for a row (first) or a column (second), whose axis is dropped from the output, as
// in NumPy.
#include "ops/support/check.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

struct Plan {
  Shape a_batch, b_batch, batch;  // leading dimensions
  int64_t m = 1, k = 1, n = 1;
  Shape out;
};

Result<Plan> plan(const Shape& a, const Shape& b) {
  if (a.empty() || b.empty()) return error(Code::kInvalid, "cannot multiply a scalar as a matrix");
  Plan p;
  const bool row = a.size() == 1, column = b.size() == 1;
  p.m = row ? 1 : a[a.size() - 2];
  p.k = a.back();
  p.n = column ? 1 : b.back();
  const int64_t b_rows = column ? b[0] : b[b.size() - 2];
  if (b_rows != p.k) {
    return error(Code::kInvalid, "{} x {}: {} columns against {} rows", shape_text(a),
                 shape_text(b), p.k, b_rows);
  }
  if (!row) p.a_batch.assign(a.begin(), a.end() - 2);
  if (!column) p.b_batch.assign(b.begin(), b.end() - 2);
  FERRY_TRY(batch, broadcast(p.a_batch, p.b_batch));
  p.batch = p.out = std::move(batch);
  if (!row) p.out.push_back(p.m);
  if (!column) p.out.push_back(p.n);
  return p;
}

Result<Types> infer(const InferArgs& args) {
  FERRY_CHECK_OK(need_f32(args));
  FERRY_TRY(p, plan(args.inputs[0]->shape, args.inputs[1]->shape));
  return one_output(DType::kF32, std::move(p.out));
}

Status eval(const EvalArgs& args) {
  FERRY_TRY(p, plan(args.inputs[0]->shape(), args.inputs[1]->shape()));
  const float* as = args.inputs[0]->as<float>().data();
  const float* bs = args.inputs[1]->as<float>().data();
  float* out = args.outputs[0]->mut<float>().data();
  if (args.outputs[0]->size() == 0) return {};
  const std::array<Shape, 2> strides = {broadcast_strides(p.a_batch, p.batch),
                                        broadcast_strides(p.b_batch, p.batch)};
  walk<2>(p.batch, strides, [&](int64_t i, const auto& at) {
    const float* a = as + at[0] * p.m * p.k;
    const float* b = bs + at[1] * p.k * p.n;
    float* y = out + i * p.m * p.n;  // zeroed
    for (int64_t r = 0; r < p.m; ++r) {
      for (int64_t k = 0; k < p.k; ++k) {
        const float left = a[r * p.k + k];
        for (int64_t c = 0; c < p.n; ++c) y[r * p.n + c] += left * b[k * p.n + c];
      }
    }
  });
  return {};
}

int64_t macs(const InferArgs& args) {
  const int64_t outputs = output_elements(args);
  return outputs == 0 ? 0 : saturating_product(outputs, args.inputs[0]->shape.back());
}

const OnnxRow kOnnx[] = {{"MatMul"}};

const OpCase kCases[] = {
    {R"(graph {
      input a: f32[2,3,4,5]
      input b: f32[3,5,6]
      y = matmul(a, b)
      output y
    })"},
    {R"(graph {
      input a: f32[7,5]
      const b: f32[5] = uniform(1, -1, 1)
      y = matmul(a, b)
      output y
    })"},
};

}  // namespace

extern const OpDef op_matmul;
const OpDef op_matmul = {
    .name = "matmul",
    .summary = "matrix product over broadcast leading dimensions",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer,
    .eval = eval,
    .macs = macs,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

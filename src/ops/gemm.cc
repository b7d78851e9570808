// gemm: alpha * A' B' + beta * C for two-dimensional A and B, each taken as it is or transposed; C
// broadcasts (ONNX Gemm). What exporters write for a Linear layer becomes `linear`.
#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

constexpr size_t kA = 0, kB = 1, kC = 2;

const AttrDef kAttrs[] = {
    {"alpha", 1.0, "factor of the product"},
    {"beta", 1.0, "factor of C"},
    {"trans_a", int64_t{0}, "1: A is stored transposed"},
    {"trans_b", int64_t{0}, "1: B is stored transposed"},
};

Result<Types> infer(const InferArgs& args) {
  FERRY_CHECK_OK(need_f32(args));
  FERRY_CHECK_OK(need_rank(args, kA, 2, "A"));
  FERRY_CHECK_OK(need_rank(args, kB, 2, "B"));
  const Shape& a = args.inputs[kA]->shape;
  const Shape& b = args.inputs[kB]->shape;
  const size_t ta = attr<int64_t>(args.node, "trans_a") != 0,
               tb = attr<int64_t>(args.node, "trans_b") != 0;
  if (a[1 - ta] != b[tb]) {
    return error(Code::kInvalid, "A is {}, B {}: {} columns against {} rows", shape_text(a),
                 shape_text(b), a[1 - ta], b[tb]);
  }
  const Shape y = {a[ta], b[1 - tb]};
  if (const TensorType* c = input_or_null(args, kC)) {
    const auto joined = broadcast(c->shape, y);
    if (!joined.ok() || *joined != y) {
      return error(Code::kInvalid, "C is {}, does not broadcast to {}", shape_text(c->shape),
                   shape_text(y));
    }
  }
  return one_output(DType::kF32, y);
}

Status eval(const EvalArgs& args) {
  const Shape& a = args.inputs[kA]->shape();
  const bool ta = attr<int64_t>(args.node, "trans_a") != 0,
             tb = attr<int64_t>(args.node, "trans_b") != 0;
  const auto alpha = static_cast<float>(attr<double>(args.node, "alpha"));
  const auto beta = static_cast<float>(attr<double>(args.node, "beta"));
  const int64_t rows = args.outputs[0]->shape()[0], columns = args.outputs[0]->shape()[1];
  const int64_t inner = a[ta ? 0 : 1];
  const float* as = args.inputs[kA]->as<float>().data();
  const float* bs = args.inputs[kB]->as<float>().data();
  const auto y = args.outputs[0]->mut<float>();
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      float sum = 0;
      for (int64_t k = 0; k < inner; ++k) {
        sum += as[ta ? k * rows + r : r * inner + k] * bs[tb ? c * inner + k : k * columns + c];
      }
      y[static_cast<size_t>(r * columns + c)] = alpha * sum;
    }
  }
  const Tensor* addend = input_or_null(args, kC);
  if (addend == nullptr) return {};
  const auto cs = addend->as<float>();
  const Shape& shape = args.outputs[0]->shape();
  walk<1>(shape, {broadcast_strides(addend->shape(), shape)}, [&](int64_t i, const auto& at) {
    y[static_cast<size_t>(i)] += beta * cs[static_cast<size_t>(at[0])];
  });
  return {};
}

int64_t macs(const InferArgs& args) {
  const int64_t outputs = output_elements(args);
  if (outputs == 0) return 0;
  const bool ta = attr<int64_t>(args.node, "trans_a") != 0;
  return saturating_product(outputs, args.inputs[kA]->shape[ta ? 0 : 1]);
}

Result<Converted> from_onnx(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 2, 3));
  const double alpha = node.float_or("alpha", 1.0), beta = node.float_or("beta", 1.0);
  const int64_t ta = node.int_or("transA", 0), tb = node.int_or("transB", 0);
  const Shape& b = node.inputs[kB]->shape;
  const bool plain_bias =
      !has_input(node, kC) || (b.size() == 2 && node.inputs[kC]->shape == Shape{b[0]});
  if (alpha == 1 && beta == 1 && ta == 0 && tb == 1 && plain_bias) {
    Converted out = with_inputs(node, 3);
    out.op = "linear";
    return out;
  }
  return with_inputs(node, 3, {{"alpha", alpha}, {"beta", beta}, {"trans_a", ta}, {"trans_b", tb}});
}

const OnnxRow kOnnx[] = {{"Gemm", from_onnx}};

Status to_onnx(OnnxForm& form) {
  return write_as(form, "Gemm",
                  {{"alpha", attr<double>(form.node(), "alpha")},
                   {"beta", attr<double>(form.node(), "beta")},
                   {"transA", attr<int64_t>(form.node(), "trans_a")},
                   {"transB", attr<int64_t>(form.node(), "trans_b")}});
}

const OpCase kCases[] = {
    {R"(graph {
      input a: f32[5,4]
      const b: f32[6,5] = uniform(1, -1, 1)
      const c: f32[4,1] = uniform(2, -1, 1)
      y = gemm(a, b, c) alpha=0.5 beta=2 trans_a=1 trans_b=1
      output y
    })"},
    {R"(graph {
      input a: f32[3,4]
      const b: f32[4,2] = uniform(1, -1, 1)
      y = gemm(a, b)
      output y
    })"},
};

}  // namespace

extern const OpDef op_gemm;
const OpDef op_gemm = {
    .name = "gemm",
    .summary = "alpha * A B + beta * C, with A and B transposed at will",
    .min_inputs = 2,
    .max_inputs = 3,
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .macs = macs,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

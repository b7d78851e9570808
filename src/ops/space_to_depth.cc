// space_to_depth: [N, C, H, W] → [N, C*b*b, H/b, W/b]; every block of b x b pixels becomes channels
// of one pixel.
#include "ops/support/blocks.h"
#include "ops/support/check.h"
#include "ops/support/onnx.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {
    {"block", int64_t{2}, "rows and columns of a block"},
    {"order", std::string("rows"), "how channels are numbered: rows, columns (Focus) or channels"},
};

Result<Types> infer(const InferArgs& args) {
  FERRY_CHECK_OK(need_f32(args));
  FERRY_CHECK_OK(need_rank(args, 0, 4, "input"));
  FERRY_CHECK_OK(block_order(attr<std::string>(args.node, "order")));
  const Shape& x = args.inputs[0]->shape;
  const int64_t block = attr<int64_t>(args.node, "block");
  if (block < 1 || block > 1024 || x[2] % block != 0 || x[3] % block != 0) {
    return error(Code::kInvalid, "a picture of {} x {} does not divide into blocks of {}", x[2],
                 x[3], block);
  }
  return one_output(DType::kF32, {x[0], x[1] * block * block, x[2] / block, x[3] / block});
}

Status eval(const EvalArgs& args) {
  FERRY_TRY(order, block_order(attr<std::string>(args.node, "order")));
  const int64_t block = attr<int64_t>(args.node, "block");
  const Shape& in = args.inputs[0]->shape();
  const Shape& out = args.outputs[0]->shape();
  const float* x = args.inputs[0]->as<float>().data();
  float* y = args.outputs[0]->mut<float>().data();
  for (int64_t n = 0; n < in[0]; ++n) {
    for (int64_t c = 0; c < in[1]; ++c) {
      for (int64_t h = 0; h < in[2]; ++h) {
        for (int64_t w = 0; w < in[3]; ++w) {
          const int64_t channel = block_channel(order, h % block, w % block, block, c, in[1]);
          y[((n * out[1] + channel) * out[2] + h / block) * out[3] + w / block] = *x++;
        }
      }
    }
  }
  return {};
}

Result<Converted> from_onnx(const ForeignNode& node) {
  return with_inputs(node, 1, {{"block", node.int_or("blocksize", 0)}});
}

const OnnxRow kOnnx[] = {{"SpaceToDepth", from_onnx}};

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,4,6]
      y = space_to_depth(x) order="columns"
      output y
    })"},
    {R"(graph {
      input x: f32[1,2,6,9]
      y = space_to_depth(x) block=3
      output y
    })"},
};

}  // namespace

extern const OpDef op_space_to_depth;
const OpDef op_space_to_depth = {
    .name = "space_to_depth",
    .summary = "blocks of pixels become channels",
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

// depth_to_space: [N, C*b*b, H, W] → [N, C, H*b, W*b]; the opposite of space_to_depth with the same
// order.
#include "ops/support/blocks.h"
#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {
    {"block", int64_t{2}, "rows and columns of a block"},
    {"order", std::string("rows"), "how channels are numbered: rows, columns or channels"},
};

Result<Types> infer(const InferArgs& args) {
  FERRY_CHECK_OK(need_f32(args));
  FERRY_CHECK_OK(need_rank(args, 0, 4, "input"));
  FERRY_CHECK_OK(block_order(attr<std::string>(args.node, "order")));
  const Shape& x = args.inputs[0]->shape;
  const int64_t block = attr<int64_t>(args.node, "block");
  if (block < 1 || block > 1024 || x[1] % (block * block) != 0) {
    return error(Code::kInvalid, "{} channels do not divide into blocks of {} x {}", x[1], block,
                 block);
  }
  return one_output(DType::kF32, {x[0], x[1] / (block * block), x[2] * block, x[3] * block});
}

Status eval(const EvalArgs& args) {
  FERRY_TRY(order, block_order(attr<std::string>(args.node, "order")));
  const int64_t block = attr<int64_t>(args.node, "block");
  const Shape& in = args.inputs[0]->shape();
  const Shape& out = args.outputs[0]->shape();
  const float* x = args.inputs[0]->as<float>().data();
  float* y = args.outputs[0]->mut<float>().data();
  for (int64_t n = 0; n < out[0]; ++n) {
    for (int64_t c = 0; c < out[1]; ++c) {
      for (int64_t h = 0; h < out[2]; ++h) {
        for (int64_t w = 0; w < out[3]; ++w) {
          const int64_t channel = block_channel(order, h % block, w % block, block, c, out[1]);
          *y++ = x[((n * in[1] + channel) * in[2] + h / block) * in[3] + w / block];
        }
      }
    }
  }
  return {};
}

Result<Converted> from_onnx(const ForeignNode& node) {
  const std::string mode = node.string_or("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") return error(Code::kInvalid, "unknown mode '{}'", mode);
  return with_inputs(node, 1,
                     {{"block", node.int_or("blocksize", 0)},
                      {"order", std::string(mode == "DCR" ? "rows" : "channels")}});
}

const OnnxRow kOnnx[] = {{"DepthToSpace", from_onnx}};

// ONNX numbers channels by rows (DCR) or within each channel (CRD).
Status to_onnx(OnnxForm& form) {
  const int64_t block = attr<int64_t>(form.node(), "block");
  FERRY_TRY(order, block_order(attr<std::string>(form.node(), "order")));
  if (order != BlockOrder::kColumns) {
    return write_as(
        form, "DepthToSpace",
        {{"blocksize", block}, {"mode", std::string(order == BlockOrder::kRows ? "DCR" : "CRD")}});
  }
  const Shape& in = form.shape(0);  // axes 0 … 5: n, j, i, c, h, w
  const Ref cells = form.add(
      "Reshape",
      {form.input(0), form.ints({in[0], block, block, in[1] / block / block, in[2], in[3]})});
  const Ref moved = form.add("Transpose", {cells}, {{"perm", Ints{0, 3, 4, 2, 5, 1}}});
  form.add("Reshape", {moved, form.ints(form.output_type().shape)});
  return {};
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,12,4,3]
      y = depth_to_space(x)
      output y
    })"},
    {R"(graph {
      input x: f32[1,18,2,3]
      y = depth_to_space(x) block=3 order="channels"
      output y
    })"},
};

}  // namespace

extern const OpDef op_depth_to_space;
const OpDef op_depth_to_space = {
    .name = "depth_to_space",
    .summary = "channels become blocks of pixels",
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

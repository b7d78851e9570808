// space_to_depth: [N, C, H, W] → [N, C*b*b, H/b, W/b]; every block of b x b pixels becomes channels
// of one pixel.
#include <limits>

#include "ops/support/blocks.h"
#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"

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

// ONNX's own op numbers channels by rows. Focus becomes the four slices that it is upstream.
Status to_onnx(OnnxForm& form) {
  const int64_t block = attr<int64_t>(form.node(), "block");
  FERRY_TRY(order, block_order(attr<std::string>(form.node(), "order")));
  const Ref x = form.input(0);
  if (order == BlockOrder::kRows) return write_as(form, "SpaceToDepth", {{"blocksize", block}});
  if (order == BlockOrder::kColumns && block == 2) {
    constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
    std::vector<Ref> quarters;
    for (int64_t j = 0; j < 2; ++j) {
      for (int64_t i = 0; i < 2; ++i) {
        quarters.push_back(form.add("Slice", {x, form.ints({i, j}), form.ints({kEnd, kEnd}),
                                              form.ints({2, 3}), form.ints({2, 2})}));
      }
    }
    form.add("Concat", std::move(quarters), {{"axis", int64_t{1}}});
    return {};
  }
  const Shape& in = form.shape(0);  // axes 0 … 5: n, c, h, i, w, j
  const Ref cells = form.add(
      "Reshape", {x, form.ints({in[0], in[1], in[2] / block, block, in[3] / block, block})});
  const Ints perm = order == BlockOrder::kColumns ? Ints{0, 5, 3, 1, 2, 4} : Ints{0, 1, 3, 5, 2, 4};
  const Ref moved = form.add("Transpose", {cells}, {{"perm", perm}});
  form.add("Reshape", {moved, form.ints(form.output_type().shape)});
  return {};
}

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
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

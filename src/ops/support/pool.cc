#include "ops/support/pool.h"

#include "ops/support/onnx.h"

namespace ferry::ops {

using namespace graph;

Result<Window> pool_window(const Node& node) {
  const Ints& kernel = attr<Ints>(node, "kernel");
  if (kernel.size() != 2) {
    return error(Code::kInvalid, "kernel has {} numbers, needs 2", kernel.size());
  }
  FERRY_TRY(window, Window::from_node(node, kernel[0], kernel[1]));
  for (size_t i = 0; i < 4; ++i) {
    const int64_t extent = (window.kernel[i % 2] - 1) * window.dilation[i % 2] + 1;
    if (window.pad[i] >= extent) {
      return error(Code::kInvalid, "pads are {}, must be smaller than the window of {}",
                   shape_text(attr<Ints>(node, "pads")), extent);
    }
  }
  return window;
}

Result<Types> infer_pool(const InferArgs& args) {
  FERRY_CHECK_OK(need_f32(args));
  FERRY_CHECK_OK(need_rank(args, 0, 4, "input"));
  const Shape& x = args.inputs[0]->shape;
  FERRY_TRY(window, pool_window(args.node));
  FERRY_TRY(size, window.output_size(x[2], x[3]));
  return one_output(DType::kF32, {x[0], x[1], size[0], size[1]});
}

Result<Converted> pool_from_onnx(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 1, 1));
  FERRY_CHECK_OK(need_outputs(node, 1));
  FERRY_TRY(window, Window::from_onnx(node, {}));
  Converted out = with_inputs(node, 1, window.attrs());
  out.attrs["kernel"] = Ints(window.kernel.begin(), window.kernel.end());
  out.attrs["ceil_mode"] = int64_t{window.ceil};
  return out;
}

}  // namespace ferry::ops

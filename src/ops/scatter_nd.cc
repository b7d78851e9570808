// scatter_nd: a copy of x in which update j replaces the part that index tuple j names (ONNX
// ScatterND); later ones win. Older exporters write slice assignment so. Negative indices count
// from the end; one outside is an error.
#include <cstring>

#include "ops/support/check.h"
#include "ops/support/dtypes.h"
#include "ops/support/onnx.h"
#include "ops/support/strides.h"

namespace ferry::ops {

using namespace graph;

namespace {

constexpr size_t kX = 0, kIndices = 1, kUpdates = 2;

Result<Types> infer(const InferArgs& args) {
  const TensorType& x = *args.inputs[kX];
  const TensorType& indices = *args.inputs[kIndices];
  const TensorType& updates = *args.inputs[kUpdates];
  if (!is_integer(indices.dtype) || indices.shape.empty()) {
    return error(Code::kInvalid, "indices are {}, need integer tuples", type_text(indices));
  }
  const int64_t depth = indices.shape.back();
  if (depth > static_cast<int64_t>(x.shape.size())) {
    return error(Code::kInvalid, "indices {} reach deeper than {}", shape_text(indices.shape),
                 shape_text(x.shape));
  }
  Shape expected(indices.shape.begin(), indices.shape.end() - 1);
  expected.insert(expected.end(), x.shape.begin() + depth, x.shape.end());
  if (updates.shape != expected || updates.dtype != x.dtype) {
    return error(Code::kInvalid, "updates are {}, need {}", type_text(updates),
                 type_text({x.dtype, expected}));
  }
  return one_output(x.dtype, x.shape);
}

Status eval(const EvalArgs& args) {
  const Tensor& x = *args.inputs[kX];
  Tensor& output = *args.outputs[0];
  copy_all(x, output);
  FERRY_TRY(indices, args.inputs[kIndices]->to_ints());
  const auto depth = static_cast<size_t>(args.inputs[kIndices]->shape().back());
  const Shape strides = row_major_strides(x.shape());
  int64_t part = 1;  // elements that one update writes
  for (size_t i = depth; i < x.shape().size(); ++i) part *= x.shape()[i];
  if (part == 0) return {};
  const auto bytes = static_cast<size_t>(part * dtype_size(x.dtype()));
  const auto updates = args.inputs[kUpdates]->bytes();
  for (size_t j = 0; j < updates.size() / bytes; ++j) {
    int64_t offset = 0;
    for (size_t i = 0; i < depth; ++i) {
      int64_t index = indices[j * depth + i];
      const int64_t size = x.shape()[i];
      if (index < -size || index >= size) {
        return error(Code::kInvalid, "index {} of axis {} of {}", index, i, shape_text(x.shape()));
      }
      if (index < 0) index += size;
      offset += index * strides[i];
    }
    std::memcpy(output.mut_bytes().data() + offset * dtype_size(x.dtype()),
                updates.data() + j * bytes, bytes);
  }
  return {};
}

Result<Converted> from_onnx(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 3, 3));
  const std::string reduction = node.string_or("reduction", "none");
  if (reduction != "none")
    return error(Code::kUnsupported, "reduction '{}' is not supported", reduction);
  return with_inputs(node, 3);
}

const OnnxRow kOnnx[] = {{"ScatterND", from_onnx}};

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[3,4]
      const indices: i64[2,1] = {2, 0}
      input updates: f32[2,4]
      y = scatter_nd(x, indices, updates)
      output y
    })"},
    {R"(graph {
      input x: f32[3,4]
      const indices: i64[2,2] = {2, -1, 0, 1}
      input updates: f32[2]
      y = scatter_nd(x, indices, updates)
      output y
    })"},
};

}  // namespace

extern const OpDef op_scatter_nd;
const OpDef op_scatter_nd = {
    .name = "scatter_nd",
    .summary = "a copy with the parts that indices name replaced",
    .min_inputs = 3,
    .max_inputs = 3,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .cases = kCases,
};

}  // namespace ferry::ops

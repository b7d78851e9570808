// recognise_focus: concat(x[::2, ::2], x[1::2, ::2], x[::2, 1::2], x[1::2, 1::2]) =
// space_to_depth(x) order="columns".
//
// The spelling that torch.onnx.export gives to YOLOv5's Focus: each quarter is one slice of rows
// and one of columns (or one of both). The order of quarters that ONNX calls SpaceToDepth
// (order="rows") is known as well, others stay.
#include <array>

#include "passes/passes.h"
#include "passes/support.h"

namespace ferry::passes {

using namespace graph;

namespace {

struct Quarter {
  ValueId x = kNone;
  std::array<int64_t, 2> start{}, step{1, 1};  // rows, columns
};

// Adds what one slice does; false when it is not a stride over rows or columns that goes to the
// end.
bool add_slice(const Node& slice, const Shape& shape, Quarter& quarter) {
  const Ints& starts = attr<Ints>(slice, "starts");
  const Ints& ends = attr<Ints>(slice, "ends");
  const Ints& axes = attr<Ints>(slice, "axes");
  const Ints& steps = attr<Ints>(slice, "steps");
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t axis = axes.empty() ? static_cast<int64_t>(i) : axes[i];
    axis += axis < 0 ? 4 : 0;
    const int64_t step = steps.empty() ? 1 : steps[i];
    const int64_t size = shape[static_cast<size_t>(axis)];
    if (ends[i] < size) return false;
    if (step == 1 && starts[i] == 0) continue;
    const auto k = static_cast<size_t>(axis - 2);
    if (axis < 2 || step != 2 || starts[i] < 0 || starts[i] > 1 || quarter.step[k] != 1)
      return false;
    quarter.start[k] = starts[i];
    quarter.step[k] = step;
  }
  return true;
}

std::optional<Quarter> quarter_of(const Editor& edit, ValueId id) {
  Quarter quarter{.x = id};
  while (quarter.step != std::array<int64_t, 2>{2, 2}) {
    const int n = edit.producer_if(quarter.x, "slice");
    if (n < 0) return std::nullopt;
    const ValueId from = edit.node(n).inputs[0];
    const Shape& shape = edit.graph().value(from).type.shape;
    if (shape.size() != 4 || !add_slice(edit.node(n), shape, quarter)) return std::nullopt;
    quarter.x = from;
  }
  return quarter;
}

Result<bool> rewrite(Editor& edit, int n) {
  const Node concat = edit.node(n);
  const int64_t axis = attr<int64_t>(concat, "axis");
  if (concat.inputs.size() != 4 || (axis != 1 && axis != -3)) return false;
  std::array<Quarter, 4> quarters;
  bool rows = true, columns = true;
  for (int64_t k = 0; k < 4; ++k) {
    const auto quarter = quarter_of(edit, concat.inputs[static_cast<size_t>(k)]);
    if (!quarter) return false;
    quarters[static_cast<size_t>(k)] = *quarter;
    rows &= quarter->start == std::array<int64_t, 2>{k / 2, k % 2};
    columns &= quarter->start == std::array<int64_t, 2>{k % 2, k / 2};
    if (quarter->x != quarters[0].x) return false;
  }
  const TensorType& type = edit.graph().value(quarters[0].x).type;
  if (rows == columns || type.dtype != DType::kF32) return false;
  FERRY_TRY(made, edit.insert_op(n, "space_to_depth", concat.name, {quarters[0].x},
                                 {{"order", std::string(rows ? "rows" : "columns")}}));
  edit.take_output(edit.producer(made), 0, concat.outputs[0]);
  return true;
}

}  // namespace

Result<int> recognise_focus(Graph& graph) {
  Editor edit(graph);
  int rewrites = 0;
  const int nodes = edit.size();
  for (int n = 0; n < nodes; ++n) {
    if (!edit.is(n, "concat")) continue;
    FERRY_TRY(done, rewrite(edit, n));
    rewrites += done;
  }
  FERRY_CHECK_OK(edit.finish());
  return rewrites;
}

}  // namespace ferry::passes

// flatten_concat: what concats and splits along one axis do to each other.
//
//   concat(concat(a, b), c)   =  concat(a, b, c)      nobody else reads the inner one
//   concat(a, split(x), b)    =  concat(a, x, b)      all parts, in order
//   concat(a)                 =  a
//   split(concat(a, b))       =  a, b                 the cuts are the seams; along channels,
//   because other sizes may
//                                                     change with the picture
#include <algorithm>

#include "passes/passes.h"
#include "passes/support.h"

namespace ferry::passes {

using namespace graph;

namespace {

constexpr size_t kMostInputs = 1024;  // of a flattened concat

int64_t axis_of(const Graph& graph, const Node& node, ValueId whole) {
  const int64_t axis = attr<int64_t>(node, "axis");
  return axis < 0 ? axis + static_cast<int64_t>(graph.value(whole).type.shape.size()) : axis;
}

int64_t axis_of_concat(const Editor& edit, int n) {
  return axis_of(edit.graph(), edit.node(n), edit.node(n).outputs[0]);
}
int64_t axis_of_split(const Editor& edit, int n) {
  return axis_of(edit.graph(), edit.node(n), edit.node(n).inputs[0]);
}

// The split whose outputs stand at inputs[i …], complete and in order; else -1.
int whole_split(const Editor& edit, const std::vector<ValueId>& inputs, size_t i, int64_t axis) {
  const int s = edit.producer_if(inputs[i], "split");
  if (s < 0 || axis_of_split(edit, s) != axis) return -1;
  const std::vector<ValueId>& parts = edit.node(s).outputs;
  if (i + parts.size() > inputs.size()) return -1;
  const bool same =
      std::equal(parts.begin(), parts.end(), inputs.begin() + static_cast<std::ptrdiff_t>(i));
  return same ? s : -1;
}

bool flatten(Editor& edit, int n) {
  const int64_t axis = axis_of_concat(edit, n);
  const std::vector<ValueId> old = edit.node(n).inputs;
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < old.size(); ++i) {
    const int inner = edit.fusable(old[i], "concat");
    const int cut = whole_split(edit, old, i, axis);
    if (inner >= 0 && axis_of_concat(edit, inner) == axis &&
        inputs.size() + edit.node(inner).inputs.size() <= kMostInputs) {
      const std::vector<ValueId>& parts = edit.node(inner).inputs;
      inputs.insert(inputs.end(), parts.begin(), parts.end());
    } else if (cut >= 0) {
      inputs.push_back(edit.node(cut).inputs[0]);
      i += edit.node(cut).outputs.size() - 1;
    } else {
      inputs.push_back(old[i]);
    }
  }
  if (inputs.size() == 1 && edit.replace(edit.node(n).outputs[0], inputs[0])) return true;
  if (inputs == old) return false;
  edit.set_inputs(n, std::move(inputs));
  return true;
}

bool cancel(Editor& edit, int n) {
  const Node split = edit.node(n);
  const int c = edit.producer_if(split.inputs[0], "concat");
  if (c < 0 || axis_of_split(edit, n) != 1 || axis_of_concat(edit, c) != 1) return false;
  const std::vector<ValueId> parts = edit.node(c).inputs;
  if (parts.size() != split.outputs.size()) return false;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (edit.graph().value(parts[i]).type != edit.graph().value(split.outputs[i]).type)
      return false;
  }
  bool any = false;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool used = edit.is_output(split.outputs[i]) || !edit.users(split.outputs[i]).empty();
    any |= used && edit.replace(split.outputs[i], parts[i]);
  }
  return any;
}

}  // namespace

Result<int> flatten_concat(Graph& graph) {
  Editor edit(graph);
  int rewrites = 0;
  for (int n = 0; n < edit.size(); ++n) {
    if (edit.is(n, "concat")) rewrites += flatten(edit, n);
    if (edit.is(n, "split")) rewrites += cancel(edit, n);
  }
  FERRY_CHECK_OK(edit.finish());
  return rewrites;
}

}  // namespace ferry::passes

// distribute_over_concat: f(concat(conv(x), conv(y))) = concat(f(conv(x)), f(conv(y))).
//
// BottleneckCSP and C3-like blocks of early YOLOv5 put a batch norm and an activation behind a
// concat of bare convolutions. Taken to the convolutions both cost nothing. Only along channels,
// where every input of the concat is a convolution (or what an earlier rewrite put behind it) that
// nobody else reads.
#include <algorithm>

#include "passes/passes.h"
#include "passes/support.h"

namespace ferry::passes {

using namespace graph;

namespace {

constexpr std::string_view kActivations[] = {"silu",       "sigmoid",   "relu",        "relu6",
                                             "leaky_relu", "hardswish", "hardsigmoid", "tanh",
                                             "mish",       "gelu"};

bool is_activation(const Node& node) {
  return std::find(std::begin(kActivations), std::end(kActivations), node.op->name) !=
         std::end(kActivations);
}

// Will a batch norm or activation on this value be folded into a convolution?
bool can_absorb(const Editor& edit, ValueId id) {
  if (const int bn = edit.fusable(id, "batch_norm"); bn >= 0) id = edit.node(bn).inputs[0];
  const int c = edit.fusable(id, "conv2d");
  return c >= 0 && is_linear(edit.node(c));
}

Result<bool> distribute(Editor& edit, int n) {
  const bool bn = edit.is(n, "batch_norm");
  if (!bn && !is_activation(edit.node(n))) return false;
  const int concat = edit.fusable(edit.node(n).inputs[0], "concat");
  if (concat < 0) return false;
  const Shape& shape = edit.graph().value(edit.node(n).inputs[0]).type.shape;
  const int64_t axis = attr<int64_t>(edit.node(concat), "axis");
  if (shape.size() != 4 || (axis != 1 && axis != -3)) return false;
  std::vector<ValueId> parts = edit.node(concat).inputs;
  for (const ValueId part : parts) {
    if (!can_absorb(edit, part)) return false;
  }
  const Node node = edit.node(n);
  if (bn) {
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      if (f32_constant(edit.graph(), node.inputs[i]) == nullptr) return false;
    }
  }

  size_t first = 0;
  for (ValueId& part : parts) {
    const auto channels = static_cast<size_t>(edit.graph().value(part).type.shape[1]);
    std::vector<ValueId> inputs = {part};
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      const auto all =
          f32_constant(edit.graph(), node.inputs[i])->as<float>().subspan(first, channels);
      const std::string name = edit.graph().value(node.inputs[i]).name;
      inputs.push_back(edit.constant(
          name, Tensor::of<float>({static_cast<int64_t>(channels)}, {all.begin(), all.end()})));
    }
    FERRY_TRY(made, edit.insert_op(n, node.op->name, node.name, std::move(inputs), node.attrs));
    part = made;
    first += channels;
  }
  FERRY_TRY(joined, edit.insert_op(n, "concat", edit.node(concat).name, std::move(parts),
                                   edit.node(concat).attrs));
  edit.take_output(edit.producer(joined), 0, node.outputs[0]);
  return true;
}

}  // namespace

Result<int> distribute_over_concat(Graph& graph) {
  Editor edit(graph);
  int rewrites = 0;
  const int nodes = edit.size();
  for (int n = 0; n < nodes; ++n) {
    if (!edit.alive(n)) continue;
    FERRY_TRY(done, distribute(edit, n));
    rewrites += done;
  }
  FERRY_CHECK_OK(edit.finish());
  return rewrites;
}

}  // namespace ferry::passes

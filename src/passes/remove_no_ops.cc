// remove_no_ops: nodes that give back what they get, for every size of picture.
//
//   identity, cast to the same type, slices of everything, x * 1, x / 1, x + 0, x - 0, pools and
//   resizes of one pixel, padding by nothing, a split into one part, transposes that cancel,
//   reshapes to the same shape or of a reshape
//
// A slice up to the last row of *this* picture is not one of them: a larger picture would be cut.
#include <algorithm>

#include "passes/passes.h"
#include "passes/support.h"

namespace ferry::passes {

using namespace graph;

namespace {

constexpr int64_t kToTheEnd = 0x7fffffff;  // exporters write the largest int32 or int64

bool all_equal(const Ints& values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == wanted; });
}

bool takes_everything(const Node& slice) {
  const Ints& ends = attr<Ints>(slice, "ends");
  return all_equal(attr<Ints>(slice, "starts"), 0) && all_equal(attr<Ints>(slice, "steps"), 1) &&
         std::all_of(ends.begin(), ends.end(), [](int64_t end) { return end >= kToTheEnd; });
}

// The same shape now, and not by way of another value's dimensions.
bool keeps_shape(const Graph& graph, const Node& reshape) {
  const Ints& shape = attr<Ints>(reshape, "shape");
  return graph.value(reshape.inputs[0]).type == graph.value(reshape.outputs[0]).type &&
         std::find(shape.begin(), shape.end(), -2) == shape.end();
}

bool in_order(const Ints& perm) {
  for (size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// The input of x * 1 and the like; kNone for others. The constant must not widen x, for any size:
// one element.
ValueId neutral(const Graph& graph, const Node& node, double number, bool commutes) {
  if (!is_linear(node)) return kNone;
  for (size_t i = 0; i < (commutes ? 2u : 1u); ++i) {
    const ValueId x = node.inputs[i], constant = node.inputs[1 - i];
    if (uniform_value(graph, constant) != number || graph.value(constant).constant->size() != 1)
      continue;
    if (graph.value(x).type == graph.value(node.outputs[0]).type) return x;
  }
  return kNone;
}

// The value that the node's only output equals, else kNone.
ValueId same_as(const Graph& graph, const Node& node) {
  const std::string_view op = node.op->name;
  const ValueId x = node.inputs.empty() ? kNone : node.inputs[0];
  if (op == "mul") return neutral(graph, node, 1, true);
  if (op == "div") return neutral(graph, node, 1, false);
  if (op == "add") return neutral(graph, node, 0, true);
  if (op == "sub") return neutral(graph, node, 0, false);
  const auto kept = [&](bool claim) { return claim ? x : kNone; };
  if (op == "identity" || op == "split") return kept(node.outputs.size() == 1);
  if (op == "cast") return kept(graph.value(x).type == graph.value(node.outputs[0]).type);
  if (op == "reshape") return kept(keeps_shape(graph, node));
  if (op == "transpose") return kept(in_order(attr<Ints>(node, "perm")));
  if (op == "slice") return kept(takes_everything(node));
  if (op == "pad") return kept(all_equal(attr<Ints>(node, "pads"), 0));
  if (op == "resize") return kept(attr<Floats>(node, "scales") == Floats{1, 1});
  if (op == "max_pool2d" || op == "average_pool2d") {
    return kept(all_equal(attr<Ints>(node, "kernel"), 1) &&
                all_equal(attr<Ints>(node, "strides"), 1) &&
                all_equal(attr<Ints>(node, "pads"), 0));
  }
  return kNone;
}

// transpose(transpose(x)) and reshape(reshape(x)) as one node over x.
bool skip_inner(Editor& edit, int n) {
  const ValueId x = edit.node(n).inputs.empty() ? kNone : edit.node(n).inputs[0];
  if (edit.is(n, "transpose")) {
    const int inner = edit.producer_if(x, "transpose");
    if (inner < 0) return false;
    Ints perm = attr<Ints>(edit.node(n), "perm");
    const auto rank = static_cast<int64_t>(perm.size());
    for (int64_t& axis : perm) {
      axis =
          attr<Ints>(edit.node(inner), "perm")[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
      axis += axis < 0 ? rank : 0;
    }
    edit.attrs(n)["perm"] = perm;
    edit.set_inputs(n, {edit.node(inner).inputs[0]});
    return true;
  }
  if (edit.is(n, "reshape")) {
    const int inner = edit.producer_if(x, "reshape");
    const Ints& shape = attr<Ints>(edit.node(n), "shape");
    // A 0 copies a dimension of the value in between.
    if (inner < 0 || std::find(shape.begin(), shape.end(), 0) != shape.end()) return false;
    std::vector<ValueId> inputs = edit.node(n).inputs;
    inputs[0] = edit.node(inner).inputs[0];
    edit.set_inputs(n, std::move(inputs));
    return true;
  }
  return false;
}

}  // namespace

Result<int> remove_no_ops(Graph& graph) {
  Editor edit(graph);
  int rewrites = 0;
  for (int n = 0; n < edit.size(); ++n) {
    if (!edit.alive(n)) continue;
    rewrites += skip_inner(edit, n);
    const ValueId same = same_as(graph, edit.node(n));
    if (same != kNone && edit.replace(edit.node(n).outputs[0], same)) ++rewrites;
  }
  FERRY_CHECK_OK(edit.finish());
  return rewrites;
}

}  // namespace ferry::passes

// fuse_residual: conv(x) + r = conv[residual](x, r).
//
//   act(conv(x)) + r      residual="after"    the bottleneck's shortcut
//   act(conv(x) + r)      residual="before"   ResNet's
//
// Only where nobody else reads the convolution's output, and the sum does not broadcast. The
// convolution moves to the place of the sum, where r is known to exist. When both terms are
// convolutions the later one takes the other as its r.
#include "passes/passes.h"
#include "passes/support.h"

namespace ferry::passes {

using namespace graph;

namespace {

// The convolution that makes input `i` of the sum, when it can take the other input as its
// residual; else -1.
int candidate(const Editor& edit, const Node& add, size_t i) {
  const Graph& graph = edit.graph();
  const int c = edit.fusable(add.inputs[i], "conv2d");
  if (c < 0 || attr<std::string>(edit.node(c), "residual") != "none") return -1;
  const ValueId other = add.inputs[1 - i];
  if (graph.value(other).constant || graph.value(other).type != graph.value(add.inputs[i]).type)
    return -1;
  const bool both = attr<std::string>(edit.node(c), "activation") != "none" &&
                    attr<std::string>(add, "activation") != "none";
  return both ? -1 : c;
}

bool fuse(Editor& edit, int n) {
  const Node& add = edit.node(n);
  const int left = candidate(edit, add, 0), right = candidate(edit, add, 1);
  if (left < 0 && right < 0) return false;
  const size_t i = right > left ? 1 : 0;
  const int c = std::max(left, right);

  std::vector<ValueId> inputs = edit.node(c).inputs;
  inputs.resize(kConvResidual, kNone);
  inputs.push_back(add.inputs[1 - i]);
  Attrs& attrs = edit.attrs(c);
  const bool before = attr<std::string>(add, "activation") != "none";
  attrs["residual"] = std::string(before ? "before" : "after");
  if (before) {
    attrs["activation"] = attr<std::string>(add, "activation");
    attrs["alpha"] = attr<double>(add, "alpha");
  }
  const ValueId sum = add.outputs[0];
  edit.set_inputs(c, std::move(inputs));
  edit.move(c, n);
  edit.take_output(c, 0, sum);
  return true;
}

}  // namespace

Result<int> fuse_residual(Graph& graph) {
  Editor edit(graph);
  int rewrites = 0;
  for (int n = 0; n < edit.size(); ++n) {
    if (edit.is(n, "add")) rewrites += fuse(edit, n);
  }
  FERRY_CHECK_OK(edit.finish());
  return rewrites;
}

}  // namespace ferry::passes

// fuse_activation: act(conv(x)) = conv[activation=act](x), and so for every op that has an
// attribute `activation`.
//
// Only where nobody else reads conv(x). softplus and elu stay nodes: no detector puts them behind
// its convolutions, and a device should not need them in every epilogue.
#include <algorithm>

#include "passes/passes.h"
#include "passes/support.h"

namespace ferry::passes {

using namespace graph;

namespace {

constexpr std::string_view kFusable[] = {"silu",      "sigmoid",     "relu", "relu6", "leaky_relu",
                                         "hardswish", "hardsigmoid", "tanh", "mish",  "gelu"};

bool fuse(Editor& edit, int n) {
  const Node& act = edit.node(n);
  const std::string_view name = act.op->name;
  if (std::find(std::begin(kFusable), std::end(kFusable), name) == std::end(kFusable)) return false;
  const int p = edit.producer(act.inputs[0]);
  if (p < 0 || edit.only_user(act.inputs[0]) < 0 || edit.node(p).outputs.size() != 1) return false;
  const auto found = edit.node(p).attrs.find("activation");
  if (found == edit.node(p).attrs.end() || std::get<std::string>(found->second) != "none")
    return false;
  if (edit.graph().value(act.inputs[0]).type.dtype != DType::kF32) return false;

  Attrs& attrs = edit.attrs(p);
  // Without an activation of its own the convolution's residual joins before the new one.
  if (const auto residual = attrs.find("residual");
      residual != attrs.end() && residual->second == Attr(std::string("after"))) {
    residual->second = std::string("before");
  }
  attrs["activation"] = std::string(name);
  if (const auto alpha = act.attrs.find("alpha"); alpha != act.attrs.end())
    attrs["alpha"] = alpha->second;
  edit.take_output(p, 0, act.outputs[0]);
  return true;
}

}  // namespace

Result<int> fuse_activation(Graph& graph) {
  Editor edit(graph);
  int rewrites = 0;
  for (int n = 0; n < edit.size(); ++n) {
    if (edit.alive(n)) rewrites += fuse(edit, n);
  }
  FERRY_CHECK_OK(edit.finish());
  return rewrites;
}

}  // namespace ferry::passes

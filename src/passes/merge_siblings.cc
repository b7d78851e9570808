// merge_siblings: 1x1 convolutions of one input become one convolution, whose output is split along
// channels.
//
//   a = conv(x, wa)         y = conv(x, [wa; wb])
//   b = conv(x, wb)   →     a, b = split(y)
//
// The input is read once, and the wider product runs nearer to peak: cv1 and cv2 of every C3. The
// split is meant to cost nothing: its outputs are channel slices of y, which a device reads in
// place. Same stride, groups, activation; no residual; no output of the graph among them, because
// an output must stand alone in memory.
#include <algorithm>
#include <map>
#include <tuple>

#include "passes/passes.h"
#include "passes/support.h"

namespace ferry::passes {

using namespace graph;

namespace {

bool can_merge(const Editor& edit, int n) {
  if (!edit.is(n, "conv2d")) return false;
  const Node& conv = edit.node(n);
  if (!has_constant_weights(edit.graph(), conv) || edit.is_output(conv.outputs[0])) return false;
  const Shape& weight = edit.graph().value(conv.inputs[kConvWeight]).type.shape;
  return weight[2] == 1 && weight[3] == 1 && attr<int64_t>(conv, "groups") == 1 &&
         attr<Ints>(conv, "pads") == Ints{0, 0, 0, 0} &&
         attr<std::string>(conv, "residual") == "none";
}

Status merge(Editor& edit, const std::vector<int>& siblings) {
  const Graph& graph = edit.graph();
  std::vector<float> weight;
  std::vector<double> bias;
  Ints sizes;
  std::string name;
  bool has_bias = false;
  for (const int n : siblings) {
    const Node& conv = edit.node(n);
    const auto w = f32_constant(graph, conv.inputs[kConvWeight])->as<float>();
    weight.insert(weight.end(), w.begin(), w.end());
    sizes.push_back(graph.value(conv.inputs[kConvWeight]).type.shape[0]);
    const auto b = bias_of(graph, conv, sizes.back());
    bias.insert(bias.end(), b.begin(), b.end());
    has_bias |= input_or_none(conv, kConvBias) != kNone;
    name += (name.empty() ? "" : "+") + conv.name;
  }
  const auto channels = static_cast<int64_t>(bias.size());
  const Node first = edit.node(siblings[0]);
  const Shape shape = {channels, graph.value(first.inputs[kConvWeight]).type.shape[1], 1, 1};
  std::vector<ValueId> inputs = {
      first.inputs[kConvX],
      edit.constant(name + ".weight", Tensor::of<float>(shape, std::move(weight)))};
  if (has_bias) inputs.push_back(edit.constant(name + ".bias", to_f32({channels}, bias)));

  FERRY_TRY(all, edit.insert_op(siblings[0], "conv2d", name, std::move(inputs), first.attrs));
  const auto count = static_cast<int>(siblings.size());
  FERRY_TRY(parts, edit.insert(siblings[0], "split", name + ".split", {all},
                               {{"axis", int64_t{1}}, {"sizes", sizes}}, count));
  const int split = edit.producer(parts[0]);
  for (size_t i = 0; i < siblings.size(); ++i)
    edit.take_output(split, i, edit.node(siblings[i]).outputs[0]);
  return {};
}

}  // namespace

Result<int> merge_siblings(Graph& graph) {
  Editor edit(graph);
  using Key = std::tuple<ValueId, Attrs>;
  std::map<Key, std::vector<int>> families;
  std::vector<Key> order;  // by first member, so that the result does not depend on value numbers
  for (int n = 0; n < edit.size(); ++n) {
    if (!can_merge(edit, n)) continue;
    const Key key{edit.node(n).inputs[kConvX], edit.node(n).attrs};
    auto& family = families[key];
    if (family.empty()) order.push_back(key);
    family.push_back(n);
  }
  int rewrites = 0;
  for (const Key& key : order) {
    const std::vector<int>& family = families[key];
    if (family.size() < 2) continue;
    FERRY_CHECK_OK(merge(edit, family));
    ++rewrites;
  }
  FERRY_CHECK_OK(edit.finish());
  return rewrites;
}

}  // namespace ferry::passes

// fold_upsample: a 1x1 convolution behind a concat of an upsampled value does that value's share
// before the upsampling.
//
//   act(conv(concat(up2(a), b)))  →  r = conv_a(a)                         on a quarter of the
//   pixels
//                                    act(conv_b(b) + up2(r))                residual="before_up2"
//
// Nearest-neighbour upsampling repeats pixels and a 1x1 convolution treats them alike, so the two
// commute. The weights are split along input channels; bias and activation stay with conv_b; the
// concat of up2(a) is never written.
//
// When it wins. Per number of the result it saves 3/4 of a's C channels of multiply-adds, and
// moves 1.25 numbers more: each is joined with a residual (1), a quarter as many are written for it
// (0.25). A core with two 512-bit FMA units does 32 multiply-adds a cycle and loads about 4 floats
// a cycle from beyond its L1, so a moved number is charged 8 multiply-adds, and the rule is 0.75 C
// > 1.25 * 8, or C >= 14. (Not counted, in our favour: writing and reading up2(a).) It depends on
// channels only, so it holds for every size of picture. YOLOv5n has C = 128 and 64.
#include <algorithm>
#include <array>
#include <cmath>

#include "passes/passes.h"
#include "passes/support.h"

namespace ferry::passes {

using namespace graph;

namespace {

constexpr double kMacsPerMovedNumber = 8, kMovedNumbers = 1.25, kSavedShare = 0.75;

bool wins(int64_t channels) {
  return kSavedShare * static_cast<double>(channels) > kMovedNumbers * kMacsPerMovedNumber;
}

// Is output pixel i input pixel i / 2, for every i and size?
bool is_nearest_2x(const Graph& graph, const Node& node) {
  if (attr<std::string>(node, "mode") != "nearest") return false;
  const Floats& scales = attr<Floats>(node, "scales");
  const Shape& in = graph.value(node.inputs[0]).type.shape;
  const Ints twice = {in[2] * 2, in[3] * 2};
  if (scales.empty() ? attr<Ints>(node, "sizes") != twice : scales != Floats{2, 2}) return false;
  // Place of output pixels 0, 1 in the input, and how it is rounded: the result must be 0 for both.
  //   asymmetric            0, 0.5        floor, round_prefer_floor
  //   half_pixel            -0.25, 0.25   round_prefer_floor, round_prefer_ceil (the border clamps)
  //   tf_half_pixel_for_nn  0.25, 0.75    floor
  const std::string& place = attr<std::string>(node, "coordinates");
  const std::string& round = attr<std::string>(node, "nearest_mode");
  if (place == "asymmetric") return round == "floor" || round == "round_prefer_floor";
  if (place == "half_pixel" || place == "pytorch_half_pixel" || place == "half_pixel_symmetric") {
    return round == "round_prefer_floor" || round == "round_prefer_ceil";
  }
  return place == "tf_half_pixel_for_nn" && round == "floor";
}

bool can_split(const Editor& edit, int n, ValueId x) {
  if (!edit.is(n, "conv2d") || edit.node(n).inputs[kConvX] != x) return false;
  const Node& conv = edit.node(n);
  if (f32_constant(edit.graph(), conv.inputs[kConvWeight]) == nullptr) return false;
  const Shape& weight = edit.graph().value(conv.inputs[kConvWeight]).type.shape;
  return weight[2] == 1 && weight[3] == 1 && attr<int64_t>(conv, "groups") == 1 &&
         attr<Ints>(conv, "strides") == Ints{1, 1} &&
         attr<Ints>(conv, "pads") == Ints{0, 0, 0, 0} &&
         attr<std::string>(conv, "residual") == "none";
}

// Input channels [first, first + count) of a 1x1 weight, or all the others.
enum class Take { kRange, kOthers };
Tensor channels_of(const Tensor& weight, int64_t first, int64_t count, Take take) {
  const int64_t out = weight.shape()[0], in = weight.shape()[1];
  std::vector<float> values;
  for (int64_t i = 0; i < out * in; ++i) {
    const bool inside = i % in >= first && i % in < first + count;
    if (inside == (take == Take::kRange))
      values.push_back(weight.as<float>()[static_cast<size_t>(i)]);
  }
  return Tensor::of<float>({out, take == Take::kRange ? count : in - count, 1, 1},
                           std::move(values));
}

// Splits the convolution `n` over concat(…, up2(a), …): a's channels begin at `first`, `rest` holds
// the others.
Status split(Editor& edit, int n, ValueId a, int64_t first, ValueId rest) {
  const std::string name = edit.node(n).name;
  const int64_t count = edit.graph().value(a).type.shape[1];
  const Tensor weight = *f32_constant(edit.graph(), edit.node(n).inputs[kConvWeight]);
  const ValueId wa =
      edit.constant(name + ".low.weight", channels_of(weight, first, count, Take::kRange));
  const ValueId wb =
      edit.constant(name + ".weight", channels_of(weight, first, count, Take::kOthers));
  FERRY_TRY(low, edit.insert_op(n, "conv2d", name + ".low", {a, wa}));
  edit.attrs(n)["residual"] = std::string("before_up2");
  edit.set_inputs(n, {rest, wb, input_or_none(edit.node(n), kConvBias), low});
  return {};
}

Result<int> fold(Editor& edit, int concat) {
  const Graph& graph = edit.graph();
  const ValueId joined = edit.node(concat).outputs[0];
  const std::vector<ValueId> parts = edit.node(concat).inputs;
  const int64_t axis = attr<int64_t>(edit.node(concat), "axis");
  if (graph.value(joined).type.shape.size() != 4 || (axis != 1 && axis != -3)) return 0;
  const std::vector<int> convs = edit.users(joined);
  const bool all =
      std::all_of(convs.begin(), convs.end(), [&](int n) { return can_split(edit, n, joined); });
  if (!all || convs.empty() || edit.is_output(joined) || parts.size() < 2) return 0;

  int64_t first = 0;
  for (size_t i = 0; i < parts.size(); first += graph.value(parts[i]).type.shape[1], ++i) {
    const int up = edit.producer_if(parts[i], "resize");
    if (up < 0 || !is_nearest_2x(graph, edit.node(up)) ||
        !wins(graph.value(parts[i]).type.shape[1]))
      continue;
    const ValueId a = edit.node(up).inputs[0];
    std::vector<ValueId> others = parts;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    ValueId rest = others[0];
    if (others.size() > 1) {
      FERRY_TRY(made, edit.insert_op(concat, "concat", edit.node(concat).name, std::move(others),
                                     edit.node(concat).attrs));
      rest = made;
    }
    for (const int n : convs) FERRY_CHECK_OK(split(edit, n, a, first, rest));
    return static_cast<int>(convs.size());
  }
  return 0;
}

}  // namespace

Result<int> fold_upsample(Graph& graph) {
  Editor edit(graph);
  int rewrites = 0;
  const int nodes = edit.size();
  for (int n = 0; n < nodes; ++n) {
    if (!edit.is(n, "concat")) continue;
    FERRY_TRY(done, fold(edit, n));
    rewrites += done;
  }
  FERRY_CHECK_OK(edit.finish());
  return rewrites;
}

}  // namespace ferry::passes

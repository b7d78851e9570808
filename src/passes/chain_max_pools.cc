// chain_max_pools: max_pool 9x9(x) = max_pool 5x5(max_pool 5x5(x)), where the inner pool is there
// anyway.
//
// SPP (v3 to v5) pools one picture with 5, 9 and 13; as a chain of three 5x5 it is SPPF: 75 instead
// of 275 comparisons a pixel. Windows of k1 and k2 one after the other reach as far as one of k1 +
// k2 - 1, and pixels outside never win, so the result is the same to the bit when stride is 1 and
// the padding keeps the picture's size.
#include <algorithm>
#include <map>

#include "passes/passes.h"
#include "passes/support.h"

namespace ferry::passes {

using namespace graph;

namespace {

// Stride and dilation 1, odd kernel, padded to the same size.
bool keeps_size(const Node& pool) {
  const Ints& k = attr<Ints>(pool, "kernel");
  const Ints same = {k[0] / 2, k[1] / 2, k[0] / 2, k[1] / 2};
  return k[0] % 2 == 1 && k[1] % 2 == 1 && attr<Ints>(pool, "strides") == Ints{1, 1} &&
         attr<Ints>(pool, "dilations") == Ints{1, 1} && attr<Ints>(pool, "pads") == same;
}

}  // namespace

Result<int> chain_max_pools(Graph& graph) {
  Editor edit(graph);
  std::map<ValueId, std::vector<int>> pools;  // by input
  for (int n = 0; n < edit.size(); ++n) {
    if (edit.is(n, "max_pool2d") && keeps_size(edit.node(n)))
      pools[edit.node(n).inputs[0]].push_back(n);
  }
  int rewrites = 0;
  for (auto& [x, list] : pools) {
    std::stable_sort(list.begin(), list.end(), [&](int a, int b) {
      return attr<Ints>(edit.node(a), "kernel") < attr<Ints>(edit.node(b), "kernel");
    });
    int inner = list[0];
    Ints reach = attr<Ints>(edit.node(inner), "kernel");
    for (size_t i = 1; i < list.size(); ++i) {
      const Ints kernel = attr<Ints>(edit.node(list[i]), "kernel");
      if (kernel[0] <= reach[0] || kernel[1] <= reach[1]) continue;
      const Ints rest = {kernel[0] - reach[0] + 1, kernel[1] - reach[1] + 1};
      edit.attrs(list[i])["kernel"] = rest;
      edit.attrs(list[i])["pads"] = Ints{rest[0] / 2, rest[1] / 2, rest[0] / 2, rest[1] / 2};
      edit.set_inputs(list[i], {edit.node(inner).outputs[0]});
      inner = list[i];
      reach = kernel;
      ++rewrites;
    }
  }
  FERRY_CHECK_OK(edit.finish());
  return rewrites;
}

}  // namespace ferry::passes

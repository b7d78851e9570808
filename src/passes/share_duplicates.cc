// share_duplicates: two nodes with the same op, inputs and attributes compute the same, once. Equal
// constants become one first: exporters write the same shape or scale a hundred times. Large
// constants are compared by address only.
#include <map>
#include <tuple>

#include "passes/passes.h"
#include "passes/support.h"

namespace ferry::passes {

using namespace graph;

namespace {

constexpr size_t kCompareBytes = 4096;

int share_constants(Editor& edit) {
  using Key = std::tuple<DType, Shape, std::string, const void*>;
  std::map<Key, ValueId> seen;
  int rewrites = 0;
  const Graph& graph = edit.graph();
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const auto id = static_cast<ValueId>(i);
    if (!graph.value(id).constant || (edit.users(id).empty() && !edit.is_output(id))) continue;
    const Tensor& tensor = *graph.value(id).constant;
    const auto bytes = tensor.bytes();
    const bool small = bytes.size() <= kCompareBytes;
    const auto* text = reinterpret_cast<const char*>(bytes.data());
    const Key key{tensor.dtype(), tensor.shape(),
                  small ? std::string(text, bytes.size()) : std::string(),
                  small ? nullptr : tensor.data()};
    const auto [found, is_new] = seen.emplace(key, id);
    if (!is_new && edit.replace(id, found->second)) ++rewrites;
  }
  return rewrites;
}

int share_nodes(Editor& edit) {
  using Key = std::tuple<const OpDef*, std::vector<ValueId>, Attrs, size_t>;
  std::map<Key, int> seen;
  int rewrites = 0;
  for (int n = 0; n < edit.size(); ++n) {
    if (!edit.alive(n)) continue;
    const Node& node = edit.node(n);
    const auto [found, is_new] =
        seen.emplace(Key{node.op, node.inputs, node.attrs, node.outputs.size()}, n);
    if (is_new) continue;
    const std::vector<ValueId> outputs = node.outputs;
    bool shared = false;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const bool used = edit.is_output(outputs[i]) || !edit.users(outputs[i]).empty();
      shared |= used && edit.replace(outputs[i], edit.node(found->second).outputs[i]);
    }
    rewrites += shared;
  }
  return rewrites;
}

}  // namespace

Result<int> share_duplicates(Graph& graph) {
  Editor edit(graph);
  const int constants = share_constants(edit);
  const int nodes = share_nodes(edit);
  FERRY_CHECK_OK(edit.finish());
  return constants + nodes;
}

}  // namespace ferry::passes

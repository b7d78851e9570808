// The graph's text form: whatever parses must print and parse to the same text, survive every pass
// with its types intact, and, where that is cheap, compute the same numbers after them.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "graph/text.h"
#include "ops/evaluate.h"
#include "ops/table.h"
#include "passes/pipeline.h"

using namespace ferry;

namespace {

constexpr int64_t kElementsToEvaluate = 1 << 12;
constexpr int64_t kMacsToEvaluate = 1 << 18;

bool is_cheap(const graph::Graph& graph) {
  int64_t elements = 0, macs = 0;
  for (const graph::Value& value : graph.values) {
    elements += graph::elements(value.type.shape);
    if (elements > kElementsToEvaluate) return false;
  }
  for (const graph::Node& node : graph.nodes) {
    macs += graph::macs(graph, node);
    if (macs < 0 || macs > kMacsToEvaluate) return false;
  }
  return true;
}

std::vector<graph::Tensor> inputs_of(const graph::Graph& graph) {
  std::vector<graph::Tensor> inputs;
  for (const graph::ValueId id : graph.inputs)
    inputs.push_back(*graph::Tensor::make(graph.value(id).type));
  return inputs;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto graph = graph::parse(text, ops::op_table());
  if (!graph.ok()) return 0;
  const bool cheap = is_cheap(*graph);
  if (cheap) {  // printing a large constant would only cost time
    const std::string printed = graph::print(*graph);
    const auto again = graph::parse(printed, ops::op_table());
    if (!again.ok() || graph::print(*again) != printed) std::abort();
  }
  if (!cheap) return 0;
  const std::vector<graph::Tensor> inputs = inputs_of(*graph);
  const auto before = ops::evaluate(*graph, inputs);
  const auto report = passes::optimise(*graph);
  if (!report.ok()) {
    // Folding may meet what evaluation met (an index out of range); nothing else may fail.
    if (before.ok()) std::abort();
    return 0;
  }
  const auto after = ops::evaluate(*graph, inputs);
  if (before.ok() && !after.ok()) std::abort();
  return 0;
}

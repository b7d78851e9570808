// Every case of every op with one number after another replaced by hostile ones: the shape rules
// refuse it, or the reference loops run without leaving their tensors (what the sanitizer builds of
// this test see).
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "graph/text.h"
#include "ops/evaluate.h"
#include "ops/table.h"

namespace ferry::ops {
namespace {

using namespace graph;

constexpr std::string_view kHostile[] = {"0",
                                         "-1",
                                         "1",
                                         "2",
                                         "5",
                                         "-2",
                                         "100",
                                         "4294967296",
                                         "9223372036854775807",
                                         "-9223372036854775808"};

struct Place {
  size_t begin, end;
};

// Where numbers stand that are not part of a name or a type.
std::vector<Place> numbers(std::string_view text) {
  std::vector<Place> out;
  const auto inside = [&](size_t i) {
    return i < text.size() && (std::isdigit(static_cast<unsigned char>(text[i])) || text[i] == '.');
  };
  for (size_t i = 1; i < text.size(); ++i) {
    if (!inside(i) || std::string_view("[,={( -").find(text[i - 1]) == std::string_view::npos)
      continue;
    Place place{text[i - 1] == '-' ? i - 1 : i, i};
    while (inside(place.end)) ++place.end;
    out.push_back(place);
    i = place.end;
  }
  return out;
}

// Small enough to run thousands of times.
bool is_small(const Graph& graph) {
  for (const Value& value : graph.values) {
    if (elements(value.type.shape) > 20'000) return false;
  }
  for (const Node& node : graph.nodes) {
    std::vector<const TensorType*> types;
    for (const ValueId id : node.inputs)
      types.push_back(id == kNone ? nullptr : &graph.value(id).type);
    const std::vector<const Tensor*> constants(types.size(), nullptr);
    if (node.op->macs != nullptr && node.op->macs({node, types, constants}) > 1'000'000)
      return false;
    if (!node.attrs.contains("kernel")) continue;
    for (const int64_t size : attr<Ints>(node, "kernel")) {
      if (size > 100) return false;
    }
  }
  return true;
}

// Zeros, and the bytes 0xff: NaN for floats, -1 for integers, a bool that is neither 0 nor 1.
std::vector<Tensor> inputs_of(const Graph& graph, unsigned char byte) {
  std::vector<Tensor> out;
  for (const ValueId id : graph.inputs) {
    Tensor tensor = *Tensor::make(graph.value(id).type);
    std::fill(tensor.mut_bytes().begin(), tensor.mut_bytes().end(), std::byte{byte});
    out.push_back(std::move(tensor));
  }
  return out;
}

TEST(HostileNumbers, AreRefusedOrComputedInsideTheTensors) {
  int refused = 0, computed = 0;
  for (const OpDef* op : op_table()) {
    for (const OpCase& op_case : op->cases) {
      for (const Place& place : numbers(op_case.graph)) {
        for (const std::string_view hostile : kHostile) {
          std::string text(op_case.graph);
          text.replace(place.begin, place.end - place.begin, hostile);
          SCOPED_TRACE(text);
          const auto graph = parse(text, op_table());
          if (!graph.ok()) {
            ++refused;
            EXPECT_FALSE(graph.error().message.empty());
            EXPECT_NE(graph.error().code, Code::kBug);
            continue;
          }
          if (!is_small(*graph)) continue;
          for (const unsigned char byte : {0x00, 0xff}) {
            const auto outputs = evaluate(*graph, inputs_of(*graph, byte));
            ++(outputs.ok() ? computed : refused);
          }
        }
      }
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(computed, 1000);
}

}  // namespace
}  // namespace ferry::ops

// Exporters write the Detect layer in dozens of ways (Split or Slice, Pow or Mul, grids stored or
// computed, factors folded into constants), so the tail is not matched node by node. It is asked:
// with zeros in the box channels every sigmoid is 1/2, and a row of the output is
//
//   ((x + 1/2) * stride, (y + 1/2) * stride, anchor width, anchor height)
//
// exactly, whatever the spelling; a constant in the other channels tells which head a row is from.
// Then random heads decide whether the guess is right.
#include "passes/recognise_detect.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ops/evaluate.h"
#include "ops/table.h"

namespace ferry::passes {
namespace {

using namespace graph;

constexpr int64_t kMaxTailElements = int64_t{1} << 28;  // computed by the tail in one run
constexpr size_t kMaxHeads = 8;                         // as yolo_detect takes

struct Tail {
  ValueId output = kNone;
  std::vector<ValueId> heads;  // in no order
  int64_t anchors = 0;         // of one cell
  Graph graph;                 // heads -> output
};

// Where the walk from the output stops: at the first value that could be a head, or at what a
// convolution gives (some write the sigmoid in front of the reshape).
enum class Stop { kAtShape, kAtConvolution };

bool looks_like_head(const Shape& shape, int64_t row) {
  return shape.size() == 4 && shape[1] > 0 && shape[1] % row == 0;
}

// The nodes between the heads and `output`; nullopt when they do not fit a Detect tail.
std::optional<Tail> find_tail(const Graph& graph, ValueId output, Stop stop) {
  const Shape& out = graph.value(output).type.shape;
  const int64_t row = out[2];
  const std::vector<int> producer = producers(graph);
  Tail tail;
  tail.output = output;
  std::vector<bool> seen(graph.values.size(), false), inside(graph.nodes.size(), false);
  std::vector<ValueId> pending = {output};
  int64_t work = 0;
  while (!pending.empty()) {
    const ValueId id = pending.back();
    pending.pop_back();
    if (id == kNone || seen[static_cast<size_t>(id)] || graph.value(id).constant) continue;
    seen[static_cast<size_t>(id)] = true;
    const TensorType& type = graph.value(id).type;
    const int from = producer[static_cast<size_t>(id)];
    const bool by_convolution =
        from >= 0 && graph.nodes[static_cast<size_t>(from)].op->macs != nullptr;
    if (by_convolution || (stop == Stop::kAtShape && looks_like_head(type.shape, row))) {
      if (!looks_like_head(type.shape, row) || type.dtype != DType::kF32) return std::nullopt;
      tail.heads.push_back(id);
      if (tail.heads.size() > kMaxHeads) return std::nullopt;
      continue;
    }
    if (from < 0) return std::nullopt;  // the picture itself
    work += elements(type.shape);
    if (work > kMaxTailElements) return std::nullopt;
    inside[static_cast<size_t>(from)] = true;
    const Node& node = graph.nodes[static_cast<size_t>(from)];
    pending.insert(pending.end(), node.inputs.begin(), node.inputs.end());
  }

  if (tail.heads.empty()) return std::nullopt;
  tail.anchors = graph.value(tail.heads[0]).type.shape[1] / row;
  int64_t rows = 0;
  for (const ValueId head : tail.heads) {
    const Shape& shape = graph.value(head).type.shape;
    if (shape[0] != out[0] || shape[1] != tail.anchors * row) return std::nullopt;
    rows += tail.anchors * shape[2] * shape[3];
  }
  if (rows != out[1]) return std::nullopt;

  tail.graph.values = graph.values;  // constants are shared, not copied
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (inside[n]) tail.graph.nodes.push_back(graph.nodes[n]);
  }
  tail.graph.inputs = tail.heads;
  tail.graph.outputs = {output};
  prune(tail.graph);
  return tail;
}

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
float mark(size_t head) { return 0.5f * static_cast<float>(head + 1); }

bool close(double a, double b, double tolerance) {
  return std::abs(a - b) <= tolerance * (1 + std::abs(b));  // false for NaN
}

// Zeros in the box channels, mark(i) in the others of head i.
Result<std::vector<Tensor>> probe(const Tail& tail) {
  std::vector<Tensor> heads;
  for (size_t i = 0; i < tail.graph.inputs.size(); ++i) {
    const TensorType& type = tail.graph.value(tail.graph.inputs[i]).type;
    FERRY_TRY(head, Tensor::make(type));
    const int64_t plane = type.shape[2] * type.shape[3], row = type.shape[1] / tail.anchors;
    const auto values = head.mut<float>();
    for (size_t at = 0; at < values.size(); ++at) {
      const int64_t channel = static_cast<int64_t>(at) / plane % type.shape[1];
      if (channel % row >= 4) values[at] = mark(i);
    }
    heads.push_back(std::move(head));
  }
  return heads;
}

// Any numbers that are the same on every machine (splitmix64), in -6 … 6.
Result<std::vector<Tensor>> random_heads(const Tail& tail) {
  uint64_t state = 0x5eed;
  const auto next = [&] {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<float>((z ^ (z >> 31)) >> 40) * 0x1p-24f * 12 - 6;
  };
  std::vector<Tensor> heads;
  for (const ValueId id : tail.graph.inputs) {
    FERRY_TRY(head, Tensor::make(tail.graph.value(id).type));
    for (float& value : head.mut<float>()) value = next();
    heads.push_back(std::move(head));
  }
  return heads;
}

struct Detect {
  std::vector<size_t> order;  // of tail.heads, as the rows have them
  Floats anchors, strides;
};

// Reads one level off the rows at `first`: [anchor, y, x], each row (x, y, w, h, …).
bool read_level(const Tail& tail, std::span<const float> rows, int64_t row, size_t head,
                Detect& detect) {
  const Shape& shape = tail.graph.value(tail.graph.inputs[head]).type.shape;
  const double stride = 2 * static_cast<double>(rows[0]);
  if (!(stride > 0) || !std::isfinite(stride)) return false;
  size_t at = 0;
  for (int64_t a = 0; a < tail.anchors; ++a) {
    const double width = rows[at + 2], height = rows[at + 3];
    if (!(width > 0 && height > 0) || !std::isfinite(width) || !std::isfinite(height)) return false;
    for (int64_t y = 0; y < shape[2]; ++y) {
      for (int64_t x = 0; x < shape[3]; ++x, at += static_cast<size_t>(row)) {
        const bool fits = close(rows[at], (static_cast<double>(x) + 0.5) * stride, 1e-5) &&
                          close(rows[at + 1], (static_cast<double>(y) + 0.5) * stride, 1e-5) &&
                          close(rows[at + 2], width, 1e-5) && close(rows[at + 3], height, 1e-5);
        if (!fits) return false;
      }
    }
    detect.anchors.push_back(width);
    detect.anchors.push_back(height);
  }
  detect.order.push_back(head);
  detect.strides.push_back(stride);
  return true;
}

// Level after level, each told by its mark; nullopt when the answer is no Detect layer's.
std::optional<Detect> read_answer(const Tail& tail, const Tensor& answer) {
  const int64_t row = answer.shape()[2];
  std::span<const float> rows = answer.as<float>();
  rows =
      rows.first(static_cast<size_t>(answer.shape()[1] * row));  // the first picture of the batch
  Detect detect;
  while (!rows.empty()) {
    size_t head = 0;
    while (head < tail.heads.size() && !close(rows[4], sigmoid(mark(head)), 1e-5)) ++head;
    const bool is_new =
        std::find(detect.order.begin(), detect.order.end(), head) == detect.order.end();
    if (head == tail.heads.size() || !is_new) return std::nullopt;
    const Shape& shape = tail.graph.value(tail.graph.inputs[head]).type.shape;
    const auto size = static_cast<size_t>(tail.anchors * shape[2] * shape[3] * row);
    if (size == 0 || size > rows.size() || !read_level(tail, rows, row, head, detect)) {
      return std::nullopt;
    }
    rows = rows.subspan(size);
  }
  if (detect.order.size() != tail.heads.size()) return std::nullopt;
  return detect;
}

Node detect_node(const Tail& tail, const Detect& detect, std::string name, int64_t row) {
  Node node;
  node.op = &ops::op("yolo_detect");
  node.name = std::move(name);
  for (const size_t i : detect.order) node.inputs.push_back(tail.heads[i]);
  node.outputs = {tail.output};
  node.attrs = {{"anchors", detect.anchors}, {"strides", detect.strides}, {"classes", row - 5}};
  return node;
}

// Does `node` answer random heads as the tail does?
Result<bool> agrees(const Tail& tail, const Detect& detect, const Node& node) {
  FERRY_TRY(heads, random_heads(tail));
  FERRY_TRY(expected, ops::evaluate(tail.graph, heads));
  std::vector<const Tensor*> arguments;
  for (const size_t i : detect.order) arguments.push_back(&heads[i]);
  FERRY_TRY(found, ops::evaluate_node(node, arguments));
  if (found[0].type() != expected[0].type()) return false;
  const auto a = found[0].as<float>(), b = expected[0].as<float>();
  for (size_t i = 0; i < a.size(); ++i) {
    if (!close(a[i], b[i], 1e-4)) return false;
  }
  return true;
}

// The yolo_detect that `tail` is, or nullopt.
Result<std::optional<Node>> as_detect(const Tail& tail, std::string_view name) {
  FERRY_TRY(heads, probe(tail));
  FERRY_TRY(answer, ops::evaluate(tail.graph, heads));
  const auto detect = read_answer(tail, answer[0]);
  if (!detect) return std::optional<Node>();
  Node node = detect_node(tail, *detect, std::string(name), answer[0].shape()[2]);
  FERRY_TRY(same, agrees(tail, *detect, node));
  return same ? std::optional<Node>(std::move(node)) : std::optional<Node>();
}

}  // namespace

Result<int> recognise_detect(Graph& graph) {
  int found = 0;
  for (const ValueId output : std::vector<ValueId>(graph.outputs)) {
    const TensorType& type = graph.value(output).type;
    const int from = producers(graph)[static_cast<size_t>(output)];
    if (from < 0 || type.dtype != DType::kF32 || type.shape.size() != 3 || type.shape[2] < 6)
      continue;
    Node& last = graph.nodes[static_cast<size_t>(from)];
    if (last.op == &ops::op("yolo_detect") || last.outputs.size() != 1) continue;
    for (const Stop stop : {Stop::kAtShape, Stop::kAtConvolution}) {
      const auto tail = find_tail(graph, output, stop);
      if (!tail) continue;
      // A tail that the reference cannot run (too large, say) is not recognised; it runs as it is.
      auto node = as_detect(*tail, last.name);
      if (!node.ok() || !*node) continue;
      last = **std::move(node);  // the tail's other nodes lose their last use
      ++found;
      break;
    }
  }
  if (found > 0) prune(graph);
  return found;
}

}  // namespace ferry::passes

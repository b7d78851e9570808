// The graph's text form, which tests are written in and `--dump-pass` prints. It round-trips.
//
//   graph {
//     input images: f32[1,3,8,8]
//     const w: f32[4,3,3,3] = uniform(1, -1, 1)
//     const b: f32[4] = {0, 0.5, 1, -1}
//     y: f32[1,4,8,8] = conv2d(images, w, b) pads=[1,1,1,1] @ "model.0.conv"
//     z = relu(y)
//     output z
//   }
//
// Types of computed values may be left out when reading (they are inferred) and are checked when
// given. `_` is an absent input. Several outputs: `a, b = split(x) axis=1 sizes=[2,2]`. Attributes:
// integer, float, "string", [list]. Attributes at their defaults are not printed. `@ "…"` is the
// node's name, when it differs from its first output's. Constants: `{v, …}` all elements in
// row-major order, or a generator: `zeros()`, `full(v)`, `iota(start, step)`, `uniform(seed, low,
// high)`, `normal(seed, mean, sd)` (splitmix64, the same on every machine). `#` starts a comment.
// A value that is not kept as f32 says so behind its type: `y: f32[1,4,8,8] as u8(0.1, 12)`,
// `as bf16`, `as i8(0.5, 0.25, …)` (Storage, graph.h). Names hold letters, digits, `_`, `.`, `/`,
// `:`; others are written as "quoted strings" with \ escapes.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "graph/graph.h"
#include "graph/op_def.h"

namespace ferry::graph {

enum class ConstantText {
  kFull,    // every element: round-trips
  kElided,  // `...` for more than 16 elements: for people; cannot be read back
};

std::string print(const Graph& graph, ConstantText constants = ConstantText::kFull);

// Reads the text form; `ops` are the ops it may name. The result is verified. Errors carry line and
// column. Constants of one text may hold 64 Mi elements in all, so that hostile text cannot exhaust
// memory.
Result<Graph> parse(std::string_view text, std::span<const OpDef* const> ops);

}  // namespace ferry::graph

// The checks that shape rules of many ops share. Messages carry the numbers; the node's name is
// added by the caller.
#pragma once

#include <string_view>
#include <vector>

#include "graph/op_def.h"

namespace ferry::ops {

using Types = std::vector<graph::TensorType>;

// Input `i`, or null where the node leaves it out.
inline const graph::TensorType* input_or_null(const graph::InferArgs& args, size_t i) {
  return i < args.inputs.size() ? args.inputs[i] : nullptr;
}
inline const graph::Tensor* input_or_null(const graph::EvalArgs& args, size_t i) {
  return i < args.inputs.size() ? args.inputs[i] : nullptr;
}

// One output of this type, refused when it is too large to exist.
Result<Types> one_output(graph::DType dtype, graph::Shape shape);

Status need_f32(const graph::InferArgs& args);  // every input that is present is f32
Status need_same_dtype(
    const graph::InferArgs& args);  // every input that is present has the first one's dtype
Status need_rank(const graph::InferArgs& args, size_t input, size_t rank, std::string_view what);
// Input `i`, when present, has exactly this shape.
Status need_shape(const graph::InferArgs& args, size_t i, const graph::Shape& shape,
                  std::string_view what);

// -rank … rank-1 → 0 … rank-1.
Result<size_t> axis_of(int64_t axis, size_t rank);
// The same for a list; refuses duplicates. Sorted.
Result<std::vector<size_t>> axes_of(const graph::Ints& axes, size_t rank);

// Product that stops at the largest int64 instead of overflowing: for counting work. REQUIRES: a, b
// >= 0.
int64_t saturating_product(int64_t a, int64_t b);
// 0 when the op refuses the inputs: elements of output 0.
int64_t output_elements(const graph::InferArgs& args);

}  // namespace ferry::ops

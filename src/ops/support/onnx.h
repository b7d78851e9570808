// What ONNX converters share. A converter may be called with whatever a file holds: it checks
// before it reads.
#pragma once

#include <vector>

#include "graph/op_def.h"

namespace ferry::ops {

inline bool has_input(const graph::ForeignNode& node, size_t i) {
  return i < node.inputs.size() && node.inputs[i] != nullptr;
}
// The first `least` inputs are there, and there are at most `most`.
Status need_inputs(const graph::ForeignNode& node, size_t least, size_t most);
// Fails when the node has more outputs than `most`.
Status need_outputs(const graph::ForeignNode& node, int most);

// The first `count` inputs (absent ones stay absent) with these attributes.
graph::Converted with_inputs(const graph::ForeignNode& node, size_t count, graph::Attrs attrs = {});

// The numbers of constant input `i`; an error when it is absent or not constant.
Result<graph::Floats> need_floats(const graph::ForeignNode& node, size_t i);
Result<graph::Ints> need_ints(const graph::ForeignNode& node, size_t i);

// A list that old opsets give as an attribute and new ones as a constant input; empty when it is
// nowhere.
Result<graph::Ints> ints_of(const graph::ForeignNode& node, std::string_view attr, size_t input);

// TensorProto.DataType → dtype; half precision becomes f32, as the importer does with
// half-precision data.
Result<graph::DType> onnx_dtype(int64_t code);

}  // namespace ferry::ops

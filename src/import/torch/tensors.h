// Tensors of a checkpoint: `torch._utils._rebuild_tensor_v2(storage, offset, size, stride, …)` and
// its relatives become graph::Tensor. Contiguous ones are views of the file; others are copied into
// row-major order. Types stay as stored.
#pragma once

#include <map>

#include "base/result.h"
#include "graph/tensor.h"
#include "import/torch/checkpoint.h"

namespace ferry::import::torch {

// True for a call that makes a tensor or a parameter.
bool is_tensor(const Value& value);

class TensorReader {
 public:
  // `checkpoint` must outlive the reader; the tensors outlive both.
  explicit TensorReader(Checkpoint& checkpoint);

  // The same value gives the same bytes. Every offset, stride and size is checked against the
  // storage; memory for copies is bounded by a multiple of the file's length, so that many views of
  // one storage cannot exhaust it.
  Result<graph::Tensor> read(const Value& value);

 private:
  Result<graph::Tensor> rebuild(const Value& call, int depth);
  Result<graph::Tensor> gather(const Value& call, bool typed_by_argument);

  Checkpoint& checkpoint_;
  int64_t budget_;  // bytes that copies may still take
  std::map<const Value*, graph::Tensor> known_;
};

}  // namespace ferry::import::torch

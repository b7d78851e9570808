// Reads a Python pickle, protocols 0 to 5, into an inert tree (value.h). Nothing in it is imported,
// called or executed: an instruction that would call something makes a node that says so.
//
// Follows Python's Lib/pickletools.py. Every read is checked against the end of the bytes, and
// stack, memo, node and item counts have limits, so hostile input costs bounded memory and time
// linear in its length.
#pragma once

#include <cstddef>
#include <memory>

#include "base/result.h"
#include "import/torch/value.h"

namespace ferry::import::torch {

struct PickleLimits {
  size_t bytes = size_t{256} << 20;
  size_t nodes = 2'000'000;   // yolov5x6 has about 60 000
  size_t items = 16'000'000;  // entries of lists, tuples, dicts, sets together
  size_t stack = 1'000'000;
  size_t memo = 4'000'000;  // largest memo index
};

struct Pickle {
  std::shared_ptr<const Arena> arena;  // owns everything below
  const Value* root = nullptr;
  size_t consumed =
      0;  // bytes up to and with STOP; legacy checkpoints hold several pickles in a row
};

// Errors name the instruction and its offset. A pickle that ends before STOP is kInvalid.
Result<Pickle> read_pickle(const Bytes& bytes, const PickleLimits& limits = {});

}  // namespace ferry::import::torch

// Where each value lies in a context's memory. Two ideas save both memory and time:
//
//   placement  a value that is only a part of a wider one lies inside it: the inputs of a channel
//   concat are slices of its
//              output, the outputs of a channel split are slices of its input, and a residual sum
//              overwrites its residual. So concat, split and the copies they stand for disappear.
//              Where two wishes collide, one is given up and the step copies instead.
//   packing    buffers whose lives do not overlap share bytes of the arena (greedy by size,
//   Pisarchyk and Lee,
//              "Efficient Memory Management for Deep Neural Net Inference", 2020).
#pragma once

#include <cstdint>
#include <vector>

namespace ferry::cpu {

inline constexpr int64_t kArenaAlignment = 64;

// A value that a step writes. Pictures are NHWC and may be slices of wider pictures; other values
// are opaque bytes.
struct PlacedValue {
  bool picture = false;
  int64_t pixels = 0;  // batch * h * w; only pictures of equal pixel counts share a buffer
  int64_t channels = 0;
  int storage = 0;            // equal numbers: equal storages; only such pictures share a buffer
  int64_t element_bytes = 4;  // follows from the storage
  int64_t bytes = 0;          // when not a picture
  bool needed = false;        // false: a constant or unused value, not placed
  bool pinned = false;        // an input or output of the graph: dense, alone in its buffer
  bool input = false;         // written before the first step
  bool output = false;        // lives until after the last step
};

struct PlacedStep {
  enum class Kind : unsigned char {
    kCompute,
    kConcat,
    kSplit
  };  // concat and split along the channels
  Kind kind = Kind::kCompute;
  std::vector<int> reads;  // values; constants left out, in the order of the inputs
  std::vector<int> writes;
  int in_place =
      -1;  // a value of `reads` that writes[0] may overwrite, element by element; -1: none
};

struct Spot {
  int buffer = -1;      // -1: not placed
  int64_t channel = 0;  // first channel inside the buffer's pixels
  int64_t stride = 0;   // channels of the buffer's pixels (pictures), 0 for others
};

struct Placement {
  std::vector<Spot> spots;              // one a value
  std::vector<int64_t> buffer_offsets;  // bytes from the arena's start
  int64_t arena_bytes = 0;
  int64_t peak_bytes = 0;  // the most that lives at one time: what no packing can go below
};

// Steps are in the order of execution.
Placement place(const std::vector<PlacedValue>& values, const std::vector<PlacedStep>& steps);

}  // namespace ferry::cpu

// How space_to_depth and depth_to_space number the channels of a block of pixels.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace ferry::ops {

// For pixel (row i, column j) of a block of b x b, and channel c of C:
enum class BlockOrder {
  kRows,  // (i*b + j)*C + c: ONNX SpaceToDepth and DepthToSpace DCR; YOLOv5's Contract and Expand
  kColumns,   // (j*b + i)*C + c: YOLOv5's Focus
  kChannels,  // (c*b + i)*b + j: ONNX DepthToSpace CRD; PyTorch's PixelShuffle and PixelUnshuffle
};

inline Result<BlockOrder> block_order(std::string_view name) {
  if (name == "rows") return BlockOrder::kRows;
  if (name == "columns") return BlockOrder::kColumns;
  if (name == "channels") return BlockOrder::kChannels;
  return error(Code::kInvalid, "unknown order '{}', expected rows, columns or channels", name);
}

inline int64_t block_channel(BlockOrder order, int64_t i, int64_t j, int64_t block, int64_t c,
                             int64_t channels) {
  switch (order) {
    case BlockOrder::kRows:
      return (i * block + j) * channels + c;
    case BlockOrder::kColumns:
      return (j * block + i) * channels + c;
    case BlockOrder::kChannels:
      return (c * block + i) * block + j;
  }
  return 0;
}

}  // namespace ferry::ops

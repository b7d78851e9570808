// Copies between channel slices, which concat and split come down to; storages may differ.
#pragma once

#include <memory>
#include <vector>

#include "backends/cpu/lowering.h"

namespace ferry::cpu {

struct Move {
  PictureRef from, to;
};

// `count` channels of a picture, from channel `first`.
PictureRef slice(PictureRef whole, int64_t first, int64_t count);

// A step that makes the moves whose two ends differ; null when none do.
std::unique_ptr<Step> move_step(std::vector<Move> moves, LowerContext& context);

}  // namespace ferry::cpu

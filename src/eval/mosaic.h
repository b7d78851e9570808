// Several pictures with boxes on one page: what `val_batch0_labels.jpg` shows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "vision/draw.h"
#include "vision/picture.h"

namespace ferry::eval {

inline constexpr size_t kMosaicTiles = 16;    // a page
inline constexpr int64_t kMosaicSide = 1920;  // pixels, of the page, at most

struct Tile {
  std::string name;                       // shown in its corner
  vision::Picture picture;                // BGR
  std::vector<vision::LabeledBox> boxes;  // pixels of the picture
};

// A tile of a picture: made small enough for the page. Boxes are scaled by what is returned in
// `gain` (new / old).
struct SmallPicture {
  vision::Picture picture;
  double gain_x = 1, gain_y = 1;
};
Result<SmallPicture> tile_picture(const vision::PictureView& picture);

// The first kMosaicTiles tiles in a square grid on white, row by row. Fails with kInvalid for none.
Result<vision::Picture> mosaic(std::span<const Tile> tiles);

}  // namespace ferry::eval

#include "eval/mosaic.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "vision/resize.h"

namespace ferry::eval {
namespace {

constexpr int64_t kTileSide = 480;
constexpr uint8_t kWhite = 255;
constexpr vision::Color kNameColor = {90, 90, 90};

}  // namespace

Result<SmallPicture> tile_picture(const vision::PictureView& picture) {
  const auto longer = static_cast<double>(std::max(picture.width, picture.height));
  const double ratio = std::min(1.0, static_cast<double>(kTileSide) / longer);
  const auto side = [&](int64_t pixels) {
    return std::max<int64_t>(1, std::llround(static_cast<double>(pixels) * ratio));
  };
  FERRY_TRY(small, vision::shrink(picture, side(picture.width), side(picture.height)));
  SmallPicture result{.picture = std::move(small)};
  result.gain_x = static_cast<double>(result.picture.width()) / static_cast<double>(picture.width);
  result.gain_y =
      static_cast<double>(result.picture.height()) / static_cast<double>(picture.height);
  return result;
}

Result<vision::Picture> mosaic(std::span<const Tile> tiles) {
  if (tiles.empty()) return error(Code::kInvalid, "mosaic: there are no tiles");
  tiles = tiles.first(std::min(tiles.size(), kMosaicTiles));
  const auto columns =
      static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(tiles.size()))));
  const int64_t rows = (static_cast<int64_t>(tiles.size()) + columns - 1) / columns;
  int64_t width = 0, height = 0;  // of a cell
  for (const Tile& tile : tiles) {
    width = std::max(width, tile.picture.width());
    height = std::max(height, tile.picture.height());
  }
  FERRY_TRY(page, vision::Picture::create(columns * width, rows * height,
                                          tiles.front().picture.format()));
  for (int64_t y = 0; y < page.height(); ++y) std::memset(page.row(y), kWhite, page.width() * 3);
  vision::Annotator annotator({.line_width = 2});
  for (size_t i = 0; i < tiles.size(); ++i) {
    const Tile& tile = tiles[i];
    FERRY_TRY(drawn, tile.picture.clone());
    std::vector<vision::LabeledBox> boxes = tile.boxes;
    // Its name, as the label of a box outside the picture.
    boxes.push_back({-4, -4, -3, -3, kNameColor, tile.name});
    // Without fonts the boxes are drawn all the same.
    if (Status status = annotator.draw(drawn, boxes);
        !status.ok() && status.error().code != Code::kUnsupported) {
      return std::move(status).error();
    }
    const int64_t left = static_cast<int64_t>(i) % columns * width;
    const int64_t top = static_cast<int64_t>(i) / columns * height;
    for (int64_t y = 0; y < drawn.height(); ++y) {
      std::memcpy(page.row(top + y) + left * 3, drawn.row(y), drawn.width() * 3);
    }
  }
  return page;
}

}  // namespace ferry::eval

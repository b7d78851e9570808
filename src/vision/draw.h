// Draws boxes with labels into a picture, in the look that YOLOv5's users know.
//
// Boxes are plain rows of pixels. Labels are laid out by Pango, so any script works that some
// installed font covers (Debian: fonts-dejavu-core for Latin, Greek, Cyrillic, Arabic;
// fonts-wqy-microhei for Chinese, Japanese, Korean). A label is laid out once and kept as a mask:
// video frames repeat the same few labels.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "vision/picture.h"

namespace ferry::vision {

class LabelMaker;

struct Color {
  uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Color&) const = default;
};

// Ultralytics' twenty class colours (#FF3838, #FF9D97, ...), round and round; negative ids count as
// their distance.
Color class_color(int64_t class_id);

// Ultralytics' default: round((height + width + 3) / 2 * 0.003) pixels (the three are the
// channels), at least 2.
int64_t default_line_width(int64_t width, int64_t height);

// Corners in pixels of the picture, truncated to whole pixels as upstream does; may lie outside of
// it. A box with a corner that is not a number is not drawn.
struct LabeledBox {
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  Color color = {255, 56, 56};
  std::string label = {};  // UTF-8, one line; empty for none; longer than 200 characters is cut
};

struct DrawOptions {
  int64_t line_width =
      0;  // pixels; 0: default_line_width of the picture. Text grows with it: 8 times as high.
  std::string font = "sans-serif";  // a fontconfig family; other fonts fill in what it lacks
};

// One thread at a time; each thread its own (they share nothing).
class Annotator {
 public:
  explicit Annotator(DrawOptions options = {});
  ~Annotator();
  Annotator(Annotator&&) noexcept;
  Annotator& operator=(Annotator&&) noexcept;

  // Draws in the order given, each box with its label: white on the box's colour, above the box, or
  // inside it at the top edge of the picture, moved left where it would leave the picture. Fails
  // with kUnsupported when there are labels but no font is installed; the boxes are drawn then too.
  Status draw(Picture& picture, std::span<const LabeledBox> boxes);

  // Whether some label drawn so far has characters that no installed font covers (shown as small
  // boxes); time to tell the user which fonts to install.
  bool missing_glyphs() const { return missing_glyphs_; }

 private:
  DrawOptions options_;
  std::unique_ptr<LabelMaker> labels_;  // made with the first label: fontconfig takes its time
  bool missing_glyphs_ = false;
};

}  // namespace ferry::vision

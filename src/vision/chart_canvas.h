// What charts are drawn on: a Cairo surface with texts by Pango. Internal to vision.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "vision/draw.h"
#include "vision/picture.h"

namespace ferry::vision {

struct Rect {
  double x = 0, y = 0, width = 0, height = 0;  // pixels
  double right() const { return x + width; }
  double bottom() const { return y + height; }
  bool contains(double px, double py) const {
    return px >= x && px <= right() && py >= y && py <= bottom();
  }
};

struct TextStyle {
  double size = 16;  // pixels, of the em
  Color color = {40, 40, 40};
  double anchor_x = 0, anchor_y = 0;  // of the text's own box: 0 left or top, 1 right or bottom
  bool upward = false;                // turned to be read from below; anchors are those before
  bool bold = false;
};

struct TextSize {
  double width = 0, height = 0;
};

// White to begin with. One thread at a time.
class ChartCanvas {
 public:
  // kInvalid for sides that Cairo cannot hold, kUnsupported when no font is installed.
  static Result<ChartCanvas> create(int64_t width, int64_t height, const std::string& font);
  ~ChartCanvas();
  ChartCanvas(ChartCanvas&&) noexcept;
  ChartCanvas& operator=(ChartCanvas&&) noexcept;

  TextSize measure(const std::string& text, double size) const;
  void text(const std::string& text, double x, double y, const TextStyle& style);

  void fill(const Rect& rect, Color color, double opacity = 1);
  // Whole pixels, without soft edges: cells that touch leave no seam.
  void fill_cell(const Rect& rect, Color color);
  void frame(const Rect& rect, Color color, double width);
  void line(double x1, double y1, double x2, double y2, Color color, double width);
  void disc(double x, double y, double radius, Color color, double opacity = 1);

  // A line through many points: begin, any number of `path_to`, end.
  void path_from(double x, double y);
  void path_to(double x, double y);
  void stroke_path(Color color, double width);

  // Until `unclip`, nothing is drawn outside.
  void clip(const Rect& rect);
  void unclip();

  // kNoMemory when Cairo ran into trouble.
  Result<Picture> picture() const;

 private:
  struct State;
  explicit ChartCanvas(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ferry::vision

// Charts as pictures: lines, bars, points, rectangles, histograms in two dimensions, matrices with
// numbers. For the plots of `val` and `check-data` and the pages about performance, so it knows
// little: a figure is a grid of panels, a panel is axes and what is drawn inside them. Drawn by
// Cairo, texts by Pango in any script that an installed font covers.
//
//   Panel panel{.title = "F1", .x = {.label = "Confidence", .low = 0, .high = 1}};
//   panel.lines.push_back({.x = xs, .y = ys, .label = "all classes"});
//   FERRY_TRY(picture, draw_figure({.panels = {panel}}));
//   FERRY_CHECK_OK(encode_picture(picture, "f1.png"));
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "vision/draw.h"
#include "vision/picture.h"

namespace ferry::vision {

enum class AxisScale : unsigned char { kLinear, kLog10 };

// One side of a panel. Without `low` and `high` the axis covers what is drawn, bars from zero.
struct Axis {
  std::string label = {};
  std::optional<double> low = {}, high = {};
  AxisScale scale = AxisScale::kLinear;  // kLog10: what is not above zero is not drawn
  // (optional) Names of places instead of numbers: category i stands at i, the axis reaches from
  // -0.5 to size - 0.5. Too many to be read: every second, fifth, … is written.
  std::vector<std::string> categories = {};
  bool grid = true;
};

// A value that is not finite interrupts the line.
struct Line {
  std::vector<double> x = {}, y = {};  // as many of each
  Color color = {31, 119, 180};
  double width = 1;        // in 1/500 of the panel's height: 1 is thin, 3 is thick
  std::string label = {};  // in the legend; empty: not there
};

struct Points {
  std::vector<double> x = {}, y = {};  // as many of each
  Color color = {31, 119, 180};
  double radius = 2;  // in 1/500 of the panel's height
  double opacity = 1;
  std::string label = {};
};

// Bars over categories 0, 1, 2, …; several series stand side by side.
struct Bars {
  std::vector<double> values = {};
  Color color = {31, 119, 180};
  std::vector<Color> colors = {};  // (optional) one a bar, instead of `color`
  std::string label = {};
  std::string value_format = {};  // (optional) as fmt's, "{:.1f}": written above each bar
};

// The outline of a rectangle in the axes' units.
struct Outline {
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  Color color = {31, 119, 180};
};

// [rows][columns], row by row. Cell (r, c) has its centre at y = r, x = c unless `x_low` … say
// which part of the axes the matrix covers. NaN stays white.
struct HeatMap {
  int64_t rows = 0, columns = 0;
  std::vector<double> values = {};
  std::optional<double> low = {}, high = {};  // of the colours; without: from the values
  std::optional<double> x_low = {}, x_high = {}, y_low = {}, y_high = {};
  std::string value_format = {};  // (optional) as fmt's, "{:.2f}": written into each cell
  bool color_bar = false;
};

enum class LegendPlace : unsigned char {
  kInside,   // where it covers least, of the four corners
  kOutside,  // right of the panel; long ones get several columns
};

struct Panel {
  std::string title = {};
  Axis x = {}, y = {};
  bool y_down = false;  // the y axis grows downward, as in pictures and matrices
  bool square = false;  // one unit is as long on both axes
  LegendPlace legend = LegendPlace::kInside;
  // Drawn in this order.
  std::vector<HeatMap> heat_maps = {};
  std::vector<Bars> bars = {};
  std::vector<Outline> outlines = {};
  std::vector<Points> points = {};
  std::vector<Line> lines = {};
};

struct Figure {
  int64_t width = 1600, height = 1200;  // pixels
  int64_t columns = 0;                  // of panels; 0: as many as make the grid nearly square
  double text_size = 0;                 // pixels; 0: by the size of a panel
  std::string font = "sans-serif";      // a fontconfig family; other fonts fill in what it lacks
  std::vector<Panel> panels = {};       // row by row
};

// BGR on white. kInvalid for sides that no picture has, no panels, columns that are of different
// lengths or formats that are none; kUnsupported when no font is installed.
Result<Picture> draw_figure(const Figure& figure);

// How many points fall into each cell of a grid over [x_low, x_high] x [y_low, y_high], row 0 at
// y_low; points outside are not counted. Empty cells are NaN, so that they stay white.
struct Grid {
  int64_t columns = 50, rows = 50;
  double x_low = 0, x_high = 1, y_low = 0, y_high = 1;
};
HeatMap histogram_2d(std::span<const double> x, std::span<const double> y, const Grid& grid = {});

}  // namespace ferry::vision

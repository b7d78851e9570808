#include "vision/chart_panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace ferry::vision {
namespace {

constexpr Color kInk = {60, 60, 60};
constexpr Color kGridColor = {228, 228, 228};
constexpr Color kPale = {255, 255, 255};
constexpr double kTitleSize = 1.2;   // of the text's size, as all below
constexpr double kLineHeight = 1.4;  // of a text with its distance to the next
constexpr double kGap = 0.5;
constexpr double kColorBarWidth = 1.0;
constexpr double kSwatch = 1.6;  // the sample of a line in the legend

// From white to deep blue.
Color heat_color(double part) {
  constexpr std::array<std::array<double, 3>, 5> kRamp = {
      {{246, 250, 255}, {194, 217, 240}, {105, 172, 216}, {34, 112, 182}, {8, 46, 108}}};
  const double at = std::clamp(part, 0.0, 1.0) * (kRamp.size() - 1);
  const size_t i = std::min(static_cast<size_t>(at), kRamp.size() - 2);
  const double t = at - static_cast<double>(i);
  const auto mix = [&](size_t c) {
    return static_cast<uint8_t>(std::lround(kRamp[i][c] * (1 - t) + kRamp[i + 1][c] * t));
  };
  return {mix(0), mix(1), mix(2)};
}

std::string formatted(const std::string& format, double value) {
  return fmt::vformat(format, fmt::make_format_args(value));  // checked before by check_panel
}

// Where a line one pixel wide covers whole pixels.
double sharp(double at) { return std::floor(at) + 0.5; }

struct LegendRow {
  std::string label;
  Color color;
  enum class Kind : unsigned char { kLine, kDot, kBar } kind = Kind::kLine;
  double width = 1;  // of the line, pixels
};

class PanelPainter {
 public:
  PanelPainter(ChartCanvas& canvas, const Panel& panel, const PanelScales& scales, double text)
      : canvas_(canvas), panel_(panel), scales_(scales), text_(text) {}

  void draw(const Rect& place);

 private:
  void list_legend();
  void lay_out(const Rect& place);
  void choose_ticks(double width, double height);
  double widest(const std::vector<Tick>& ticks, double size) const;
  void fit_square();

  void draw_axes();
  void draw_titles(const Rect& place);
  void draw_marks();
  void draw_heat_map(const HeatMap& map);
  void draw_bars();
  void draw_points(const Points& points);
  void draw_line(const Line& line);
  void draw_color_bar(const HeatMap& map);
  void draw_legend();
  TextSize legend_size() const;
  Rect emptiest_corner(const TextSize& size) const;

  double to_x(double value) const { return plot_.x + scales_.x.position(value) * plot_.width; }
  double to_y(double value) const {
    const double part = scales_.y.position(value);
    return plot_.y + (panel_.y_down ? part : 1 - part) * plot_.height;
  }
  double unit() const { return plot_.height / 500; }  // what widths are given in

  ChartCanvas& canvas_;
  const Panel& panel_;
  const PanelScales& scales_;
  const double text_;
  Rect plot_;
  std::vector<LegendRow> legend_;
  std::vector<Tick> x_ticks_, y_ticks_;
  double x_tick_size_ = 0, y_tick_size_ = 0;
  bool x_upward_ = false;
  double color_bar_width_ = 0;  // with its numbers; 0: there is none
  double legend_width_ = 0;     // outside
  size_t legend_rows_ = 1;      // in a column
};

void PanelPainter::list_legend() {
  for (const Bars& b : panel_.bars) {
    if (!b.label.empty()) legend_.push_back({b.label, b.color, LegendRow::Kind::kBar});
  }
  for (const Points& p : panel_.points) {
    if (!p.label.empty()) legend_.push_back({p.label, p.color, LegendRow::Kind::kDot});
  }
  for (const Line& l : panel_.lines) {
    if (!l.label.empty()) legend_.push_back({l.label, l.color, LegendRow::Kind::kLine, l.width});
  }
}

double PanelPainter::widest(const std::vector<Tick>& ticks, double size) const {
  double widest = 0;
  for (const Tick& tick : ticks) widest = std::max(widest, canvas_.measure(tick.label, size).width);
  return widest;
}

// For a plot of about this size. Categories may be written smaller, and upward.
void PanelPainter::choose_ticks(double width, double height) {
  x_tick_size_ = y_tick_size_ = text_ * 0.9;
  const auto small = [&](double slot) {
    return std::clamp(slot * 0.85, text_ * 0.55, text_ * 0.9);
  };
  const auto& columns = panel_.x.categories;
  const auto& rows = panel_.y.categories;
  if (columns.empty()) {
    const double longest = widest(number_ticks(scales_.x, 6), x_tick_size_);
    x_ticks_ = number_ticks(scales_.x, static_cast<int>(width / std::max(longest * 1.8, 1.0)));
    if (x_ticks_.size() > 11) x_ticks_ = number_ticks(scales_.x, 10);
  } else {
    const double slot = width / static_cast<double>(columns.size());
    const auto all = category_ticks(columns, static_cast<int>(columns.size()));
    x_upward_ = widest(all, x_tick_size_) > slot * 0.9;
    if (x_upward_) x_tick_size_ = small(slot);
    x_ticks_ =
        x_upward_ ? category_ticks(columns, static_cast<int>(width / (x_tick_size_ * 1.1))) : all;
  }
  if (rows.empty()) {
    y_ticks_ = number_ticks(scales_.y, std::clamp(static_cast<int>(height / (text_ * 2)), 2, 10));
  } else {
    y_tick_size_ = small(height / static_cast<double>(rows.size()));
    y_ticks_ = category_ticks(rows, static_cast<int>(height / (y_tick_size_ * 1.1)));
  }
}

void PanelPainter::lay_out(const Rect& place) {
  choose_ticks(place.width * 0.8, place.height * 0.8);
  const double title = panel_.title.empty() ? text_ * kGap : text_ * kTitleSize * 1.8;
  const double x_labels =
      x_upward_ ? std::min(widest(x_ticks_, x_tick_size_), place.height * 0.3) : x_tick_size_ * 1.2;
  const double bottom = x_labels + text_ * (2 * kGap + (panel_.x.label.empty() ? 0 : kLineHeight));
  const double left = std::min(widest(y_ticks_, y_tick_size_), place.width * 0.4) +
                      text_ * (2 * kGap + (panel_.y.label.empty() ? 0 : kLineHeight));
  double right = text_ * 1.5;
  for (const HeatMap& map : panel_.heat_maps) {
    if (!map.color_bar) continue;
    color_bar_width_ =
        text_ * (kColorBarWidth + 2 * kGap) + widest(number_ticks(heat_scale(map), 8), text_ * 0.9);
  }
  right += color_bar_width_;
  const double height = place.height - title - bottom;
  if (panel_.legend == LegendPlace::kOutside && !legend_.empty()) {
    legend_rows_ = std::max<size_t>(
        1, std::min(legend_.size(), static_cast<size_t>(height / (text_ * kLineHeight))));
    legend_width_ = std::min(legend_size().width, place.width * 0.6);
    right += legend_width_ + text_ * kGap;
  } else {
    legend_rows_ = std::max<size_t>(1, legend_.size());
  }
  plot_ = {place.x + left, place.y + title, std::max(place.width - left - right, 1.0),
           std::max(height, 1.0)};
  if (panel_.square) fit_square();
  choose_ticks(plot_.width, plot_.height);
}

// Shrinks the longer side until one unit is as long on both axes.
void PanelPainter::fit_square() {
  const double units_x = scales_.x.high - scales_.x.low, units_y = scales_.y.high - scales_.y.low;
  const double unit = std::min(plot_.width / units_x, plot_.height / units_y);
  const double width = unit * units_x, height = unit * units_y;
  plot_ = {plot_.x + (plot_.width - width) / 2, plot_.y + (plot_.height - height) / 2, width,
           height};
}

void PanelPainter::draw_axes() {
  const double thin = std::max(1.0, text_ / 16), mark = text_ * 0.25;
  for (const Tick& tick : x_ticks_) {
    const double x = sharp(to_x(tick.value));
    if (panel_.x.grid && panel_.x.categories.empty()) {
      canvas_.line(x, plot_.y, x, plot_.bottom(), kGridColor, thin);
    }
    canvas_.line(x, plot_.bottom(), x, plot_.bottom() + mark, kInk, thin);
    canvas_.text(tick.label, x, plot_.bottom() + text_ * kGap,
                 {.size = x_tick_size_,
                  .anchor_x = x_upward_ ? 1.0 : 0.5,
                  .anchor_y = x_upward_ ? 0.5 : 0.0,
                  .upward = x_upward_});
  }
  for (const Tick& tick : y_ticks_) {
    const double y = sharp(to_y(tick.value));
    if (panel_.y.grid && panel_.y.categories.empty()) {
      canvas_.line(plot_.x, y, plot_.right(), y, kGridColor, thin);
    }
    canvas_.line(plot_.x - mark, y, plot_.x, y, kInk, thin);
    canvas_.text(tick.label, plot_.x - text_ * kGap, y,
                 {.size = y_tick_size_, .anchor_x = 1, .anchor_y = 0.5});
  }
}

void PanelPainter::draw_titles(const Rect& place) {
  const double middle_x = plot_.x + plot_.width / 2;
  canvas_.text(panel_.title, middle_x, plot_.y - text_ * kGap,
               {.size = text_ * kTitleSize, .anchor_x = 0.5, .anchor_y = 1, .bold = true});
  const double below = plot_.bottom() + text_ * 1.5 * kGap +
                       (x_upward_ ? widest(x_ticks_, x_tick_size_) : x_tick_size_ * 1.2);
  canvas_.text(panel_.x.label, middle_x, std::min(below, place.bottom() - text_ * 1.2),
               {.size = text_, .anchor_x = 0.5});
  const double before = plot_.x - text_ * 2 * kGap - widest(y_ticks_, y_tick_size_);
  canvas_.text(panel_.y.label, std::max(before, place.x + text_ * kLineHeight),
               plot_.y + plot_.height / 2,
               {.size = text_, .anchor_x = 0.5, .anchor_y = 1, .upward = true});
}

void PanelPainter::draw_heat_map(const HeatMap& map) {
  const Scale colors = heat_scale(map);
  const auto columns = static_cast<double>(map.columns), rows = static_cast<double>(map.rows);
  const double x0 = map.x_low.value_or(-0.5), x1 = map.x_high.value_or(columns - 0.5);
  const double y0 = map.y_low.value_or(-0.5), y1 = map.y_high.value_or(rows - 0.5);
  for (int64_t r = 0; r < map.rows; ++r) {
    const double top = to_y(y0 + (y1 - y0) * static_cast<double>(r) / rows);
    const double bottom = to_y(y0 + (y1 - y0) * static_cast<double>(r + 1) / rows);
    for (int64_t c = 0; c < map.columns; ++c) {
      const double value = map.values[static_cast<size_t>(r * map.columns + c)];
      if (std::isnan(value)) continue;
      const double left = to_x(x0 + (x1 - x0) * static_cast<double>(c) / columns);
      const double right = to_x(x0 + (x1 - x0) * static_cast<double>(c + 1) / columns);
      const Rect cell = {std::min(left, right), std::min(top, bottom), std::abs(right - left),
                         std::abs(bottom - top)};
      const double part = colors.position(value);
      canvas_.fill_cell(cell, heat_color(part));
      if (map.value_format.empty()) continue;
      const std::string number = formatted(map.value_format, value);
      const TextSize size = canvas_.measure(number, 100);
      const double fits =
          std::min({text_, 90 * cell.width / size.width, 80 * cell.height / size.height});
      canvas_.text(
          number, cell.x + cell.width / 2, cell.y + cell.height / 2,
          {.size = fits, .color = part > 0.5 ? kPale : kInk, .anchor_x = 0.5, .anchor_y = 0.5});
    }
  }
}

void PanelPainter::draw_bars() {
  const auto series = static_cast<double>(panel_.bars.size());
  const double wide = 0.8 / series;  // of a category
  for (size_t s = 0; s < panel_.bars.size(); ++s) {
    const Bars& bars = panel_.bars[s];
    for (size_t i = 0; i < bars.values.size(); ++i) {
      const double value = bars.values[i];
      if (!std::isfinite(value)) continue;
      const double from = static_cast<double>(i) - 0.4 + wide * static_cast<double>(s);
      const double left = to_x(from), right = to_x(from + wide * (series > 1 ? 0.95 : 1));
      const double zero = scales_.y.kind == AxisScale::kLog10 ? scales_.y.low : 0;
      double top = to_y(value), foot = std::isnan(top) ? top : to_y(zero);
      if (std::isnan(top)) continue;
      if (top > foot) std::swap(top, foot);
      top = std::clamp(top, plot_.y, plot_.bottom());
      foot = std::clamp(foot, plot_.y, plot_.bottom());
      canvas_.fill({left, top, right - left, foot - top},
                   bars.colors.empty() ? bars.color : bars.colors[i]);
      if (bars.value_format.empty()) continue;
      const std::string number = formatted(bars.value_format, value);
      const double fits =
          std::min(text_ * 0.85, 100 * (right - left) * 1.1 / canvas_.measure(number, 100).width);
      canvas_.text(number, (left + right) / 2, top - text_ * 0.1,
                   {.size = fits, .color = kInk, .anchor_x = 0.5, .anchor_y = 1});
    }
  }
}

void PanelPainter::draw_points(const Points& points) {
  for (size_t i = 0; i < points.x.size(); ++i) {
    const double x = to_x(points.x[i]), y = to_y(points.y[i]);
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    canvas_.disc(x, y, points.radius * unit(), points.color, points.opacity);
  }
}

void PanelPainter::draw_line(const Line& line) {
  bool down = false;
  for (size_t i = 0; i < line.x.size(); ++i) {
    const double x = to_x(line.x[i]), y = to_y(line.y[i]);
    if (!std::isfinite(x) || !std::isfinite(y)) {
      down = false;
    } else if (down) {
      canvas_.path_to(x, y);
    } else {
      canvas_.path_from(x, y);
      down = true;
    }
  }
  canvas_.stroke_path(line.color, std::max(line.width * unit(), 0.75));
}

void PanelPainter::draw_marks() {
  canvas_.clip(plot_);
  for (const HeatMap& map : panel_.heat_maps) draw_heat_map(map);
  for (const Outline& o : panel_.outlines) {
    const double x = to_x(o.x1), y = to_y(o.y1), right = to_x(o.x2), bottom = to_y(o.y2);
    if (!std::isfinite(x + y + right + bottom)) continue;
    canvas_.frame({x, y, right - x, bottom - y}, o.color, std::max(unit(), 0.75));
  }
  for (const Points& points : panel_.points) draw_points(points);
  for (const Line& line : panel_.lines) draw_line(line);
  canvas_.unclip();
}

void PanelPainter::draw_color_bar(const HeatMap& map) {
  constexpr int kSteps = 128;
  const Scale colors = heat_scale(map);
  const Rect bar = {plot_.right() + text_, plot_.y, text_ * kColorBarWidth, plot_.height};
  for (int i = 0; i < kSteps; ++i) {
    const double part = bar.height / kSteps;
    canvas_.fill_cell({bar.x, bar.bottom() - (i + 1) * part, bar.width, part},
                      heat_color((i + 0.5) / kSteps));
  }
  for (const Tick& tick : number_ticks(colors, 8)) {
    const double y = bar.bottom() - colors.position(tick.value) * bar.height;
    canvas_.line(bar.right(), y, bar.right() + text_ * 0.2, y, kInk, std::max(1.0, text_ / 16));
    canvas_.text(tick.label, bar.right() + text_ * kGap, y, {.size = text_ * 0.9, .anchor_y = 0.5});
  }
}

TextSize PanelPainter::legend_size() const {
  const size_t columns = (legend_.size() + legend_rows_ - 1) / legend_rows_;
  double width = 0;
  for (const LegendRow& row : legend_) {
    width = std::max(width, canvas_.measure(row.label, text_ * 0.9).width);
  }
  return {static_cast<double>(columns) * (width + text_ * (kSwatch + 3 * kGap)),
          static_cast<double>(legend_rows_) * text_ * kLineHeight + text_ * kGap};
}

// Of the four corners the one that covers the fewest points of lines, points and bars.
Rect PanelPainter::emptiest_corner(const TextSize& size) const {
  const double margin = text_ * kGap;
  Rect best;
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (const bool low : {false, true}) {
    for (const bool left : {false, true}) {
      const Rect corner = {left ? plot_.x + margin : plot_.right() - margin - size.width,
                           low ? plot_.bottom() - margin - size.height : plot_.y + margin,
                           size.width, size.height};
      int64_t covered = 0;
      const auto count = [&](double x, double y) { covered += corner.contains(to_x(x), to_y(y)); };
      for (const Line& l : panel_.lines) {
        for (size_t i = 0; i < l.x.size(); ++i) count(l.x[i], l.y[i]);
      }
      for (const Points& p : panel_.points) {
        for (size_t i = 0; i < p.x.size(); ++i) count(p.x[i], p.y[i]);
      }
      for (const Bars& b : panel_.bars) {
        for (size_t i = 0; i < b.values.size(); ++i) {
          const double x = to_x(static_cast<double>(i));
          covered += x >= corner.x && x <= corner.right() && to_y(b.values[i]) <= corner.bottom();
        }
      }
      if (covered < fewest) {
        fewest = covered;
        best = corner;
      }
    }
  }
  return best;
}

void PanelPainter::draw_legend() {
  if (legend_.empty()) return;
  const TextSize size = legend_size();
  const size_t columns = (legend_.size() + legend_rows_ - 1) / legend_rows_;
  const bool inside = panel_.legend == LegendPlace::kInside;
  const Rect box =
      inside ? emptiest_corner(size)
             : Rect{plot_.right() + color_bar_width_ + text_, plot_.y, legend_width_, size.height};
  canvas_.fill(box, kPale, 0.85);
  canvas_.frame(box, kGridColor, std::max(1.0, text_ / 16));
  for (size_t i = 0; i < legend_.size(); ++i) {
    const LegendRow& row = legend_[i];
    const double x =
        box.x + text_ * kGap + static_cast<double>(i / legend_rows_) * box.width / double(columns);
    const double y = box.y + text_ * (kGap / 2 + kLineHeight * (double(i % legend_rows_) + 0.5));
    switch (row.kind) {
      case LegendRow::Kind::kLine:
        canvas_.line(x, y, x + text_ * kSwatch, y, row.color, std::max(row.width * unit(), 1.0));
        break;
      case LegendRow::Kind::kDot:
        canvas_.disc(x + text_ * kSwatch / 2, y, text_ * 0.25, row.color);
        break;
      case LegendRow::Kind::kBar:
        canvas_.fill({x, y - text_ * 0.35, text_ * kSwatch, text_ * 0.7}, row.color);
        break;
    }
    canvas_.text(row.label, x + text_ * (kSwatch + kGap), y,
                 {.size = text_ * 0.9, .anchor_y = 0.5});
  }
}

void PanelPainter::draw(const Rect& place) {
  list_legend();
  const double margin = text_ * kGap;
  const Rect inner = {place.x + margin, place.y + margin, place.width - 2 * margin,
                      place.height - 2 * margin};
  lay_out(inner);
  draw_axes();
  draw_marks();
  draw_bars();
  canvas_.frame(plot_, kInk, std::max(1.0, text_ / 16));
  for (const HeatMap& map : panel_.heat_maps) {
    if (map.color_bar) draw_color_bar(map);
  }
  draw_titles(inner);
  draw_legend();
}

}  // namespace

Scale heat_scale(const HeatMap& map) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double value : map.values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  Scale scale{.low = map.low.value_or(low), .high = map.high.value_or(high)};
  if (!std::isfinite(scale.low)) scale.low = std::min(0.0, map.high.value_or(0.0) - 1);
  if (!(scale.high > scale.low) || !std::isfinite(scale.high)) scale.high = scale.low + 1;
  return scale;
}

void draw_panel(ChartCanvas& canvas, const Panel& panel, const PanelScales& scales,
                const Rect& place, double text_size) {
  PanelPainter(canvas, panel, scales, text_size).draw(place);
}

}  // namespace ferry::vision

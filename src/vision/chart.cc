#include "vision/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "vision/chart_axis.h"
#include "vision/chart_canvas.h"
#include "vision/chart_panel.h"

namespace ferry::vision {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMargin = 0.05;  // of what is drawn, beside it

Status check_format(const std::string& format) {
  if (format.empty()) return {};
  try {
    const double value = 0;
    (void)fmt::vformat(format, fmt::make_format_args(value));
  } catch (const fmt::format_error& failure) {
    return error(Code::kInvalid, "'{}' does not format a number: {}", format, failure.what());
  }
  return {};
}

Status check_axis(const Axis& axis, const char* name) {
  for (const auto& end : {axis.low, axis.high}) {
    if (end && !std::isfinite(*end)) return error(Code::kInvalid, "{} ends at {}", name, *end);
  }
  if (axis.low && axis.high && !(*axis.low < *axis.high)) {
    return error(Code::kInvalid, "{} reaches from {} to {}", name, *axis.low, *axis.high);
  }
  if (axis.scale == AxisScale::kLog10 &&
      ((axis.low && *axis.low <= 0) || (axis.high && *axis.high <= 0))) {
    return error(Code::kInvalid, "{} is logarithmic and ends at {}", name,
                 axis.low && *axis.low <= 0 ? *axis.low : *axis.high);
  }
  return {};
}

Status check_panel(const Panel& panel) {
  FERRY_CHECK_OK(check_axis(panel.x, "the x axis"));
  FERRY_CHECK_OK(check_axis(panel.y, "the y axis"));
  for (const Line& l : panel.lines) {
    if (l.x.size() != l.y.size()) {
      return error(Code::kInvalid, "a line has {} x and {} y", l.x.size(), l.y.size());
    }
  }
  for (const Points& p : panel.points) {
    if (p.x.size() != p.y.size()) {
      return error(Code::kInvalid, "points have {} x and {} y", p.x.size(), p.y.size());
    }
  }
  for (const Bars& b : panel.bars) {
    if (!b.colors.empty() && b.colors.size() != b.values.size()) {
      return error(Code::kInvalid, "{} bars have {} colours", b.values.size(), b.colors.size());
    }
    FERRY_CHECK_OK(check_format(b.value_format));
  }
  for (const HeatMap& map : panel.heat_maps) {
    if (map.rows < 1 || map.columns < 1 ||
        map.values.size() / static_cast<size_t>(map.columns) != static_cast<size_t>(map.rows) ||
        map.values.size() % static_cast<size_t>(map.columns) != 0) {
      return error(Code::kInvalid, "a heat map of {} rows and {} columns has {} values", map.rows,
                   map.columns, map.values.size());
    }
    FERRY_CHECK_OK(check_format(map.value_format));
  }
  return {};
}

// What an axis must cover.
struct Extent {
  double low = kInfinity, high = -kInfinity;
  bool tight = false;  // no margin, ends are those of a matrix or of categories
  bool from_zero = false;

  void cover(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void cover(std::span<const double> values, AxisScale scale) {
    for (const double v : values) {
      if (scale == AxisScale::kLinear || v > 0) cover(v);
    }
  }
  void cover_places(size_t count) {
    tight = true;
    cover(-0.5);
    cover(static_cast<double>(count) - 0.5);
  }
};

Scale scale_of(const Axis& axis, Extent extent) {
  Scale scale{.low = 0, .high = 1, .kind = axis.scale};
  if (extent.low <= extent.high) {
    double low = extent.low, high = extent.high;
    if (axis.scale == AxisScale::kLog10) {
      const double margin = std::max(std::pow(high / low, kMargin), 1.1);
      scale.low = extent.tight ? low : low / margin;
      scale.high = extent.tight ? high : high * margin;
    } else {
      const double margin = extent.tight ? 0 : std::max((high - low) * kMargin, 0.0);
      scale.low = extent.from_zero && low >= 0 ? 0 : low - margin;
      scale.high = high + margin;
    }
  } else if (axis.scale == AxisScale::kLog10) {
    scale.low = 0.1;
  }
  scale.low = axis.low.value_or(scale.low);
  scale.high = axis.high.value_or(scale.high);
  // One value only, or an end that the user put beyond all of it.
  if (!(scale.low < scale.high)) {
    const double room = std::max(std::abs(axis.low ? scale.low : scale.high), 1.0) * 0.5;
    const bool linear = axis.scale == AxisScale::kLinear;
    if (!axis.high) scale.high = linear ? scale.low + room : scale.low * 10;
    if (!axis.low) scale.low = linear ? scale.high - 2 * room : scale.high / 10;
  }
  return scale;
}

PanelScales scales_of(const Panel& panel) {
  Extent x, y;
  if (!panel.x.categories.empty()) x.cover_places(panel.x.categories.size());
  if (!panel.y.categories.empty()) y.cover_places(panel.y.categories.size());
  for (const HeatMap& map : panel.heat_maps) {
    x.tight = y.tight = true;
    x.cover(map.x_low.value_or(-0.5));
    x.cover(map.x_high.value_or(static_cast<double>(map.columns) - 0.5));
    y.cover(map.y_low.value_or(-0.5));
    y.cover(map.y_high.value_or(static_cast<double>(map.rows) - 0.5));
  }
  for (const Bars& b : panel.bars) {
    x.cover_places(b.values.size());
    y.cover(b.values, panel.y.scale);
    if (panel.y.scale == AxisScale::kLinear) y.cover(0);
    y.from_zero = true;
  }
  for (const Outline& o : panel.outlines) {
    x.cover(std::array{o.x1, o.x2}, panel.x.scale);
    y.cover(std::array{o.y1, o.y2}, panel.y.scale);
  }
  for (const Points& p : panel.points) {
    x.cover(p.x, panel.x.scale);
    y.cover(p.y, panel.y.scale);
  }
  for (const Line& l : panel.lines) {
    x.cover(l.x, panel.x.scale);
    y.cover(l.y, panel.y.scale);
  }
  return {scale_of(panel.x, x), scale_of(panel.y, y)};
}

}  // namespace

Result<Picture> draw_figure(const Figure& figure) {
  if (figure.panels.empty()) return error(Code::kInvalid, "a figure without panels");
  for (const Panel& panel : figure.panels) {
    FERRY_CHECK_OK(check_panel(panel).within("chart '" + panel.title + "'"));
  }
  FERRY_TRY(canvas, ChartCanvas::create(figure.width, figure.height, figure.font));
  const auto count = static_cast<int64_t>(figure.panels.size());
  const auto square = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  const int64_t columns =
      std::clamp<int64_t>(figure.columns > 0 ? figure.columns : square, 1, count);
  const int64_t rows = (count + columns - 1) / columns;
  const double width = static_cast<double>(figure.width) / static_cast<double>(columns);
  const double height = static_cast<double>(figure.height) / static_cast<double>(rows);
  const double text =
      figure.text_size > 0 ? figure.text_size : std::max(std::min(width, height * 1.5) / 60, 6.0);
  for (int64_t i = 0; i < count; ++i) {
    const Panel& panel = figure.panels[static_cast<size_t>(i)];
    const Rect place = {static_cast<double>(i % columns) * width,
                        static_cast<double>(i / columns) * height, width, height};
    draw_panel(canvas, panel, scales_of(panel), place, text);
  }
  return canvas.picture();
}

HeatMap histogram_2d(std::span<const double> x, std::span<const double> y, const Grid& grid) {
  HeatMap map{.rows = grid.rows,
              .columns = grid.columns,
              .x_low = grid.x_low,
              .x_high = grid.x_high,
              .y_low = grid.y_low,
              .y_high = grid.y_high};
  map.values.assign(static_cast<size_t>(grid.rows * grid.columns),
                    std::numeric_limits<double>::quiet_NaN());
  // The cell of a value, the upper end belonging to the last; -1 outside.
  const auto cell = [](double value, double low, double high, int64_t count) -> int64_t {
    if (!(value >= low && value <= high)) return -1;
    const double part = (value - low) / (high - low) * static_cast<double>(count);
    return std::min(static_cast<int64_t>(part), count - 1);
  };
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    const int64_t c = cell(x[i], grid.x_low, grid.x_high, grid.columns);
    const int64_t r = cell(y[i], grid.y_low, grid.y_high, grid.rows);
    if (c < 0 || r < 0) continue;
    double& value = map.values[static_cast<size_t>(r * grid.columns + c)];
    value = std::isnan(value) ? 1 : value + 1;
  }
  map.low = 0;
  return map;
}

}  // namespace ferry::vision

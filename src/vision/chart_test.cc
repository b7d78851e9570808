#include "vision/chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "vision/chart_axis.h"

namespace ferry::vision {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr Color kRed = {255, 0, 0};

std::vector<std::string> labels_of(const std::vector<Tick>& ticks) {
  std::vector<std::string> labels;
  for (const Tick& tick : ticks) labels.push_back(tick.label);
  return labels;
}

using Labels = std::vector<std::string>;

TEST(ChartTicks, AreMultiplesOfOneTwoFive) {
  EXPECT_EQ(labels_of(number_ticks({.low = 0, .high = 1}, 5)),
            Labels({"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"}));
  EXPECT_EQ(labels_of(number_ticks({.low = -30, .high = 70}, 5)),
            Labels({"-20", "0", "20", "40", "60"}));
  EXPECT_EQ(labels_of(number_ticks({.low = 0.013, .high = 0.021}, 4)),
            Labels({"0.014", "0.016", "0.018", "0.020"}));
  EXPECT_EQ(labels_of(number_ticks({.low = 0, .high = 3e7}, 3)),
            Labels({"0", "1e+07", "2e+07", "3e+07"}));
}

TEST(ChartTicks, OfALogarithmicAxisArePowersOfTen) {
  EXPECT_EQ(labels_of(number_ticks({.low = 1, .high = 1000, .kind = AxisScale::kLog10}, 4)),
            Labels({"1", "10", "100", "1000"}));
  EXPECT_EQ(labels_of(number_ticks({.low = 0.1, .high = 2, .kind = AxisScale::kLog10}, 6)),
            Labels({"0.1", "0.2", "0.5", "1", "2"}));
  EXPECT_EQ(labels_of(number_ticks({.low = 3, .high = 4, .kind = AxisScale::kLog10}, 2)),
            Labels({"3.0", "3.5", "4.0"}));  // no power of ten: as on a linear axis
}

TEST(ChartTicks, LeaveOutCategoriesThatDoNotFit) {
  EXPECT_EQ(labels_of(category_ticks({"a", "b", "c"}, 3)), Labels({"a", "b", "c"}));
  EXPECT_EQ(labels_of(category_ticks({"a", "b", "c", "d", "e"}, 3)), Labels({"a", "c", "e"}));
  EXPECT_EQ(category_ticks(Labels(1000, "x"), 20).size(), 20u);  // every 50th
  EXPECT_EQ(category_ticks(Labels(1000, "x"), 0).size(), 1u);
  EXPECT_TRUE(category_ticks({}, 5).empty());
}

TEST(ChartScale, PlacesValues) {
  const Scale linear{.low = 10, .high = 20};
  EXPECT_EQ(linear.position(15), 0.5);
  const Scale decades{.low = 1, .high = 100, .kind = AxisScale::kLog10};
  EXPECT_NEAR(decades.position(10), 0.5, 1e-12);
  EXPECT_TRUE(std::isnan(decades.position(0)));
  EXPECT_TRUE(std::isnan(decades.position(-1)));
}

TEST(Histogram2d, CountsWhatLiesInside) {
  const std::vector<double> x = {0, 0.1, 0.9, 1, 1.1, kNaN}, y = {0, 0.2, 0.1, 1, 0.5, 0.5};
  const HeatMap map = histogram_2d(x, y, {.columns = 2, .rows = 2});
  ASSERT_EQ(map.values.size(), 4u);
  EXPECT_EQ(map.values[0], 2);  // x low, y low
  EXPECT_EQ(map.values[1], 1);
  EXPECT_TRUE(std::isnan(map.values[2]));
  EXPECT_EQ(map.values[3], 1);  // the upper ends belong to the last cell
}

int64_t count(const Picture& picture, Color color) {
  int64_t found = 0;
  for (int64_t y = 0; y < picture.height(); ++y) {
    for (int64_t x = 0; x < picture.width(); ++x) {
      const uint8_t* p = picture.view().at(x, y);
      found += p[0] == color.blue && p[1] == color.green && p[2] == color.red;
    }
  }
  return found;
}

Picture drawn(const Panel& panel) {
  Result<Picture> picture = draw_figure({.width = 400, .height = 300, .panels = {panel}});
  if (!picture.ok()) {
    ADD_FAILURE() << picture.error().message;
    return *Picture::create(1, 1);
  }
  return *std::move(picture);
}

TEST(Chart, IsAsLargeAsAskedAndBgrOnWhite) {
  const Picture picture = drawn({});
  EXPECT_EQ(picture.width(), 400);
  EXPECT_EQ(picture.height(), 300);
  EXPECT_EQ(picture.format(), PixelFormat::kBgr8);
  EXPECT_GT(count(picture, {255, 255, 255}), 400 * 300 * 8 / 10);
}

TEST(Chart, BarsAreAsHighAsTheirValues) {
  const auto area = [](double value) {
    Panel panel{.y = {.low = 0, .high = 10}};
    panel.bars.push_back({.values = {value}, .color = kRed});
    return static_cast<double>(count(drawn(panel), kRed));
  };
  const double two = area(2);
  EXPECT_GT(two, 1000);
  EXPECT_NEAR(area(4) / two, 2, 0.05);
  EXPECT_NEAR(area(8) / two, 4, 0.1);
  EXPECT_EQ(area(kNaN), 0);
}

TEST(Chart, LinesStopAtWhatIsNoNumberAndAtTheAxes) {
  const auto length = [](std::vector<double> y) {
    Panel panel{.x = {.low = 0, .high = 4}, .y = {.low = 0, .high = 1}};
    panel.lines.push_back({.x = {0, 1, 2, 3, 4}, .y = std::move(y), .color = kRed, .width = 6});
    return static_cast<double>(count(drawn(panel), kRed));
  };
  const double whole = length({0.5, 0.5, 0.5, 0.5, 0.5});
  EXPECT_GT(whole, 200);
  EXPECT_NEAR(length({0.5, 0.5, kNaN, 0.5, 0.5}) / whole, 0.5, 0.05);
  EXPECT_EQ(length({7, 7, 7, 7, 7}), 0);
}

TEST(Chart, HeatMapsFillTheirCellsAndLeaveNaNWhite) {
  Panel panel{.y_down = true};
  panel.heat_maps.push_back({.rows = 2, .columns = 2, .values = {0, 1, kNaN, kNaN}});
  const Picture picture = drawn(panel);
  const int64_t low = count(picture, {246, 250, 255}), high = count(picture, {8, 46, 108});
  EXPECT_GT(low, 10000);
  EXPECT_NEAR(static_cast<double>(high) / static_cast<double>(low), 1, 0.05);
}

TEST(Chart, DrawsEverythingAtOnceInAnyScript) {
  Panel panel{.title = "标题 Заголовок <b>&", .x = {.label = "x"}, .y = {.label = "y\nz"}};
  panel.x.categories = {"安全帽", std::string("broken \xff utf-8"), ""};
  panel.heat_maps.push_back({.rows = 3,
                             .columns = 3,
                             .values = std::vector<double>(9, 0.5),
                             .value_format = "{:.2f}",
                             .color_bar = true});
  panel.bars.push_back({.values = {1, -2, 3}, .label = "bars", .value_format = "{:.1f}"});
  panel.outlines.push_back({0, 0, 1, kNaN});
  panel.outlines.push_back({0, 0, 1, 1});
  panel.points.push_back({.x = {1, 2}, .y = {1, kNaN}, .opacity = 0.5, .label = "points"});
  panel.lines.push_back({.x = {0, 1}, .y = {0, 1}, .label = std::string(500, 'w')});
  for (const LegendPlace place : {LegendPlace::kInside, LegendPlace::kOutside}) {
    panel.legend = place;
    for (const bool square : {false, true}) {
      panel.square = square;
      for (const auto& [width, height] : {std::pair{700, 500}, {40, 30}, {1, 1}}) {
        const auto picture = draw_figure(
            {.width = width, .height = height, .panels = {panel, panel, panel, Panel{}}});
        ASSERT_TRUE(picture.ok()) << picture.error().message;
      }
    }
  }
}

TEST(Chart, DrawsOneValueOnly) {
  for (const AxisScale scale : {AxisScale::kLinear, AxisScale::kLog10}) {
    Panel panel{.x = {.scale = scale}, .y = {.scale = scale}};
    panel.points.push_back({.x = {5}, .y = {5}, .color = kRed, .radius = 10});
    EXPECT_GT(count(drawn(panel), kRed), 20);
  }
}

std::string refusal(const Figure& figure) {
  const Result<Picture> picture = draw_figure(figure);
  return picture.ok() ? "" : picture.error().message;
}

TEST(Chart, RefusesWhatDoesNotFitTogether) {
  EXPECT_EQ(refusal({}), "a figure without panels");
  EXPECT_EQ(refusal({.width = 0, .panels = {{}}}),
            "a figure of 0 x 1200 pixels cannot be drawn; sides are 1 to 32767");
  Panel panel{.title = "t"};
  panel.lines.push_back({.x = {1, 2}, .y = {1}});
  EXPECT_EQ(refusal({.panels = {panel}}), "chart 't': a line has 2 x and 1 y");
  panel.lines.clear();
  panel.heat_maps.push_back({.rows = 2, .columns = 2, .values = {1, 2, 3}});
  EXPECT_EQ(refusal({.panels = {panel}}),
            "chart 't': a heat map of 2 rows and 2 columns has 3 values");
  panel.heat_maps = {{.rows = 1, .columns = 1, .values = {1}, .value_format = "{:q}"}};
  EXPECT_NE(refusal({.panels = {panel}}), "");
  panel.heat_maps.clear();
  panel.bars.push_back({.values = {1, 2}, .colors = {kRed}});
  EXPECT_EQ(refusal({.panels = {panel}}), "chart 't': 2 bars have 1 colours");
  panel.bars.clear();
  panel.x = {.low = 1, .high = 1};
  EXPECT_EQ(refusal({.panels = {panel}}), "chart 't': the x axis reaches from 1 to 1");
  panel.x = {.low = 0, .scale = AxisScale::kLog10};
  EXPECT_EQ(refusal({.panels = {panel}}), "chart 't': the x axis is logarithmic and ends at 0");
}

}  // namespace
}  // namespace ferry::vision

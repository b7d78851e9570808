#include "data/stats.h"

#include <algorithm>
#include <set>

#include "vision/chart.h"

namespace ferry::data {
namespace {

constexpr double kInputSide = 640;
constexpr size_t kMostOutlines = 2000;  // drawn over each other

}  // namespace

Stats stats_of(const Dataset& dataset) {
  Stats stats{.classes = std::vector<ClassCount>(dataset.names.size())};
  stats.pictures = static_cast<int64_t>(dataset.samples.size());
  for (const Sample& sample : dataset.samples) {
    const int64_t longer = std::max(sample.width, sample.height);
    const int64_t shorter = std::min(sample.width, sample.height);
    stats.largest_side = std::max(stats.largest_side, longer);
    stats.smallest_side =
        stats.smallest_side == 0 ? shorter : std::min(stats.smallest_side, shorter);
    stats.backgrounds += sample.labels.empty();
    const auto count = static_cast<int64_t>(sample.labels.size());
    stats.boxes += count;
    stats.most_boxes = std::max(stats.most_boxes, count);
    std::set<int32_t> seen;
    for (const Label& label : sample.labels) {
      ClassCount& in_class = stats.classes[static_cast<size_t>(label.class_id)];
      ++in_class.boxes;
      in_class.pictures += seen.insert(label.class_id).second;
      const double width = label.width * static_cast<double>(sample.width);
      const double height = label.height * static_cast<double>(sample.height);
      const double area = width * height;
      ++stats.by_area[area < 32 * 32 ? 0 : area < 96 * 96 ? 1 : 2];
      const double side = std::max(width, height) * kInputSide / static_cast<double>(longer);
      size_t bin = 0;
      for (double limit = 8; bin + 1 < stats.by_side.size() && side >= limit; limit *= 2) ++bin;
      ++stats.by_side[bin];
      bin = 0;
      for (double limit = 0.25; bin + 1 < stats.by_aspect.size() && height >= limit * width;
           limit *= 2)
        ++bin;
      ++stats.by_aspect[bin];
    }
  }
  if (stats.pictures > 0)
    stats.boxes_a_picture = static_cast<double>(stats.boxes) / static_cast<double>(stats.pictures);
  return stats;
}

Result<vision::Picture> draw_labels(const Dataset& dataset) {
  const Stats stats = stats_of(dataset);
  vision::Panel classes{.title = "instances"};
  classes.x.categories = dataset.names;
  vision::Bars bars;
  for (size_t i = 0; i < stats.classes.size(); ++i) {
    bars.values.push_back(static_cast<double>(stats.classes[i].boxes));
    bars.colors.push_back(vision::class_color(static_cast<int64_t>(i)));
  }
  if (bars.values.size() <= 12) bars.value_format = "{:.0f}";
  classes.bars.push_back(std::move(bars));

  vision::Panel boxes{.title = "boxes, all centred"};
  boxes.x = {.low = 0, .high = 1, .grid = false};
  boxes.y = {.low = 0, .high = 1, .grid = false};
  boxes.y_down = true;
  std::vector<double> x, y, width, height;
  for (const Sample& sample : dataset.samples) {
    for (const Label& label : sample.labels) {
      x.push_back(label.x);
      y.push_back(label.y);
      width.push_back(label.width);
      height.push_back(label.height);
    }
  }
  // A fair part of them: every n-th.
  const size_t step = x.size() / kMostOutlines + 1;
  size_t index = 0;
  for (const Sample& sample : dataset.samples) {
    for (const Label& label : sample.labels) {
      if (index++ % step != 0) continue;
      boxes.outlines.push_back({0.5 - label.width / 2, 0.5 - label.height / 2,
                                0.5 + label.width / 2, 0.5 + label.height / 2,
                                vision::class_color(label.class_id)});
    }
  }
  const auto heat = [](const char* x_label, const char* y_label, const std::vector<double>& a,
                       const std::vector<double>& b) {
    vision::Panel panel;
    panel.x = {.label = x_label, .low = 0, .high = 1};
    panel.y = {.label = y_label, .low = 0, .high = 1};
    panel.heat_maps.push_back(vision::histogram_2d(a, b));
    return panel;
  };
  vision::Panel centres = heat("x", "y", x, y);
  centres.title = "centres";
  centres.y_down = true;
  vision::Panel sizes = heat("width", "height", width, height);
  sizes.title = "sizes, parts of the picture";
  return vision::draw_figure(
      {.width = 1600,
       .height = 1600,
       .columns = 2,
       .panels = {std::move(classes), std::move(boxes), std::move(centres), std::move(sizes)}});
}

}  // namespace ferry::data

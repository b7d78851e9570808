#include "eval/plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "vision/chart.h"
#include "vision/draw.h"
#include "vision/encode.h"

namespace ferry::eval {
namespace {

constexpr size_t kColoredClasses = 20;    // more are gray
constexpr int64_t kNumberedClasses = 29;  // of a confusion matrix
constexpr int64_t kNamedClasses = 98;
constexpr double kLeastShown = 0.005;  // would be written as 0.00
constexpr double kMeanSmoothing = 0.05;
constexpr vision::Color kGray = {160, 160, 160}, kBlue = {0, 0, 255};

std::string name_of(int64_t id, std::span<const std::string> names) {
  const auto i = static_cast<size_t>(id);
  return i < names.size() ? names[i] : std::to_string(id);
}

Curve points() {
  Curve x(kCurvePoints);
  for (size_t i = 0; i < kCurvePoints; ++i) x[i] = curve_point(i);
  return x;
}

Curve mean_of(const UltralyticsReport& report, Curve ClassScore::*curve) {
  Curve mean(kCurvePoints, 0.0);
  for (const ClassScore& score : report.classes) {
    for (size_t i = 0; i < kCurvePoints; ++i) {
      mean[i] += (score.*curve)[i] / static_cast<double>(report.classes.size());
    }
  }
  return mean;
}

// Axes from 0 to 1 and a line a class; the mean is still to come.
vision::Panel class_lines(const UltralyticsReport& report, Curve ClassScore::*curve,
                          std::span<const std::string> names) {
  vision::Panel panel{.legend = vision::LegendPlace::kOutside};
  for (vision::Axis* axis : {&panel.x, &panel.y}) {
    axis->low = 0;
    axis->high = 1;
  }
  const bool colored = report.classes.size() <= kColoredClasses;
  for (const ClassScore& score : report.classes) {
    vision::Line line{.x = points(), .y = score.*curve, .color = kGray};
    if (colored) {
      line.color = vision::class_color(score.class_id);
      line.label = name_of(score.class_id, names);
    }
    panel.lines.push_back(std::move(line));
  }
  return panel;
}

Result<vision::Picture> draw(vision::Panel panel) {
  return vision::draw_figure({.width = 2250, .height = 1500, .panels = {std::move(panel)}});
}

}  // namespace

Result<vision::Picture> draw_pr_curve(const UltralyticsReport& report,
                                      std::span<const std::string> names) {
  vision::Panel panel = class_lines(report, &ClassScore::pr_curve, names);
  panel.title = "Precision-Recall Curve";
  panel.x.label = "Recall";
  panel.y.label = "Precision";
  for (size_t c = 0; c < report.classes.size(); ++c) {
    std::string& label = panel.lines[c].label;
    if (!label.empty()) label += fmt::format(" {:.3f}", report.classes[c].ap50());
  }
  panel.lines.push_back({.x = points(),
                         .y = mean_of(report, &ClassScore::pr_curve),
                         .color = kBlue,
                         .width = 3,
                         .label = fmt::format("all classes {:.3f} mAP@0.5", report.map50)});
  return draw(std::move(panel));
}

Result<vision::Picture> draw_confidence_curve(const UltralyticsReport& report,
                                              ConfidenceCurve which,
                                              std::span<const std::string> names) {
  struct Kind {
    const char* name;
    Curve ClassScore::*curve;
  };
  const Kind kind = [&]() -> Kind {
    switch (which) {
      case ConfidenceCurve::kPrecision:
        return {"Precision", &ClassScore::precision_curve};
      case ConfidenceCurve::kRecall:
        return {"Recall", &ClassScore::recall_curve};
      case ConfidenceCurve::kF1:
        return {"F1", &ClassScore::f1_curve};
    }
    return {};
  }();
  vision::Panel panel = class_lines(report, kind.curve, names);
  panel.title = fmt::format("{}-Confidence Curve", kind.name);
  panel.x.label = "Confidence";
  panel.y.label = kind.name;
  const Curve mean = smoothed(mean_of(report, kind.curve), kMeanSmoothing);
  const auto best = static_cast<size_t>(std::ranges::max_element(mean) - mean.begin());
  panel.lines.push_back(
      {.x = points(),
       .y = mean,
       .color = kBlue,
       .width = 3,
       .label = fmt::format("all classes {:.2f} at {:.3f}", mean[best], curve_point(best))});
  return draw(std::move(panel));
}

Result<vision::Picture> draw_confusion(const ConfusionMatrix& matrix,
                                       std::span<const std::string> names) {
  const int64_t classes = matrix.classes(), side = classes + 1;
  vision::HeatMap map{.rows = side, .columns = side, .low = 0, .color_bar = true};
  map.values.assign(static_cast<size_t>(side * side), std::numeric_limits<double>::quiet_NaN());
  for (int64_t truth = 0; truth < side; ++truth) {
    int64_t all = 0;
    for (int64_t predicted = 0; predicted < side; ++predicted) all += matrix.at(predicted, truth);
    for (int64_t predicted = 0; predicted < side; ++predicted) {
      const double part =
          static_cast<double>(matrix.at(predicted, truth)) / (static_cast<double>(all) + 1e-9);
      if (part < kLeastShown) continue;
      map.values[static_cast<size_t>(predicted * side + truth)] = part;
    }
  }
  if (classes <= kNumberedClasses) map.value_format = "{:.2f}";
  vision::Panel panel{.title = "Confusion Matrix",
                      .x = {.label = "True", .grid = false},
                      .y = {.label = "Predicted", .grid = false},
                      .y_down = true,
                      .square = true};
  const bool named = classes <= kNamedClasses && std::cmp_equal(names.size(), classes);
  for (vision::Axis* axis : {&panel.x, &panel.y}) {
    for (int64_t id = 0; id < classes; ++id) {
      axis->categories.push_back(named ? names[static_cast<size_t>(id)] : std::to_string(id));
    }
    axis->categories.push_back("background");
  }
  panel.heat_maps.push_back(std::move(map));
  return vision::draw_figure({.width = 3000,
                              .height = 2250,
                              .text_size = classes < 50 ? 50.0 : 32.0,
                              .panels = {std::move(panel)}});
}

Status write_plots(const std::string& folder, const UltralyticsReport& report,
                   const ConfusionMatrix& matrix, std::span<const std::string> names) {
  const auto write = [&](Result<vision::Picture> picture, const char* name) -> Status {
    if (!picture.ok()) return std::move(picture).error().within(name);
    return vision::encode_picture(*picture, folder + "/" + name);
  };
  if (report.map50 > 0 || report.recall > 0) {
    FERRY_CHECK_OK(write(draw_pr_curve(report, names), "PR_curve.png"));
    for (const auto& [which, name] : {std::pair{ConfidenceCurve::kPrecision, "P_curve.png"},
                                      {ConfidenceCurve::kRecall, "R_curve.png"},
                                      {ConfidenceCurve::kF1, "F1_curve.png"}}) {
      FERRY_CHECK_OK(write(draw_confidence_curve(report, which, names), name));
    }
  }
  return write(draw_confusion(matrix, names), "confusion_matrix.png");
}

}  // namespace ferry::eval

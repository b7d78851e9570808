#include "eval/ultralytics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace ferry::eval {
namespace {

constexpr double kEpsilon = 1e-16;
constexpr size_t kApPoints = 101;
constexpr double kSmoothing = 0.1;

// torch.linspace(0.5, 0.95, 10) in fp32: from both ends.
std::array<float, kIouCount> iou_thresholds() {
  const float step = (0.95f - 0.5f) / static_cast<float>(kIouCount - 1);
  std::array<float, kIouCount> thresholds;
  for (size_t i = 0; i < kIouCount; ++i) {
    thresholds[i] = i < kIouCount / 2 ? 0.5f + step * static_cast<float>(i)
                                      : 0.95f - step * static_cast<float>(kIouCount - 1 - i);
  }
  return thresholds;
}

// numpy.linspace(0, 1, count)[i]: a multiple of the rounded step.
double linspace(size_t i, size_t count) {
  if (i == count - 1) return 1;
  return static_cast<double>(i) * (1.0 / static_cast<double>(count - 1));
}

// numpy.interp: `x` rises, of equal ones the last counts; `before` is the value left of x[0].
double interpolate(double at, std::span<const double> x, std::span<const double> y, double before) {
  if (at < x.front()) return before;
  if (at >= x.back()) return y.back();
  const auto above = static_cast<size_t>(std::ranges::upper_bound(x, at) - x.begin());
  const size_t below = above - 1;
  if (x[below] == at) return y[below];
  const double slope = (y[above] - y[below]) / (x[above] - x[below]);
  return slope * (at - x[below]) + y[below];
}

struct PrecisionRecall {
  std::vector<double> recall, precision;  // with upstream's end points; precision never rises
};

PrecisionRecall envelope(std::span<const double> recall, std::span<const double> precision) {
  PrecisionRecall pr{{0.0}, {1.0}};
  pr.recall.insert(pr.recall.end(), recall.begin(), recall.end());
  pr.precision.insert(pr.precision.end(), precision.begin(), precision.end());
  pr.recall.push_back(1.0);
  pr.precision.push_back(0.0);
  for (size_t i = pr.precision.size() - 1; i-- > 0;) {
    pr.precision[i] = std::max(pr.precision[i], pr.precision[i + 1]);
  }
  return pr;
}

// The area under the curve: the trapezoids between 101 points of recall.
double average_precision(const PrecisionRecall& pr) {
  double area = 0, previous = 0;
  for (size_t i = 0; i < kApPoints; ++i) {
    const double y =
        interpolate(linspace(i, kApPoints), pr.recall, pr.precision, pr.precision.front());
    if (i > 0) {
      area += (linspace(i, kApPoints) - linspace(i - 1, kApPoints)) * (y + previous) / 2;
    }
    previous = y;
  }
  return area;
}

// The first place whose value is the greatest but for rounding.
size_t first_of_highest(const Curve& curve) {
  const double enough = *std::ranges::max_element(curve) - 1e-12;
  return static_cast<size_t>(std::ranges::find_if(curve, [&](double v) { return v >= enough; }) -
                             curve.begin());
}

// Everything that depends on the confidence where the mean F1 is best, and the means.
void summarize(UltralyticsReport& report) {
  const auto count = static_cast<double>(report.classes.size());
  Curve mean_f1(kCurvePoints, 0.0);
  for (const ClassScore& score : report.classes) {
    for (size_t x = 0; x < kCurvePoints; ++x) mean_f1[x] += score.f1_curve[x] / count;
  }
  const size_t best = first_of_highest(smoothed(mean_f1, kSmoothing));
  report.best_confidence = curve_point(best);
  for (ClassScore& score : report.classes) {
    score.precision = score.precision_curve[best];
    score.recall = score.recall_curve[best];
    score.f1 = score.f1_curve[best];
    const double hits = std::rint(score.recall * static_cast<double>(score.truths));
    score.true_positives = static_cast<int64_t>(hits);
    score.false_positives =
        static_cast<int64_t>(std::rint(hits / (score.precision + kEpsilon) - hits));
    report.precision += score.precision / count;
    report.recall += score.recall / count;
    report.f1 += score.f1 / count;
    report.map50 += score.ap50() / count;
    report.map50_95 += score.ap50_95() / count;
  }
  report.fitness = 0.1 * report.map50 + 0.9 * report.map50_95;
}

}  // namespace

double curve_point(size_t i) { return linspace(i, kCurvePoints); }

Curve smoothed(const Curve& curve, double fraction) {
  const auto length = static_cast<double>(curve.size());
  const int64_t width = std::llrint(length * fraction * 2) / 2 + 1;
  const int64_t reach = width / 2, last = static_cast<int64_t>(curve.size()) - 1;
  Curve out(curve.size());
  for (int64_t i = 0; i <= last; ++i) {
    double sum = 0;
    for (int64_t k = i - reach; k <= i + reach; ++k) {
      sum += curve[static_cast<size_t>(std::clamp<int64_t>(k, 0, last))];
    }
    out[static_cast<size_t>(i)] = sum / static_cast<double>(width);
  }
  return out;
}

double ClassScore::ap50_95() const {
  return std::accumulate(ap.begin(), ap.end(), 0.0) / static_cast<double>(kIouCount);
}

void UltralyticsMetric::add(std::span<const Truth> truths,
                            std::span<const vision::Detection> detections) {
  static const std::array<float, kIouCount> kThresholds = iou_thresholds();
  for (const Truth& truth : truths) {
    const auto id = static_cast<size_t>(truth.class_id);
    if (truths_.size() <= id) truths_.resize(id + 1);
    ++truths_[id];
  }
  std::vector<uint16_t> correct(detections.size());
  const IouTable iou(truths, detections);
  for (size_t i = 0; i < kIouCount; ++i) {
    const std::vector<int64_t> found =
        match(iou, truths.size(), detections.size(), Choose::kEarliest,
              [&](size_t t, size_t d, float value) {
                return value >= kThresholds[i] && truths[t].class_id == detections[d].class_id;
              });
    for (size_t d = 0; d < found.size(); ++d) {
      if (found[d] >= 0) correct[d] |= static_cast<uint16_t>(1u << i);
    }
  }
  for (size_t d = 0; d < detections.size(); ++d) {
    scored_.push_back({detections[d].confidence, detections[d].class_id, correct[d]});
  }
}

// AP and curves of one class. `found` are its detections by falling confidence.
void UltralyticsMetric::score_curves(std::span<const Scored> found, ClassScore& score) {
  std::vector<double> falling;  // the confidences, negated, so that they rise
  for (const Scored& s : found) falling.push_back(-static_cast<double>(s.confidence));
  std::vector<double> recall(found.size()), precision(found.size());
  for (size_t i = 0; i < kIouCount; ++i) {
    double hits = 0;
    for (size_t k = 0; k < found.size(); ++k) {
      hits += (found[k].correct >> i) & 1;
      recall[k] = hits / (static_cast<double>(score.truths) + kEpsilon);
      precision[k] = hits / static_cast<double>(k + 1);
    }
    const PrecisionRecall pr = envelope(recall, precision);
    score.ap[i] = average_precision(pr);
    if (i > 0) continue;
    for (size_t x = 0; x < kCurvePoints; ++x) {
      const double at = curve_point(x);
      const double p = interpolate(-at, falling, precision, 1.0);
      const double r = interpolate(-at, falling, recall, 0.0);
      score.precision_curve[x] = p;
      score.recall_curve[x] = r;
      score.f1_curve[x] = 2 * p * r / (p + r + kEpsilon);
      score.pr_curve[x] = interpolate(at, pr.recall, pr.precision, pr.precision.front());
    }
  }
}

UltralyticsReport UltralyticsMetric::report() const {
  UltralyticsReport report;
  std::vector<std::vector<Scored>> by_class(truths_.size());
  bool any = false;
  for (const Scored& s : scored_) {
    any = any || s.correct != 0;
    const auto id = static_cast<size_t>(s.class_id);
    if (id < by_class.size()) by_class[id].push_back(s);
  }
  for (size_t id = 0; id < truths_.size(); ++id) {
    if (truths_[id] == 0) continue;
    ClassScore& score = report.classes.emplace_back();
    score.class_id = static_cast<int32_t>(id);
    score.truths = truths_[id];
    for (Curve* curve :
         {&score.precision_curve, &score.recall_curve, &score.f1_curve, &score.pr_curve}) {
      curve->assign(kCurvePoints, 0.0);
    }
    std::vector<Scored>& found = by_class[id];
    if (found.empty() || !any) continue;
    std::ranges::stable_sort(found, std::greater<>{}, &Scored::confidence);
    score_curves(found, score);
  }
  if (any) summarize(report);
  return report;
}

}  // namespace ferry::eval

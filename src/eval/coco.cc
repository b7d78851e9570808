#include "eval/coco.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace ferry::eval {
namespace {

constexpr size_t kRecallPoints = 101;
constexpr int32_t kMaxDetections[] = {1, 10, 100};
// All, small, medium, large: both ends belong to the range.
constexpr std::pair<double, double> kAreaRanges[] = {
    {0, 1e10}, {0, 32.0 * 32.0}, {32.0 * 32.0, 96.0 * 96.0}, {96.0 * 96.0, 1e10}};

// numpy.linspace(first, last, count)[i]; its last point is exact.
double linspace(double first, double last, size_t count, size_t i) {
  if (i == count - 1) return last;
  return first + static_cast<double>(i) * ((last - first) / static_cast<double>(count - 1));
}

double iou_threshold(size_t i) { return linspace(0.5, 0.95, 10, i); }

bool outside(double area, const std::pair<double, double>& range) {
  return area < range.first || area > range.second;
}

// maskApi.c, bbIou: a crowd is covered by the part of the detection that lies in it.
double overlap(const CocoRect& detection, const CocoRect& truth, bool crowd) {
  const double width =
      std::min(detection[0] + detection[2], truth[0] + truth[2]) - std::max(detection[0], truth[0]);
  const double height =
      std::min(detection[1] + detection[3], truth[1] + truth[3]) - std::max(detection[1], truth[1]);
  if (width <= 0 || height <= 0) return 0;
  const double both = width * height, own = detection[2] * detection[3];
  return both / (crowd ? own : own + truth[2] * truth[3] - both);
}

// [detections][truths]
std::vector<double> overlaps_of(std::span<const CocoDetection* const> detections,
                                std::span<const CocoTruth> truths) {
  std::vector<double> overlaps;
  overlaps.reserve(detections.size() * truths.size());
  for (const CocoDetection* d : detections) {
    for (const CocoTruth& t : truths) overlaps.push_back(overlap(d->box, t.box, t.crowd));
  }
  return overlaps;
}

// The truth that a detection takes, or -1: of those with an overlap of at least `threshold` that
// nobody took (crowds are never taken) the closest, of equals the last. `order` has what counts
// before what is `ignored`, which is only taken for want of something that counts.
int64_t choose(std::span<const double> overlaps, double threshold, std::span<const size_t> order,
               std::span<const CocoTruth> truths, const std::vector<bool>& ignored,
               const std::vector<bool>& taken) {
  double closest = std::min(threshold, 1 - 1e-10);
  int64_t chosen = -1;
  for (const size_t t : order) {
    if (taken[t] && !truths[t].crowd) continue;
    if (chosen >= 0 && !ignored[static_cast<size_t>(chosen)] && ignored[t]) break;
    if (overlaps[t] < closest) continue;
    closest = overlaps[t];
    chosen = static_cast<int64_t>(t);
  }
  return chosen;
}

}  // namespace

CocoMetric::CocoMetric(int64_t classes) : classes_(static_cast<size_t>(classes)) {}

void CocoMetric::add(int64_t image_id, std::span<const CocoTruth> truths,
                     std::span<const CocoDetection> detections) {
  std::map<int32_t, std::pair<std::vector<CocoTruth>, std::vector<CocoDetection>>> by_class;
  const auto known = [&](int32_t id) { return static_cast<size_t>(id) < classes_.size(); };
  for (const CocoTruth& t : truths) {
    if (known(t.class_id)) by_class[t.class_id].first.push_back(t);
  }
  for (const CocoDetection& d : detections) {
    if (known(d.class_id)) by_class[d.class_id].second.push_back(d);
  }
  for (const auto& [id, both] : by_class) {
    add_class(image_id, both.first, both.second, classes_[static_cast<size_t>(id)]);
  }
}

// COCOeval.evaluateImg for each range of areas.
void CocoMetric::add_class(int64_t image_id, std::span<const CocoTruth> truths,
                           std::span<const CocoDetection> detections, PerClass& into) {
  std::vector<const CocoDetection*> best;
  for (const CocoDetection& d : detections) best.push_back(&d);
  std::ranges::stable_sort(best, std::greater<>{}, [](const CocoDetection* d) { return d->score; });
  best.resize(std::min(best.size(), static_cast<size_t>(kMaxDetections[2])));
  const size_t first = into.judged.size();
  for (size_t d = 0; d < best.size(); ++d) {
    into.judged.push_back(
        {.score = best[d]->score, .image_id = image_id, .rank = static_cast<int32_t>(d)});
  }
  const std::vector<double> overlaps = overlaps_of(best, truths);
  for (size_t area = 0; area < kAreas; ++area) {
    std::vector<bool> ignored(truths.size());
    for (size_t t = 0; t < truths.size(); ++t) {
      ignored[t] = truths[t].crowd || outside(truths[t].area, kAreaRanges[area]);
      if (!ignored[t]) ++into.truths[area];
    }
    std::vector<size_t> order(truths.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_partition(order, [&](size_t t) { return !ignored[t]; });
    for (size_t i = 0; i < kThresholds; ++i) {
      const auto bit = static_cast<uint16_t>(1u << i);
      std::vector<bool> taken(truths.size());
      for (size_t d = 0; d < best.size(); ++d) {
        const std::span<const double> row(overlaps.data() + d * truths.size(), truths.size());
        const int64_t t = choose(row, iou_threshold(i), order, truths, ignored, taken);
        Judged& judged = into.judged[first + d];
        if (t >= 0) {
          taken[static_cast<size_t>(t)] = true;
          judged.matched[area] |= bit;
          if (ignored[static_cast<size_t>(t)]) judged.ignored[area] |= bit;
        } else if (outside(best[d]->box[2] * best[d]->box[3], kAreaRanges[area])) {
          judged.ignored[area] |= bit;
        }
      }
    }
  }
}

namespace {

// Means over what is there; -1 when nothing is.
class Mean {
 public:
  void add(double value) {
    if (value < 0) return;
    sum_ += value;
    ++count_;
  }
  double value() const { return count_ == 0 ? -1 : sum_ / static_cast<double>(count_); }

 private:
  double sum_ = 0;
  int64_t count_ = 0;
};

// Precision at 101 points of recall, averaged. Both curves have a value a detection.
double average_precision(std::span<const double> recall, std::vector<double>& precision) {
  for (size_t k = precision.size(); k-- > 1;) {
    precision[k - 1] = std::max(precision[k - 1], precision[k]);
  }
  double sum = 0;
  size_t at = 0;  // the first detection with at least the point's recall
  for (size_t p = 0; p < kRecallPoints; ++p) {
    while (at < recall.size() && recall[at] < linspace(0, 1, kRecallPoints, p)) ++at;
    if (at < recall.size()) sum += precision[at];
  }
  return sum / static_cast<double>(kRecallPoints);
}

}  // namespace

// One class, area and threshold of COCOeval.accumulate. `sorted` stands by falling score.
CocoMetric::Scored CocoMetric::score(std::span<const Judged> sorted, int64_t truths, size_t area,
                                     size_t threshold) {
  Scored scored;
  if (truths == 0) return scored;
  const auto all = static_cast<double>(truths);
  std::vector<double> recall, precision;
  std::array<double, 3> hits_of = {};  // among the 1, 10, 100 best of each picture
  double hits = 0, misses = 0;
  for (const Judged& j : sorted) {
    const bool counts = ((j.ignored[area] >> threshold) & 1) == 0;
    const bool matched = ((j.matched[area] >> threshold) & 1) != 0;
    hits += counts && matched;
    misses += counts && !matched;
    recall.push_back(hits / all);
    precision.push_back(hits / (hits + misses + std::numeric_limits<double>::epsilon()));
    for (size_t m = 0; m < hits_of.size(); ++m) {
      hits_of[m] += counts && matched && j.rank < kMaxDetections[m];
    }
  }
  scored.ap = average_precision(recall, precision);
  for (size_t m = 0; m < hits_of.size(); ++m) scored.recall[m] = hits_of[m] / all;
  return scored;
}

// COCOeval.accumulate and summarize.
CocoReport CocoMetric::report() const {
  CocoReport report;
  report.class_ap.assign(classes_.size(), -1);
  report.class_ap50.assign(classes_.size(), -1);
  Mean ap50, ap75;
  std::array<Mean, kAreas> ap, recall;  // 100 detections
  std::array<Mean, 3> recall_by_most;   // all areas
  for (size_t id = 0; id < classes_.size(); ++id) {
    std::vector<Judged> sorted = classes_[id].judged;
    std::ranges::sort(sorted, {},
                      [](const Judged& j) { return std::tuple(-j.score, j.image_id, j.rank); });
    Mean class_ap;
    for (size_t area = 0; area < kAreas; ++area) {
      for (size_t i = 0; i < kThresholds; ++i) {
        const Scored scored = score(sorted, classes_[id].truths[area], area, i);
        ap[area].add(scored.ap);
        recall[area].add(scored.recall[2]);
        if (area > 0) continue;
        class_ap.add(scored.ap);
        if (i == 0) {
          ap50.add(scored.ap);
          report.class_ap50[id] = scored.ap;
        }
        if (i == 5) ap75.add(scored.ap);
        for (size_t m = 0; m < recall_by_most.size(); ++m) recall_by_most[m].add(scored.recall[m]);
      }
    }
    report.class_ap[id] = class_ap.value();
  }
  report.ap = ap[0].value();
  report.ap50 = ap50.value();
  report.ap75 = ap75.value();
  report.ap_small = ap[1].value();
  report.ap_medium = ap[2].value();
  report.ap_large = ap[3].value();
  report.ar1 = recall_by_most[0].value();
  report.ar10 = recall_by_most[1].value();
  report.ar100 = recall_by_most[2].value();
  report.ar_small = recall[1].value();
  report.ar_medium = recall[2].value();
  report.ar_large = recall[3].value();
  return report;
}

}  // namespace ferry::eval

#include "eval/coco.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
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

}  // namespace

CocoMetric::CocoMetric(int64_t classes) : classes_(static_cast<size_t>(classes)) {}

void CocoMetric::add(int64_t image_id, std::span<const CocoTruth> truths,
                     std::span<const CocoDetection> detections) {
  std::map<int32_t, std::pair<std::vector<CocoTruth>, std::vector<CocoDetection>>> by_class;
  for (const CocoTruth& t : truths) by_class[t.class_id].first.push_back(t);
  for (const CocoDetection& d : detections) by_class[d.class_id].second.push_back(d);
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
  std::vector<double> overlaps(best.size() * truths.size());
  for (size_t d = 0; d < best.size(); ++d) {
    for (size_t t = 0; t < truths.size(); ++t) {
      overlaps[d * truths.size() + t] = overlap(best[d]->box, truths[t].box, truths[t].crowd);
    }
  }
  for (size_t area = 0; area < kAreas; ++area) {
    std::vector<bool> ignored(truths.size());
    for (size_t t = 0; t < truths.size(); ++t) {
      ignored[t] = truths[t].crowd || outside(truths[t].area, kAreaRanges[area]);
      if (!ignored[t]) ++into.truths[area];
    }
    std::vector<size_t> order(truths.size());  // those that count come first
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {}, [&](size_t t) { return bool(ignored[t]); });
    for (size_t i = 0; i < kThresholds; ++i) {
      std::vector<bool> taken(truths.size());
      for (size_t d = 0; d < best.size(); ++d) {
        double closest = std::min(iou_threshold(i), 1 - 1e-10);
        int64_t match = -1;
        for (const size_t t : order) {
          if (taken[t] && !truths[t].crowd) continue;
          // What is ignored is only taken for want of something that counts.
          if (match >= 0 && !ignored[static_cast<size_t>(match)] && ignored[t]) break;
          const double value = overlaps[d * truths.size() + t];
          if (value < closest) continue;
          closest = value;
          match = static_cast<int64_t>(t);
        }
        Judged& judged = into.judged[first + d];
        const auto bit = static_cast<uint16_t>(1u << i);
        if (match >= 0) {
          taken[static_cast<size_t>(match)] = true;
          judged.matched[area] |= bit;
          if (ignored[static_cast<size_t>(match)]) judged.ignored[area] |= bit;
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

struct Score {
  double ap = -1, recall = -1;
};

}  // namespace

// COCOeval.accumulate and summarize.
CocoReport CocoMetric::report() const {
  CocoReport report;
  report.class_ap.assign(classes_.size(), -1);
  report.class_ap50.assign(classes_.size(), -1);
  Mean ap50, ap75, ap[kAreas], ar[kAreas], ar_by_count[3];
  for (size_t id = 0; id < classes_.size(); ++id) {
    std::vector<const Judged*> sorted;
    for (const Judged& j : classes_[id].judged) sorted.push_back(&j);
    std::ranges::stable_sort(sorted, {},
                             [](const Judged* j) { return std::pair(-j->score, j->image_id); });
    Mean class_ap;
    for (size_t area = 0; area < kAreas; ++area) {
      const int64_t truths = classes_[id].truths[area];
      if (truths == 0) continue;
      for (size_t i = 0; i < kThresholds; ++i) {
        const auto score_of = [&](int32_t most) {
          std::vector<double> recall, precision;
          double hits = 0, misses = 0;
          for (const Judged* j : sorted) {
            if (j->rank >= most) continue;
            const bool counts = ((j->ignored[area] >> i) & 1) == 0;
            const bool matched = ((j->matched[area] >> i) & 1) != 0;
            hits += counts && matched;
            misses += counts && !matched;
            recall.push_back(hits / static_cast<double>(truths));
            precision.push_back(hits / (hits + misses + std::numeric_limits<double>::epsilon()));
          }
          for (size_t k = precision.size(); k-- > 1;) {
            precision[k - 1] = std::max(precision[k - 1], precision[k]);
          }
          double sum = 0;
          for (size_t p = 0; p < kRecallPoints; ++p) {
            const auto at =
                std::ranges::lower_bound(recall, linspace(0, 1, kRecallPoints, p)) - recall.begin();
            if (static_cast<size_t>(at) < precision.size())
              sum += precision[static_cast<size_t>(at)];
          }
          return Score{sum / static_cast<double>(kRecallPoints),
                       recall.empty() ? 0 : recall.back()};
        };
        const Score score = score_of(kMaxDetections[2]);
        ap[area].add(score.ap);
        ar[area].add(score.recall);
        if (area > 0) continue;
        class_ap.add(score.ap);
        if (i == 0) {
          ap50.add(score.ap);
          report.class_ap50[id] = score.ap;
        }
        if (i == 5) ap75.add(score.ap);
        ar_by_count[0].add(score_of(kMaxDetections[0]).recall);
        ar_by_count[1].add(score_of(kMaxDetections[1]).recall);
        ar_by_count[2].add(score.recall);
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
  report.ar1 = ar_by_count[0].value();
  report.ar10 = ar_by_count[1].value();
  report.ar100 = ar_by_count[2].value();
  report.ar_small = ar[1].value();
  report.ar_medium = ar[2].value();
  report.ar_large = ar[3].value();
  return report;
}

}  // namespace ferry::eval

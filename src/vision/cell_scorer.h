// What the two forms of a head have in common once a cell's objectness has passed: class values
// become candidates in upstream's order, with upstream's comparisons. Internal to head_decode.cc
// (logits) and decoded_rows.cc (scores).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "vision/box_kernels.h"
#include "vision/nms.h"
#include "vision/sigmoid.h"

namespace ferry::vision {

inline constexpr int64_t kObjectness = 4;  // place of a cell's values
inline constexpr int64_t kFirstClass = 5;
inline constexpr int64_t kMaxRows = std::numeric_limits<int32_t>::max();

// Thresholds are lowered by this before they are used to reject: more than what fp32 rounding can
// add to a sigmoid or a product, so nothing is rejected that the exact comparison would pass.
inline constexpr double kRoundingSlack = 1e-6;

// A logit is above this whenever its sigmoid in fp32 is above `score`.
inline float logit_below(double score) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const double lowered = score * (1 - kRoundingSlack);
  if (lowered >= 1) return kInfinity;
  if (lowered < 1e-30) return -kInfinity;  // the slack says nothing about denormal products
  return std::nextafter(static_cast<float>(std::log(lowered / (1 - lowered))), -kInfinity);
}

// Class values that are logits. A form is: the score of a value, rising with it, for one and for
// many in place; a value that every one with a score above `s` exceeds; whether two values may have
// equal products.
struct LogitForm {
  static float score(float logit) { return sigmoid(logit); }
  static void to_scores(const BoxKernels& kernels, float* values, int64_t n) {
    kernels.sigmoids(values, n, values);
  }
  static float below(double s) { return logit_below(s); }
  // Sigmoids of different logits agree when these are close, or so large that 1 is near.
  static bool may_equal(float value, float best) {
    return value > 8 || value > best - 1e-4f * (1 + std::abs(best));
  }
};

// Class values that are scores already.
struct ScoreForm {
  static float score(float value) { return value; }
  static void to_scores(const BoxKernels&, float*, int64_t) {}
  static float below(double s) {
    return s < 1e-30 ? 0.0f : static_cast<float>(s * (1 - kRoundingSlack));
  }
  static bool may_equal(float value, float best) { return value > best * 0.999f; }
};

class ClassFilter {
 public:
  ClassFilter(const std::vector<int32_t>& wanted, int64_t classes) {
    if (wanted.empty()) return;
    allowed_.assign(classes, false);
    for (int32_t id : wanted) {
      if (id >= 0 && id < classes) allowed_[id] = true;
    }
  }
  bool operator()(int32_t id) const { return allowed_.empty() || allowed_[id]; }

 private:
  std::vector<bool> allowed_;  // empty: all
};

// Turns cells into candidates; a worker's own.
template <class Form>
class CellScorer {
 public:
  // `filter` and `kernels` are borrowed.
  CellScorer(const NmsOptions& options, int64_t classes, const ClassFilter& filter,
             const BoxKernels& kernels)
      : threshold_(static_cast<float>(options.conf_threshold)),
        floor_(threshold_),
        multi_label_(options.multi_label && classes > 1),
        keep_(options.max_candidates),
        classes_(classes),
        filter_(filter),
        kernels_(kernels),
        above_(classes + KeptBlock::kLanes),
        scores_(classes + KeptBlock::kLanes) {}

  // `objectness` is a score, `values` are the classes'; make_box() is asked when a class passes.
  template <class MakeBox>
  void add(float objectness, const float* values, const MakeBox& make_box) {
    if (!(objectness > threshold_)) return;
    const size_t before = found_.items.size();
    if (multi_label_) {
      add_labels(objectness, values);
    } else {
      const float best = kernels_.max_or_nan(values, classes_);
      const float confidence = objectness * Form::score(best);  // NaN passes no comparison
      if (confidence > floor_) emit(confidence, first_equal(objectness, values, best));
    }
    if (found_.items.size() == before) return;
    const Box box = make_box();
    if (!is_finite(box)) {
      found_.items.resize(before);
      return;
    }
    found_.boxes.push_back(box);
    if (static_cast<int64_t>(found_.items.size()) / kPruneFactor > keep_) prune();
  }

  Candidates take() { return std::move(found_); }

 private:
  // More than this many times max_candidates, and all but the best are forgotten.
  static constexpr int64_t kPruneFactor = 4;

  void add_labels(float objectness, const float* values) {
    const float limit = Form::below(static_cast<double>(floor_) / objectness);
    const int64_t count = kernels_.select_above(values, classes_, limit, above_.data());
    for (int64_t i = 0; i < count; ++i) scores_[i] = values[above_[i]];
    // Whole registers: the values behind the last are stale, and harmless.
    const int64_t whole = (count + KeptBlock::kLanes - 1) / KeptBlock::kLanes * KeptBlock::kLanes;
    Form::to_scores(kernels_, scores_.data(), whole);
    for (int64_t i = 0; i < count; ++i) emit(objectness * scores_[i], above_[i]);
  }

  void emit(float confidence, int32_t id) {
    if (confidence > floor_ && std::isfinite(confidence) && filter_(id)) {
      found_.items.push_back({confidence, id, static_cast<int32_t>(found_.boxes.size())});
    }
  }

  // Upstream takes the maximum of the products and the first class that has it: two values that
  // round to one product are equal there.
  int32_t first_equal(float objectness, const float* values, float best) const {
    const float confidence = objectness * Form::score(best);
    int64_t i = 0;
    while (values[i] != best && !(Form::may_equal(values[i], best) &&
                                  objectness * Form::score(values[i]) >= confidence)) {
      ++i;
    }
    return static_cast<int32_t>(i);
  }

  // Candidates to come stand behind those of equal confidence, so they must be greater.
  void prune() {
    if (keep_ == 0) {
      found_.items.clear();
    } else {
      floor_ = std::max(floor_, keep_best(found_.items, keep_));
    }
  }

  float threshold_;
  float floor_;  // what a confidence must exceed: the threshold, or more after a prune
  bool multi_label_;
  int64_t keep_;
  int64_t classes_;
  const ClassFilter& filter_;
  const BoxKernels& kernels_;
  std::vector<int32_t> above_;  // classes of the cell at hand that may pass
  std::vector<float> scores_;   // and their scores
  Candidates found_;
};

// The candidates of consecutive ranges as those of the whole.
inline Candidates join(std::vector<Candidates> parts) {
  if (parts.size() == 1) return std::move(parts[0]);
  Candidates all;
  for (const Candidates& part : parts) {
    const int32_t boxes = static_cast<int32_t>(all.boxes.size());
    for (Candidates::Item item : part.items) {
      item.box_index += boxes;
      all.items.push_back(item);
    }
    all.boxes.insert(all.boxes.end(), part.boxes.begin(), part.boxes.end());
  }
  return all;
}

inline int workers_of(const ThreadPool* pool) { return pool ? pool->threads() : 1; }

// Runs body(begin, end, worker) over [0, n), shared when there is a pool and n is `worth` it.
template <class Body>
void for_ranges(ThreadPool* pool, int64_t n, int64_t worth, Body&& body) {
  if (pool && n >= worth) {
    pool->parallel_ranges(n, body);
  } else {
    body(int64_t{0}, n, 0);
  }
}

}  // namespace ferry::vision

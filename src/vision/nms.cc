// Two ideas make `suppress` quick for the 100 000 candidates of a validation run at confidence
// 0.001. Sorting is lazy: candidates are dealt into some thousand buckets by confidence, and a
// bucket is sorted when the walk reaches it, so that what comes after the last wanted box costs
// nothing more. And kept boxes stand in chains of sixteen by class, so that a candidate is compared
// with a register's worth at once, and only with its own class.
#include "vision/nms.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>

#include "vision/box_kernels.h"

namespace ferry::vision {
namespace {

constexpr float kClassOffset = 7680.0f;  // upstream's max_wh

// A candidate's place in the walk: greater is earlier. Confidences are positive, so their bits
// order as they do; of equal ones the lower index is greater.
using Key = uint64_t;
Key key_of(float confidence, size_t index) {
  return uint64_t{std::bit_cast<uint32_t>(confidence)} << 32 |
         static_cast<uint32_t>(~static_cast<uint32_t>(index));
}
uint32_t confidence_bits(Key key) { return static_cast<uint32_t>(key >> 32); }
size_t index_of(Key key) { return static_cast<uint32_t>(~static_cast<uint32_t>(key)); }

std::vector<Key> keys_of(const std::vector<Candidates::Item>& items) {
  std::vector<Key> keys(items.size());
  for (size_t i = 0; i < items.size(); ++i) keys[i] = key_of(items[i].confidence, i);
  return keys;
}

// Hands out keys from the greatest down, sorting as far as it is asked.
class LazyOrder {
 public:
  explicit LazyOrder(std::vector<Key> keys) {
    if (keys.size() < kSmall) {
      begins_ = {keys.size(), 0};
      keys_ = std::move(keys);
      return;
    }
    uint32_t low = ~0u, high = 0;
    for (Key key : keys) {
      low = std::min(low, confidence_bits(key));
      high = std::max(high, confidence_bits(key));
    }
    const int shift = std::max(0, static_cast<int>(std::bit_width(high - low)) - kBucketBits);
    const auto bucket = [&](Key key) { return (high - confidence_bits(key)) >> shift; };
    begins_.assign(size_t{bucket(Key{low} << 32)} + 2, 0);
    // begins_[b] counts up to the end of bucket b - 1, then moves to the end of b as keys are
    // dealt.
    for (Key key : keys) ++begins_[bucket(key) + 1];
    for (size_t b = 1; b < begins_.size(); ++b) begins_[b] += begins_[b - 1];
    keys_.resize(keys.size());
    for (Key key : keys) keys_[begins_[bucket(key)]++] = key;
  }

  // The next key; REQUIRES: fewer calls so far than there are keys.
  Key next() {
    while (at_ == sorted_) {
      const size_t end = begins_[bucket_++];
      std::sort(keys_.begin() + static_cast<ptrdiff_t>(at_),
                keys_.begin() + static_cast<ptrdiff_t>(end), std::greater<>());
      sorted_ = end;
    }
    return keys_[at_++];
  }

 private:
  static constexpr size_t kSmall = 512;
  static constexpr int kBucketBits = 12;
  std::vector<Key> keys_;
  std::vector<size_t> begins_;  // where each bucket ends
  size_t bucket_ = 0;           // the next to sort
  size_t sorted_ = 0;           // keys_ before this are sorted
  size_t at_ = 0;
};

// Chains of kept boxes, one a class.
class KeptBoxes {
 public:
  explicit KeptBoxes(int32_t classes) : first_(classes, -1), count_(classes, 0) {}

  const KeptBlock* blocks() const { return blocks_.data(); }
  int32_t first(int32_t chain) const { return first_[chain]; }

  void add(int32_t chain, const Box& box) {
    const int lane = count_[chain]++ % KeptBlock::kLanes;
    if (lane == 0) {  // a new block in front
      KeptBlock block;
      std::fill_n(block.x1, KeptBlock::kLanes, KeptBlock::kNowhere.x1);
      std::fill_n(block.y1, KeptBlock::kLanes, KeptBlock::kNowhere.y1);
      std::fill_n(block.x2, KeptBlock::kLanes, KeptBlock::kNowhere.x2);
      std::fill_n(block.y2, KeptBlock::kLanes, KeptBlock::kNowhere.y2);
      std::fill_n(block.area, KeptBlock::kLanes, 0.0f);
      block.next = first_[chain];
      first_[chain] = static_cast<int32_t>(blocks_.size());
      blocks_.push_back(block);
    }
    KeptBlock& block = blocks_[first_[chain]];
    block.x1[lane] = box.x1;
    block.y1[lane] = box.y1;
    block.x2[lane] = box.x2;
    block.y2[lane] = box.y2;
    block.area[lane] = (box.x2 - box.x1) * (box.y2 - box.y1);
  }

 private:
  std::vector<KeptBlock> blocks_;
  std::vector<int32_t> first_;
  std::vector<int32_t> count_;
};

// torchvision compares a float IoU with a double threshold: the greatest float that is not above
// the threshold gives the same answers.
float float_threshold(double threshold) {
  const float rounded = static_cast<float>(threshold);
  return static_cast<double>(rounded) > threshold ? std::nextafter(rounded, -1.0f) : rounded;
}

}  // namespace

Status check_options(const NmsOptions& options) {
  const auto is_fraction = [](double value) { return value >= 0 && value <= 1; };
  if (!is_fraction(options.conf_threshold)) {
    return error(Code::kInvalid, "confidence threshold is {}, must be 0 to 1",
                 options.conf_threshold);
  }
  if (!is_fraction(options.iou_threshold)) {
    return error(Code::kInvalid, "IoU threshold is {}, must be 0 to 1", options.iou_threshold);
  }
  if (options.max_detections < 0 || options.max_candidates < 0) {
    return error(Code::kInvalid, "at most {} detections of {} candidates: neither can be negative",
                 options.max_detections, options.max_candidates);
  }
  return {};
}

std::vector<Detection> suppress(const Candidates& candidates, const NmsOptions& options,
                                Simd simd) {
  const std::vector<Candidates::Item>& items = candidates.items;
  std::vector<Detection> detections;
  if (items.empty() || options.max_detections == 0) return detections;
  const BoxKernels kernels = box_kernels(simd);
  const float threshold = float_threshold(options.iou_threshold);
  int32_t classes = 1;
  if (!options.agnostic) {
    for (const auto& item : items) classes = std::max(classes, item.class_id + 1);
  }
  KeptBoxes kept(classes);
  LazyOrder order(keys_of(items));
  const int64_t walk =
      std::min<int64_t>(static_cast<int64_t>(items.size()), options.max_candidates);
  for (int64_t i = 0; i < walk; ++i) {
    const Candidates::Item& item = items[index_of(order.next())];
    const Box& box = candidates.boxes[item.box_index];
    const int32_t chain = options.agnostic ? 0 : item.class_id;
    const float offset = static_cast<float>(chain) * kClassOffset;
    const Box moved = {box.x1 + offset, box.y1 + offset, box.x2 + offset, box.y2 + offset};
    if (kernels.any_overlap(kept.blocks(), kept.first(chain), moved, threshold)) continue;
    detections.push_back({box, item.confidence, item.class_id});
    if (static_cast<int64_t>(detections.size()) == options.max_detections) break;
    kept.add(chain, moved);
  }
  return detections;
}

float keep_best(std::vector<Candidates::Item>& items, int64_t count) {
  std::vector<Key> keys = keys_of(items);
  const auto last = keys.begin() + count - 1;
  std::nth_element(keys.begin(), last, keys.end(), std::greater<>());
  const Key lowest = *last;
  size_t kept = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    if (key_of(items[i].confidence, i) >= lowest) items[kept++] = items[i];
  }
  items.resize(kept);
  return std::bit_cast<float>(confidence_bits(lowest));
}

}  // namespace ferry::vision

#include "eval/numpy_order.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace ferry::eval {
namespace {

constexpr ptrdiff_t kSmall = 15;  // ranges of at most 16 values are sorted by insertion

class Introsort {
 public:
  Introsort(std::span<const double> values, std::span<size_t> order)
      : values_(values), order_(order) {}

  // Sorts order_[first..last], both included. Its parts do not touch each other, so their order of
  // work is free.
  void sort(ptrdiff_t first, ptrdiff_t last, int depth) {
    while (last - first > kSmall) {
      // numpy goes over to heapsort here; such input does not occur by chance.
      if (depth-- < 0) {
        std::ranges::stable_sort(order_.subspan(first, last - first + 1), {},
                                 [&](size_t i) { return values_[i]; });
        return;
      }
      const ptrdiff_t middle = partition(first, last);
      sort(first, middle - 1, depth);
      first = middle + 1;
    }
    for (ptrdiff_t i = first + 1; i <= last; ++i) {
      for (ptrdiff_t j = i; j > first && less(j, j - 1); --j) swap(j, j - 1);
    }
  }

 private:
  bool less(ptrdiff_t a, ptrdiff_t b) const { return values_[order_[a]] < values_[order_[b]]; }
  void swap(ptrdiff_t a, ptrdiff_t b) { std::swap(order_[a], order_[b]); }

  // Returns where the median of the first, middle and last value comes to stand; what is before is
  // not greater, what is behind not less.
  ptrdiff_t partition(ptrdiff_t first, ptrdiff_t last) {
    const ptrdiff_t middle = first + (last - first) / 2;
    if (less(middle, first)) swap(middle, first);
    if (less(last, middle)) swap(last, middle);
    if (less(middle, first)) swap(middle, first);
    const ptrdiff_t pivot = last - 1;  // kept out of the way
    swap(middle, pivot);
    ptrdiff_t low = first, high = pivot;
    while (true) {
      do ++low;
      while (less(low, pivot));
      do --high;
      while (less(pivot, high));
      if (low >= high) break;
      swap(low, high);
    }
    swap(low, pivot);
    return low;
  }

  std::span<const double> values_;
  std::span<size_t> order_;
};

}  // namespace

std::vector<size_t> numpy_argsort(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const int depth = 2 * (std::bit_width(values.size()) - 1);
  if (!values.empty())
    Introsort(values, order).sort(0, static_cast<ptrdiff_t>(values.size()) - 1, depth);
  return order;
}

}  // namespace ferry::eval

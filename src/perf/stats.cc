#include "perf/stats.h"

#include <algorithm>
#include <cmath>

namespace ferry::perf {

double percentile(std::span<const double> sorted, double p) {
  const double position = p / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (position - std::floor(position));
}

Stats stats_of(std::span<const double> values) {
  if (values.empty()) return {};
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const auto count = static_cast<double>(sorted.size());
  double sum = 0;
  for (const double v : sorted) sum += v;
  const double mean = sum / count;
  double squares = 0;
  for (const double v : sorted) squares += (v - mean) * (v - mean);
  return {.count = static_cast<int64_t>(sorted.size()),
          .min = sorted.front(),
          .mean = mean,
          .median = percentile(sorted, 50),
          .p90 = percentile(sorted, 90),
          .p99 = percentile(sorted, 99),
          .max = sorted.back(),
          .deviation = std::sqrt(squares / count)};
}

}  // namespace ferry::perf

// Order statistics of timed runs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ferry::perf {

struct Stats {
  int64_t count = 0;
  double min = 0, mean = 0, median = 0, p90 = 0, p99 = 0, max = 0;
  double deviation = 0;  // standard deviation
};

// All zero for no values. Percentiles interpolate between neighbours, as numpy's default.
Stats stats_of(std::span<const double> values);

// The p-th percentile, 0 to 100. REQUIRES: values are sorted and not empty
double percentile(std::span<const double> sorted, double p);

}  // namespace ferry::perf

#include "perf/stats.h"

#include <gtest/gtest.h>

#include <array>

namespace ferry::perf {
namespace {

TEST(Stats, NothingIsAllZero) {
  const Stats stats = stats_of({});
  EXPECT_EQ(stats.count, 0);
  EXPECT_EQ(stats.median, 0);
  EXPECT_EQ(stats.p99, 0);
}

TEST(Stats, OneValueIsEveryPercentile) {
  const Stats stats = stats_of(std::array{7.0});
  EXPECT_EQ(stats.count, 1);
  EXPECT_EQ(stats.min, 7);
  EXPECT_EQ(stats.p90, 7);
  EXPECT_EQ(stats.max, 7);
  EXPECT_EQ(stats.deviation, 0);
}

// numpy.percentile([1, 2, 3, 4], …): 90 lies at position 2.7, 99 at 2.97.
TEST(Stats, PercentilesInterpolateAsNumpysDo) {
  const Stats stats = stats_of(std::array{4.0, 1.0, 3.0, 2.0});
  EXPECT_EQ(stats.count, 4);
  EXPECT_EQ(stats.min, 1);
  EXPECT_EQ(stats.max, 4);
  EXPECT_DOUBLE_EQ(stats.mean, 2.5);
  EXPECT_DOUBLE_EQ(stats.median, 2.5);
  EXPECT_DOUBLE_EQ(stats.p90, 3.7);
  EXPECT_DOUBLE_EQ(stats.p99, 3.97);
  EXPECT_DOUBLE_EQ(stats.deviation, 1.118033988749895);  // numpy.std: sqrt(5 / 4)
}

TEST(Stats, EndsOfThePercentiles) {
  const std::array sorted = {1.0, 10.0, 100.0};
  EXPECT_EQ(percentile(sorted, 0), 1);
  EXPECT_EQ(percentile(sorted, 100), 100);
  EXPECT_DOUBLE_EQ(percentile(sorted, 25), 5.5);
  EXPECT_DOUBLE_EQ(percentile(sorted, 10), 2.8);
}

}  // namespace
}  // namespace ferry::perf

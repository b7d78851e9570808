// That every loop runs on this processor, and answers with a number; how large, no test can know.
#include "perf/peak.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ferry::perf {
namespace {

TEST(Peak, EveryArithmeticOfThisProcessorRuns) {
  for (const int threads : {1, 2}) {
    const Peak peak = measure_peak(threads, 0.01);
    EXPECT_EQ(peak.threads, threads);
    EXPECT_FALSE(peak.isa.empty());
    EXPECT_GT(peak.f32_gflops, 0);
    EXPECT_GT(peak.memory_gb_s, 0);
    for (const double rate :
         {peak.bf16_gflops, peak.int8_gops, peak.amx_bf16_gflops, peak.amx_int8_gops}) {
      EXPECT_GE(rate, 0);
      EXPECT_TRUE(std::isfinite(rate));
    }
  }
  EXPECT_GT(f32_burst_gflops(1, 0.001), 0);
  EXPECT_GE(cache_line_round_trip_ns(), 0);
}

}  // namespace
}  // namespace ferry::perf

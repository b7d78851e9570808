// Engines measured side by side on one machine: one row of `ferry bench`.
//
// Every engine is a long-lived process (peer.h), ours too, so that ours against ours takes the very
// same path. They take turns, A B then B A, so that what the machine does meets all alike; ratios
// are formed round by round. Nothing is timed before its output agrees with the first engine's.
// What else happened on the machine is measured beside every round and said in the result.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "perf/machine.h"
#include "perf/peak.h"
#include "perf/peer.h"
#include "perf/stats.h"

namespace ferry::perf {

struct RowOptions {
  int threads = 1;
  int streams = 1;
  int64_t batch = 1;
  double duration_s = 10;  // timed, of each engine
  int64_t iterations = 0;  // not 0: so many timed runs instead of a duration
  double warmup_s = 0.5;
  int rounds = 10;
  double quiet_cores = 0.1;  // others may use; a round beside more is played again,
  double wait_s = 1;         // and one begins when they are quiet, or after so long
  double patience = 1.5;     // rounds played at most, as a multiple of `rounds`
  double timeout_s = 300;    // for loading, and beside what a turn should take
  bool check_outputs = true;
  Peak peak = {};                        // of `threads` times `streams` threads; zero: not measured
  std::string folder;                    // for outputs that are compared
  std::function<bool()> cancelled = {};  // (optional)
  std::function<void(const std::string& what)> progress = {};  // (optional)
};

// How the time of an engine compares with the first one's, by rounds: above 1, the first is faster.
struct Ratio {
  double median = 0;
  double low = 0, high = 0;            // 10th and 90th percentile of the rounds: the spread
  double least = 0, most = 0;          // of the rounds
  double of_fastest = 0;               // fastest run over fastest run
  double sure_low = 0, sure_high = 0;  // 95 % confidence interval of the median, by bootstrap
};

// `theirs` over `ours`, round by round, of the medians of each. REQUIRES: as many rounds in both,
// at least one, none empty
Ratio ratio_of(std::span<const std::vector<double>> ours,
               std::span<const std::vector<double>> theirs);

// Largest differences from the first engine's output.
struct Difference {
  double scores = 0;  // relative
  double boxes = 0;   // pixels
};
inline constexpr double kScoreLimit = 1e-3;  // fp32 engines differ by 1e-4, bf16 ones by 1e-2
inline constexpr double kBoxLimit = 0.05;    // fp32 engines differ by 1e-3, bf16 ones by 1 and more

struct EngineResult {
  std::string name;
  std::string refused;  // why it was not timed; empty: it was
  PeerInfo info;
  PeerMemory memory;
  Difference difference;
  std::vector<std::vector<double>> rounds_ms;  // the kept rounds
  std::vector<double> walls_ms;                // of each, all streams together
  Stats latency;                               // of all runs, ms
  double images_per_s = 0;
  double of_peak = 0, of_peak_fastest = 0;  // 0 to 1, at the median and the fastest; 0: unknown
  Ratio ratio;
};

// What the machine did beside one round.
struct Round {
  Disturbance disturbance;
  double burst_gflops = 0;   // multiply-adds just before it
  double round_trip_ns = 0;  // of a cache line between two processors
};

struct RowResult {
  int threads = 1, streams = 1;
  int64_t batch = 1;
  int64_t macs = 0;  // of one run
  Peak peak;
  std::vector<EngineResult> engines;  // in the order asked for
  std::vector<Round> rounds;          // the kept ones
  int played = 0;                     // all
  std::vector<std::string> warnings;  // whole sentences: what the machine was too noisy for
};

// The first command is ours, against which the others are compared; it must be able to run.
// Another one that cannot, or computes something else, is refused and the rest go on.
Result<RowResult> measure_row(std::vector<PeerCommand> engines, const RowOptions& options);

// Of two .npy files of [batch, rows, 5 + classes].
Result<Difference> difference_of(const std::string& path, const std::string& reference);

// What the conditions forbid to conclude; called by measure_row.
std::vector<std::string> doubts(const RowResult& row);

}  // namespace ferry::perf

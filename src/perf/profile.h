// Where the time of a detector goes: one profile of `ferry profile`, and the arithmetic on what was
// measured. profile_run.h measures, profile_report.h writes, advice.h says what it means.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perf/advice.h"
#include "perf/machine.h"
#include "perf/peak.h"
#include "perf/stats.h"
#include "perf/trace.h"
#include "runtime/device.h"

namespace ferry::perf {

// --- stages of a picture ---

enum class Stage : unsigned char { kDecode, kLetterbox, kNetwork, kHead, kNms, kDraw };
inline constexpr size_t kStages = 6;
inline constexpr std::array<std::string_view, kStages> kStageNames = {
    "decode", "letterbox", "network", "head", "nms", "draw"};

struct StageProfile {
  bool measured = true;  // false: a made-up picture is not decoded
  Stats ms;              // of one picture
  double share = 0;      // of the sum of the stages' medians, 0 to 1
};

// --- steps of the network ---

// The least time a step can take: its operations at the peak of its arithmetic, or its bytes at the
// speed of memory, whichever is more. Fast convolutions (Winograd) do fewer multiplications than
// are counted and so can be quicker; what lies in caches can be moved quicker too.
struct Roof {
  double ms = 0;  // 0: not known
  Bound bound = Bound::kUnknown;
};
Roof roof_of(const runtime::StepInfo& step, const Peak& peak);

struct StepProfile {
  runtime::StepInfo info;
  std::string shapes = {};    // "1x3x640x640 -> 1x32x320x320": what is computed, no weights
  std::string why_slow = {};  // a sentence, for a step on the reference loops
  int64_t count = 1;          // of steps, in a row of by_op() or by_kernel()
  double median_ms = 0, min_ms = 0;
  double share = 0;  // of the sum of all steps' medians, 0 to 1
  double gflops = 0, gb_s = 0;
  Roof roof;
  double of_roof = 0;     // roof.ms / median_ms; 0: not known
  double copy_share = 0;  // of the network's time, spent only moving data; an estimate
};

// `times[i]` are the times of step i, in ms. REQUIRES: as many as steps, none empty
std::vector<StepProfile> step_profiles(std::span<const runtime::StepInfo> steps,
                                       std::span<const std::vector<double>> times,
                                       const Peak& peak);

// Rows that are sums over the steps of one op, or of one kernel, the largest first. Of `info` only
// op or kernel, macs and bytes are meaningful.
std::vector<StepProfile> by_op(std::span<const StepProfile> steps);
std::vector<StepProfile> by_kernel(std::span<const StepProfile> steps);

// What steps do not say of their nodes: shapes, and for one on the reference loops why, as far as
// types and shapes tell. REQUIRES: the steps were made of the graph's nodes, in their order
void describe_steps(std::span<StepProfile> steps, const graph::Graph& graph);

// --- the network as a whole, run by run ---

// The same comparison by means, of the faster half of the runs of each kind. Means add up whatever
// happens. Medians do so on a quiet machine only: a disturbance that meets another node in every
// run is in the median of the runs, but in no node's.
struct CalmHalf {
  double steps_ms = 0;    // of all nodes together
  double plain_ms = 0;    // of the network
  double difference = 0;  // steps_ms / plain_ms - 1
};
// `times` as in step_profiles().
CalmHalf calm_half(std::span<const std::vector<double>> times, std::span<const double> plain_ms);

struct NetworkRun {
  double ms = 0;
  CpuClock begin, end;  // around this run and its picture's other stages
};

struct Jitter {
  double slow_limit_ms = 0;                     // kSlowRun times the median
  int64_t slow = 0;                             // runs above
  double others_slow = 0, others_rest = 0;      // processors that others used, mean
  double switches_slow = 0, switches_rest = 0;  // involuntary, a run
  double steal_percent = 0;
  double burst_low = 0, burst_high = 0;  // GFLOP/s; 0: not measured
};
Jitter jitter_of(std::span<const NetworkRun> runs, std::span<const double> burst_gflops);

struct MemoryTrend {
  int64_t first = 0, last = 0;  // resident bytes, after warm-up and at the end
  double bytes_per_run = 0;     // slope over the last three quarters, by least squares
  double growth_bytes = 0;      // slope times those runs
  bool steady = false;          // each quarter's median is above that of the one before
};
MemoryTrend trend_of(std::span<const int64_t> resident);

// --- all of it ---

struct Profile {
  std::string version = {}, date = {};  // ferry's; ISO 8601, UTC
  std::string model = {}, description = {}, device = {};
  Machine machine;
  Peak peak;  // threads as the run's; f32_gflops 0: not measured
  int threads = 1;
  int64_t batch = 1, height = 0, width = 0;
  bool tuned = false;

  std::string source = {};                      // for people
  int64_t source_width = 0, source_height = 0;  // pixels, of the first picture
  bool made_up = false;
  double boxes = 0, detections = 0;  // mean, of one picture: into NMS, and out of it
  std::vector<std::string> warnings = {};

  int64_t warmup = 0;
  std::array<StageProfile, kStages> stages;
  Stats picture_ms;  // all stages of one picture

  std::vector<StepProfile> steps = {};  // in the order of execution
  int64_t macs = 0;
  double steps_ms = 0;    // sum of the medians
  Stats plain_ms;         // the network in plain runs
  Stats timed_ms;         // the same with a clock read around each step
  double clock_ms = 0;    // what those readings cost, in one timed run
  double difference = 0;  // steps_ms / plain_ms.median - 1

  CalmHalf calm;

  Jitter jitter;
  MemoryTrend memory;
  int64_t peak_resident = 0;  // bytes, after any of the runs
  int64_t weight_bytes = 0, context_bytes = 0;

  std::vector<Advice> advice = {};
  Trace trace;  // of the first runs
};

// What the rules look at. `processors` as taskset takes them.
Evidence evidence_of(const Profile& profile, std::string processors, bool raw_heads);

}  // namespace ferry::perf

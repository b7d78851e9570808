// What a profile means: rules that look at measured facts, name what bounds the run, show the
// numbers and say what to do about it. A rule sees plain numbers only, never a clock or a device,
// so that each can be tried on made-up facts (advice_test.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::perf {

// What holds a step back at best: the lower of the two roofs at its number of operations a byte.
enum class Bound : unsigned char { kCompute, kMemory, kUnknown };

struct LayerFact {
  std::string node = {}, op = {}, kernel = {};
  std::string why_slow = {};  // a sentence, for one on the reference loops; empty: it has a kernel
  double ms = 0;              // of one run of the network
  double share = 0;           // of the network's time, 0 to 1
  double copy_share = 0;      // of the network's time, spent only moving data; an estimate
  double of_roof = 0;         // roof's time over its own; 0: the roof was not measured
  Bound bound = Bound::kUnknown;
};

struct Evidence {
  // Of one picture, and the parts of that time (0 to 1); a stage that is not there has 0.
  double picture_ms = 0;
  double decode = 0, letterbox = 0, network = 0, head = 0, nms = 0, draw = 0;
  double boxes = 0;       // candidates of one picture that NMS had to compare
  bool raw_heads = true;  // the head is decoded by ferry, and only where something is
  bool made_up = false;   // a picture of no content: nothing about boxes follows from it
  int64_t source_pixels = 0, input_pixels = 0;  // of one picture, and of what the network reads

  int64_t batch = 1;
  int threads = 1, cores = 1;
  bool tuned = false;
  std::vector<LayerFact> layers = {};  // in the order of execution
  double network_of_roof = 0;          // all roofs' time over all layers'; 0: not measured

  // Latency of the whole network, ms, over `runs` runs.
  int64_t runs = 0;
  double median_ms = 0, p90_ms = 0, p99_ms = 0, max_ms = 0;
  int64_t slow_runs = 0;  // of them more than kSlowRun times the median
  // Beside the slow runs and beside the others: processors that other processes used, and how
  // often the system took the processor away from this one, a run.
  double others_slow = 0, others_rest = 0;
  double switches_slow = 0, switches_rest = 0;
  double steal_percent = 0;              // over the whole profile
  double burst_low = 0, burst_high = 0;  // GFLOP/s of multiply-adds between runs; 0: not measured
  std::string governor = {};             // empty: the system does not say
  std::string virtualisation = {};       // empty: none, or unknown
  std::string processors = {};           // this process may use, as taskset takes them: "0,1"

  // Bytes resident: growth a run over the last three quarters of the runs, by least squares, and
  // whether each quarter's median is above the one before.
  double growth_per_run = 0;
  double growth_bytes = 0;  // over these runs
  bool grows_steadily = false;
};

inline constexpr double kSlowRun = 1.1;

struct Advice {
  std::string rule = {};     // name of the row, filled in by advise()
  std::string bound = {};    // what limits, in a few words: "decoding"
  std::string finding = {};  // whole sentences with the numbers
  std::string remedy = {};   // what to do
  double weight = 0;         // share of the time that is at stake, 0 to 1; the order of the list
};

struct AdviceRule {
  std::string_view name;
  std::string_view summary;  // when it speaks, with its threshold
  std::optional<Advice> (*applies)(const Evidence& evidence);
};

std::span<const AdviceRule> advice_rules();

// What all rules say, the weightiest first.
std::vector<Advice> advise(const Evidence& evidence);

}  // namespace ferry::perf

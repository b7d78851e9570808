#include "perf/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "graph/op_def.h"

namespace ferry::perf {

namespace {

constexpr std::string_view kReference = "reference";  // how backends call the host's loops

// Ops that compute nothing: bytes go from one place to another.
constexpr std::string_view kMoves[] = {"concat", "split",   "slice",   "reshape", "transpose",
                                       "expand", "flatten", "squeeze", "gather",  "unsqueeze",
                                       "pad",    "tile",    "cast",    "identity"};

double peak_gflops(graph::DType dtype, const Peak& peak) {
  switch (dtype) {
    case graph::DType::kBf16:
      return std::max(peak.bf16_gflops, peak.amx_bf16_gflops);
    case graph::DType::kI8:
    case graph::DType::kU8:
      return std::max(peak.int8_gops, peak.amx_int8_gops);
    default:
      return peak.f32_gflops;
  }
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return percentile(values, 50);
}

// Of an odd number, the middle one is left out.
double mean_of_faster_half(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t half = std::max<size_t>(1, values.size() / 2);
  return std::accumulate(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half), 0.0) /
         static_cast<double>(half);
}

double operations(int64_t macs) { return 2 * static_cast<double>(macs); }

// Rates and the part of the roof that follow from a row's sums.
void finish(StepProfile& row, double total_ms) {
  if (total_ms > 0) row.share = row.median_ms / total_ms;
  if (row.median_ms <= 0) return;
  const auto bytes = static_cast<double>(row.info.bytes + row.info.layout_bytes);
  row.gflops = operations(row.info.macs) / row.median_ms / 1e6;
  row.gb_s = bytes / row.median_ms / 1e6;
  row.of_roof = row.roof.ms / row.median_ms;
}

// "1x64x80x80, 1x64x80x80"
std::string shapes_text(std::span<const graph::TensorType* const> types) {
  std::string out;
  for (const graph::TensorType* type : types) {
    out += fmt::format("{}{}", out.empty() ? "" : ", ", fmt::join(type->shape, "x"));
  }
  return out;
}

// Why a node has no fast kernel, as far as the types of its inputs tell.
std::string why_reference(const runtime::StepInfo& step,
                          std::span<const graph::TensorType* const> inputs) {
  for (const graph::TensorType* type : inputs) {
    if (type->dtype != graph::DType::kF32) {
      return fmt::format("it reads {}, the fast kernels f32", graph::dtype_name(type->dtype));
    }
    if (type->shape.size() != 4) {
      return fmt::format("it reads a tensor of {} dimensions, the fast kernels pictures of 4",
                         type->shape.size());
    }
  }
  return fmt::format("no fast kernel takes this {}", step.op);
}

// Adds what went by from the run's begin to its end.
void add_between(CpuClock& sum, const NetworkRun& run) {
  for (double CpuClock::*seconds : {&CpuClock::total_s, &CpuClock::idle_s, &CpuClock::steal_s,
                                    &CpuClock::own_s, &CpuClock::wall_s}) {
    sum.*seconds += run.end.*seconds - run.begin.*seconds;
  }
  sum.involuntary_switches += run.end.involuntary_switches - run.begin.involuntary_switches;
}

std::vector<StepProfile> grouped(std::span<const StepProfile> steps,
                                 std::string runtime::StepInfo::*key) {
  std::map<std::string, StepProfile> groups;
  std::map<std::string, double> compute_ms;  // of a group's roof, where arithmetic is the bound
  double total_ms = 0;
  for (const StepProfile& step : steps) {
    const auto [group, is_new] = groups.try_emplace(step.info.*key);
    StepProfile& row = group->second;
    if (is_new) {
      row.count = 0;
      row.info.*key = step.info.*key;
      row.info.dtype = step.info.dtype;
    }
    ++row.count;
    row.info.macs += step.info.macs;
    row.info.bytes += step.info.bytes;
    row.info.layout_bytes += step.info.layout_bytes;
    row.median_ms += step.median_ms;
    row.min_ms += step.min_ms;
    row.copy_share += step.copy_share;
    row.roof.ms += step.roof.ms;
    if (step.roof.bound == Bound::kCompute) compute_ms[step.info.*key] += step.roof.ms;
    total_ms += step.median_ms;
  }
  std::vector<StepProfile> rows;
  for (auto& [name, row] : groups) {
    finish(row, total_ms);
    if (row.roof.ms > 0) {
      row.roof.bound = compute_ms[name] * 2 >= row.roof.ms ? Bound::kCompute : Bound::kMemory;
    }
    rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(rows, std::greater(), &StepProfile::median_ms);
  return rows;
}

}  // namespace

Roof roof_of(const runtime::StepInfo& step, const Peak& peak) {
  const double gflops = peak_gflops(step.dtype, peak);
  if (gflops <= 0 || peak.memory_gb_s <= 0) return {};
  const double compute_ms = operations(step.macs) / gflops / 1e6;
  const double memory_ms =
      static_cast<double>(step.bytes + step.layout_bytes) / peak.memory_gb_s / 1e6;
  if (compute_ms >= memory_ms && compute_ms > 0) return {compute_ms, Bound::kCompute};
  return memory_ms > 0 ? Roof{memory_ms, Bound::kMemory} : Roof{};
}

std::vector<StepProfile> step_profiles(std::span<const runtime::StepInfo> steps,
                                       std::span<const std::vector<double>> times,
                                       const Peak& peak) {
  std::vector<StepProfile> out;
  double total_ms = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    StepProfile& step = out.emplace_back();
    step.info = steps[i];
    step.median_ms = median_of(times[i]);
    step.min_ms = std::ranges::min(times[i]);
    step.roof = roof_of(steps[i], peak);
    total_ms += step.median_ms;
  }
  for (StepProfile& step : out) {
    finish(step, total_ms);
    const bool moves = std::ranges::find(kMoves, step.info.op) != std::end(kMoves);
    const double bytes = static_cast<double>(step.info.bytes + step.info.layout_bytes);
    if (moves) {
      step.copy_share = step.share;
    } else if (step.info.layout_bytes > 0 && bytes > 0) {
      // No better than a guess: as if the step's time went by its bytes, or at memory's speed.
      double part = static_cast<double>(step.info.layout_bytes) / bytes;
      if (peak.memory_gb_s > 0 && step.median_ms > 0) {
        part = std::min(part, static_cast<double>(step.info.layout_bytes) / peak.memory_gb_s / 1e6 /
                                  step.median_ms);
      }
      step.copy_share = part * step.share;
    }
  }
  return out;
}

std::vector<StepProfile> by_op(std::span<const StepProfile> steps) {
  return grouped(steps, &runtime::StepInfo::op);
}

std::vector<StepProfile> by_kernel(std::span<const StepProfile> steps) {
  return grouped(steps, &runtime::StepInfo::kernel);
}

void describe_steps(std::span<StepProfile> steps, const graph::Graph& graph) {
  // Plans let go of constants, so that a value is a constant when nothing computes it.
  std::vector<bool> computed(graph.values.size());
  for (const graph::ValueId id : graph.inputs) computed[static_cast<size_t>(id)] = true;
  for (const graph::Node& node : graph.nodes) {
    for (const graph::ValueId id : node.outputs) computed[static_cast<size_t>(id)] = true;
  }
  auto node = graph.nodes.begin();
  for (StepProfile& step : steps) {
    // Nodes that are mere views have no step.
    node = std::find_if(node, graph.nodes.end(), [&](const graph::Node& n) {
      return n.name == step.info.node && n.op->name == step.info.op;
    });
    if (node == graph.nodes.end()) return;
    std::vector<const graph::TensorType*> in, out;
    for (const graph::ValueId id : node->inputs) {
      if (id != graph::kNone && computed[static_cast<size_t>(id)])
        in.push_back(&graph.value(id).type);
    }
    for (const graph::ValueId id : node->outputs) out.push_back(&graph.value(id).type);
    step.shapes = fmt::format("{} -> {}", shapes_text(in), shapes_text(out));
    if (step.info.kernel == kReference) step.why_slow = why_reference(step.info, in);
    ++node;
  }
}

CalmHalf calm_half(std::span<const std::vector<double>> times, std::span<const double> plain_ms) {
  if (times.empty() || times.front().empty() || plain_ms.empty()) return {};
  std::vector<double> sums(times.front().size());
  for (const std::vector<double>& step : times) {
    for (size_t run = 0; run < sums.size(); ++run) sums[run] += step[run];
  }
  CalmHalf calm{.steps_ms = mean_of_faster_half(std::move(sums)),
                .plain_ms = mean_of_faster_half({plain_ms.begin(), plain_ms.end()})};
  if (calm.plain_ms > 0) calm.difference = calm.steps_ms / calm.plain_ms - 1;
  return calm;
}

Jitter jitter_of(std::span<const NetworkRun> runs, std::span<const double> burst_gflops) {
  Jitter jitter;
  if (runs.empty()) return jitter;
  std::vector<double> ms;
  for (const NetworkRun& run : runs) ms.push_back(run.ms);
  jitter.slow_limit_ms = kSlowRun * median_of(ms);
  // Summed first: processor time comes in ticks of 10 ms, too coarse for a single run.
  CpuClock slow, rest, all;
  int64_t rest_runs = 0;
  for (const NetworkRun& run : runs) {
    const bool is_slow = run.ms > jitter.slow_limit_ms;
    ++(is_slow ? jitter.slow : rest_runs);
    add_between(is_slow ? slow : rest, run);
    add_between(all, run);
  }
  const auto a_run = [](const CpuClock& sum, int64_t count) {
    return count == 0 ? 0
                      : static_cast<double>(sum.involuntary_switches) / static_cast<double>(count);
  };
  jitter.others_slow = between({}, slow).others_cores;
  jitter.others_rest = between({}, rest).others_cores;
  jitter.switches_slow = a_run(slow, jitter.slow);
  jitter.switches_rest = a_run(rest, rest_runs);
  jitter.steal_percent = between({}, all).steal_percent;
  if (!burst_gflops.empty()) {
    const auto [low, high] = std::ranges::minmax(burst_gflops);
    jitter.burst_low = low;
    jitter.burst_high = high;
  }
  return jitter;
}

MemoryTrend trend_of(std::span<const int64_t> resident) {
  MemoryTrend trend;
  if (resident.empty()) return trend;
  trend.first = resident.front();
  trend.last = resident.back();
  const size_t quarter = resident.size() / 4;
  if (quarter == 0) return trend;
  // Least squares of bytes over the number of the run, from the second quarter on: buffers that
  // are made once are made by then.
  const std::span<const int64_t> tail = resident.subspan(quarter);
  const auto count = static_cast<double>(tail.size());
  double mean_y = 0;
  for (const int64_t bytes : tail) mean_y += static_cast<double>(bytes) / count;
  const double mean_x = (count - 1) / 2;
  double xy = 0, xx = 0;
  for (size_t i = 0; i < tail.size(); ++i) {
    const double dx = static_cast<double>(i) - mean_x;
    xy += dx * (static_cast<double>(tail[i]) - mean_y);
    xx += dx * dx;
  }
  if (xx > 0) trend.bytes_per_run = xy / xx;
  trend.growth_bytes = trend.bytes_per_run * (count - 1);
  trend.steady = true;
  double before = 0;
  for (size_t q = 0; q < 4; ++q) {
    const auto part = resident.subspan(q * quarter, quarter);
    const double median = median_of({part.begin(), part.end()});
    if (q > 0 && median <= before) trend.steady = false;
    before = median;
  }
  return trend;
}

Evidence evidence_of(const Profile& p, std::string processors, bool raw_heads) {
  const auto share = [&](Stage stage) { return p.stages[static_cast<size_t>(stage)].share; };
  Evidence e{.picture_ms = p.picture_ms.median,
             .decode = share(Stage::kDecode),
             .letterbox = share(Stage::kLetterbox),
             .network = share(Stage::kNetwork),
             .head = share(Stage::kHead),
             .nms = share(Stage::kNms),
             .draw = share(Stage::kDraw),
             .boxes = p.boxes,
             .raw_heads = raw_heads,
             .made_up = p.made_up,
             .source_pixels = p.source_width * p.source_height,
             .input_pixels = p.width * p.height,
             .batch = p.batch,
             .threads = p.threads,
             .cores = p.machine.cores,
             .tuned = p.tuned,
             .layers = {},
             .network_of_roof = 0,
             .runs = p.plain_ms.count,
             .median_ms = p.plain_ms.median,
             .p90_ms = p.plain_ms.p90,
             .p99_ms = p.plain_ms.p99,
             .max_ms = p.plain_ms.max,
             .slow_runs = p.jitter.slow,
             .others_slow = p.jitter.others_slow,
             .others_rest = p.jitter.others_rest,
             .switches_slow = p.jitter.switches_slow,
             .switches_rest = p.jitter.switches_rest,
             .steal_percent = p.jitter.steal_percent,
             .burst_low = p.jitter.burst_low,
             .burst_high = p.jitter.burst_high,
             .governor = p.machine.governor,
             .virtualisation = p.machine.virtualisation,
             .processors = std::move(processors),
             .growth_per_run = p.memory.bytes_per_run,
             .growth_bytes = p.memory.growth_bytes,
             .grows_steadily = p.memory.steady};
  double roof_ms = 0;
  for (const StepProfile& step : p.steps) {
    roof_ms += step.roof.ms;
    e.layers.push_back({.node = step.info.node,
                        .op = step.info.op,
                        .kernel = step.info.kernel,
                        .why_slow = step.why_slow,
                        .ms = step.median_ms,
                        .share = step.share,
                        .copy_share = step.copy_share,
                        .of_roof = step.of_roof,
                        .bound = step.roof.bound});
  }
  if (p.steps_ms > 0) e.network_of_roof = roof_ms / p.steps_ms;
  return e;
}

}  // namespace ferry::perf

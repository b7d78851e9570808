#include "perf/profile_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "graph/tensor.h"
#include "perf/bench_report.h"

namespace ferry::perf {

namespace {

using nlohmann::json;

constexpr double kAddsUp = 0.05;  // nodes and network differ by no more on a quiet machine

double mega(int64_t count) { return static_cast<double>(count) / 1e6; }

std::string plural(int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string_view bound_name(Bound bound) {
  switch (bound) {
    case Bound::kCompute:
      return "compute";
    case Bound::kMemory:
      return "memory";
    case Bound::kUnknown:
      return "";
  }
  return "";
}

// Text in lines of at most `width` columns, each behind `indent`. Long words stand alone.
std::string wrapped(std::string_view text, std::string_view indent, size_t width = 100) {
  std::string out, line;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && indent.size() + line.size() + 1 + word.size() > width) {
      out += fmt::format("{}{}\n", indent, line);
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  if (!line.empty()) out += fmt::format("{}{}\n", indent, line);
  return out;
}

// --- text ---

std::string head_text(const Profile& p) {
  const Peak peaks[] = {p.peak};
  std::string text =
      machine_text(p.machine, p.peak.f32_gflops > 0 ? std::span(peaks) : std::span<const Peak>());
  text += fmt::format("model    {}: {}\n", p.model, p.description);
  text += fmt::format("input    {}x{}, batch {}; {}{}\n", p.width, p.height, p.batch, p.device,
                      p.tuned ? ", tuned" : "");
  text += fmt::format("source   {}{}\n", p.source,
                      p.made_up ? "; nothing is decoded, and what is found means nothing"
                                : fmt::format(", {}x{}", p.source_width, p.source_height));
  text += fmt::format(
      "runs     {} plain and {} with a clock around each node, in turns; {} before "
      "them\n",
      p.plain_ms.count, p.timed_ms.count, p.warmup);
  return text;
}

std::string stages_text(const Profile& p) {
  std::string text = fmt::format("\n{:<22} {:>9} {:>9} {:>9} {:>9} {:>7}\n", "stage, ms a picture",
                                 "median", "min", "p90", "max", "share");
  double total = 0;
  for (size_t s = 0; s < kStages; ++s) {
    const StageProfile& stage = p.stages[s];
    if (!stage.measured) continue;
    total += stage.ms.median;
    text +=
        fmt::format("  {:<20} {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:>5.1f} %\n", kStageNames[s],
                    stage.ms.median, stage.ms.min, stage.ms.p90, stage.ms.max, 100 * stage.share);
  }
  text += fmt::format(
      "  {:<20} {:>9.3f}   {:.1f} pictures/s; {:.0f} candidates and {:.0f} boxes a "
      "picture\n",
      "sum", total, total > 0 ? 1e3 / total : 0, p.boxes, p.detections);
  return text;
}

// What the columns of a table look like: with or without roofs, as wide as their texts.
struct Columns {
  GroupBy group = GroupBy::kNode;
  bool roofs = true;
  size_t kernel = 6, op = 2;
};

std::string table_head(const Columns& c) {
  std::string text =
      fmt::format("\n{:>9} {:>9} {:>7} {:>9} ", "median ms", "min ms", "share", "GFLOP/s");
  if (c.roofs) text += fmt::format("{:>6} {:<8}", "roof", "bound");
  text += fmt::format("{:>8} {:>8}  ", "MB", "relaid");
  if (c.group != GroupBy::kNode) {
    return text + fmt::format("{:>5}  {}\n", "nodes", c.group == GroupBy::kOp ? "op" : "kernel");
  }
  return text + fmt::format("{:<5}{:<{}}  {:<{}}  {}\n", "type", "kernel", c.kernel, "op", c.op,
                            "node, shapes");
}

std::string table_row(const StepProfile& row, const Columns& c) {
  std::string text = fmt::format("{:>9.3f} {:>9.3f} {:>5.1f} % {:>9.1f} ", row.median_ms,
                                 row.min_ms, 100 * row.share, row.gflops);
  if (c.roofs) {
    text += row.of_roof > 0
                ? fmt::format("{:>4.0f} % {:<8}", 100 * row.of_roof, bound_name(row.roof.bound))
                : fmt::format("{:>6} {:<8}", "-", "");
  }
  text += fmt::format("{:>8.2f} ", mega(row.info.bytes));
  text += row.info.layout_bytes > 0 ? fmt::format("{:>8.2f}  ", mega(row.info.layout_bytes))
                                    : fmt::format("{:>8}  ", "-");
  switch (c.group) {
    case GroupBy::kNode:
      text += fmt::format("{:<5}{:<{}}  {:<{}}  {}  {}", graph::dtype_name(row.info.dtype),
                          row.info.kernel, c.kernel, row.info.op, c.op, row.info.node, row.shapes);
      break;
    case GroupBy::kOp:
      text += fmt::format("{:>5}  {}", row.count, row.info.op);
      break;
    case GroupBy::kKernel:
      text += fmt::format("{:>5}  {}", row.count, row.info.kernel);
      break;
  }
  return text + "\n";
}

std::vector<StepProfile> table_rows(const Profile& p, const ProfileTextOptions& options) {
  if (options.group == GroupBy::kOp) return by_op(p.steps);
  if (options.group == GroupBy::kKernel) return by_kernel(p.steps);
  std::vector<StepProfile> rows = p.steps;
  if (options.sort == SortBy::kTime)
    std::ranges::stable_sort(rows, std::greater(), &StepProfile::median_ms);
  return rows;
}

std::string table_text(const Profile& p, const ProfileTextOptions& options) {
  const std::vector<StepProfile> rows = table_rows(p, options);
  const size_t shown =
      options.top == 0 ? rows.size() : std::min(rows.size(), static_cast<size_t>(options.top));
  Columns columns{.group = options.group, .roofs = p.peak.f32_gflops > 0};
  for (const StepProfile& row : std::span(rows).first(shown)) {
    columns.kernel = std::max(columns.kernel, row.info.kernel.size());
    columns.op = std::max(columns.op, row.info.op.size());
  }
  std::string text = table_head(columns);
  for (const StepProfile& row : std::span(rows).first(shown)) text += table_row(row, columns);
  if (shown < rows.size()) {
    double ms = 0, share = 0;
    for (const StepProfile& row : std::span(rows).subspan(shown)) {
      ms += row.median_ms;
      share += row.share;
    }
    text += fmt::format("{:>9.3f} {:>9} {:>5.1f} %   {} more; --all shows them\n", ms, "",
                        100 * share, rows.size() - shown);
  }
  text += fmt::format("{:>9.3f} {:>9} {:>5.1f} % {:>9.1f}   sum of {}\n", p.steps_ms, "", 100.0,
                      p.steps_ms > 0 ? 2 * mega(p.macs) / p.steps_ms : 0,
                      plural(static_cast<int64_t>(p.steps.size()), "node"));
  text += fmt::format(
      "{:>9.3f} {:>9.3f}           the whole network in plain runs: the sum is "
      "{:+.1f} % off\n",
      p.plain_ms.median, p.plain_ms.min, 100 * p.difference);
  text += fmt::format(
      "{:>9.3f} {:>9}           by means of the faster half of the runs, the nodes then {:.3f}: "
      "{:+.1f} % off\n",
      p.calm.plain_ms, "", p.calm.steps_ms, 100 * p.calm.difference);
  text += fmt::format(
      "{:>9.3f} {:>9.3f}           the same with the clock read around each node; "
      "the readings cost {:.0f} µs\n",
      p.timed_ms.median, p.timed_ms.min, 1e3 * p.clock_ms);
  if (std::abs(p.difference) > kAddsUp) {
    text += wrapped(
        "The medians do not add up: a disturbance that meets another node in every run is in the "
        "median of the runs, but in no node's. On a quiet machine they do.",
        "  ");
  }
  if (columns.roofs) {
    text += wrapped(
        "roof: the least time (operations at the peak above, or bytes at memory's speed) over the "
        "time taken. More than 100 % is no mistake: Winograd kernels do fewer multiplications than "
        "are counted, and caches are faster than memory. MB: operands and results, each once. "
        "relaid: copied only to change layouts.",
        "  ");
  }
  return text;
}

std::string variation_text(const Profile& p) {
  const Stats& s = p.plain_ms;
  const Jitter& j = p.jitter;
  std::string text = fmt::format(
      "\nlatency  the network: min {:.3f}  median {:.3f}  p90 {:.3f}  p99 {:.3f}  max {:.3f} ms, "
      "deviation {:.3f}\n",
      s.min, s.median, s.p90, s.p99, s.max, s.deviation);
  text += fmt::format("         {} of {} slower than {:.1f} times the median", j.slow,
                      plural(s.count, "run"), kSlowRun);
  if (j.slow > 0) {
    text += fmt::format(
        "; beside them others used {:.2f} processors, {:.1f} switches a run;\n"
        "         beside",
        j.others_slow, j.switches_slow);
  } else {
    text += ";\n         beside";
  }
  text += fmt::format(" the rest {:.2f} and {:.1f}; {:.1f} % of the time stolen", j.others_rest,
                      j.switches_rest, j.steal_percent);
  if (j.burst_low > 0) {
    text += fmt::format("; multiply-adds between runs {:.0f} to {:.0f} GFLOP/s", j.burst_low,
                        j.burst_high);
  }
  const MemoryTrend& m = p.memory;
  text += fmt::format(
      "\nmemory   resident {:.1f} MB at the first run, {:.1f} at the last, {:.1f} at most; weights "
      "{:.1f}, activations {:.1f}\n",
      mega(m.first), mega(m.last), mega(p.peak_resident), mega(p.weight_bytes),
      mega(p.context_bytes));
  return text;
}

std::string advice_text(const Profile& p) {
  if (p.advice.empty()) {
    return "\nadvice   none: no rule found anything that stands out. docs/profile.md lists them.\n";
  }
  std::string text = "\nadvice\n";
  for (const Advice& advice : p.advice) {
    text += fmt::format("  {} [{}]\n", advice.bound, advice.rule);
    text += wrapped(advice.finding, "    ");
    text += wrapped("-> " + advice.remedy, "    ");
  }
  return text;
}

// --- JSON ---

json json_stats(const Stats& s) {
  return {{"count", s.count}, {"min", s.min}, {"mean", s.mean}, {"median", s.median},
          {"p90", s.p90},     {"p99", s.p99}, {"max", s.max},   {"deviation", s.deviation}};
}

// What rows of steps and of groups have in common.
json json_row(const StepProfile& row) {
  return {{"median_ms", row.median_ms},
          {"min_ms", row.min_ms},
          {"share", row.share},
          {"macs", row.info.macs},
          {"bytes", row.info.bytes},
          {"layout_bytes", row.info.layout_bytes},
          {"gflops", row.gflops},
          {"gb_s", row.gb_s},
          {"roof_ms", row.roof.ms},
          {"of_roof", row.of_roof},
          {"bound", bound_name(row.roof.bound)}};
}

json json_step(const StepProfile& step) {
  json row = json_row(step);
  row["node"] = step.info.node;
  row["op"] = step.info.op;
  row["kernel"] = step.info.kernel;
  row["precision"] = graph::dtype_name(step.info.dtype);
  row["shapes"] = step.shapes;
  row["copy_share"] = step.copy_share;
  if (!step.why_slow.empty()) row["why_slow"] = step.why_slow;
  return row;
}

json json_groups(std::span<const StepProfile> rows, std::string runtime::StepInfo::*key,
                 const char* name) {
  json out = json::array();
  for (const StepProfile& group : rows) {
    json row = json_row(group);
    row[name] = group.info.*key;
    row["count"] = group.count;
    out.push_back(std::move(row));
  }
  return out;
}

json json_machine(const Machine& m, const Peak& peak) {
  json out = {{"cpu", m.cpu},
              {"flags", m.flags},
              {"cores", m.cores},
              {"governor", m.governor},
              {"virtualisation", m.virtualisation},
              {"memory_bytes", m.memory_bytes},
              {"kernel", m.kernel}};
  if (peak.f32_gflops > 0) {
    out["peak"] = {{"threads", peak.threads},
                   {"isa", peak.isa},
                   {"f32_gflops", peak.f32_gflops},
                   {"bf16_gflops", peak.bf16_gflops},
                   {"int8_gops", peak.int8_gops},
                   {"amx_bf16_gflops", peak.amx_bf16_gflops},
                   {"amx_int8_gops", peak.amx_int8_gops},
                   {"memory_gb_s", peak.memory_gb_s}};
  }
  return out;
}

}  // namespace

std::string profile_text(const Profile& profile, const ProfileTextOptions& options) {
  return head_text(profile) + stages_text(profile) + table_text(profile, options) +
         variation_text(profile) + advice_text(profile);
}

std::string profile_csv(const Profile& profile) {
  std::string text =
      "index,node,op,kernel,precision,shapes,median_ms,min_ms,share,macs,gflops,bytes,"
      "layout_bytes,gb_s,roof_ms,of_roof,bound\n";
  for (size_t i = 0; i < profile.steps.size(); ++i) {
    const StepProfile& s = profile.steps[i];
    text += fmt::format(
        "{},{},{},{},{},{},{:.5f},{:.5f},{:.6f},{},{:.2f},{},{},{:.3f},{:.5f},"
        "{:.4f},{}\n",
        i, csv_field(s.info.node), csv_field(s.info.op), csv_field(s.info.kernel),
        graph::dtype_name(s.info.dtype), csv_field(s.shapes), s.median_ms, s.min_ms, s.share,
        s.info.macs, s.gflops, s.info.bytes, s.info.layout_bytes, s.gb_s, s.roof.ms, s.of_roof,
        bound_name(s.roof.bound));
  }
  return text;
}

std::string profile_json(const Profile& p) {
  json stages = json::array(), nodes = json::array(), advice = json::array();
  for (size_t s = 0; s < kStages; ++s) {
    if (!p.stages[s].measured) continue;
    stages.push_back({{"stage", kStageNames[s]},
                      {"ms", json_stats(p.stages[s].ms)},
                      {"share", p.stages[s].share}});
  }
  for (const StepProfile& step : p.steps) nodes.push_back(json_step(step));
  for (const Advice& a : p.advice) {
    advice.push_back({{"rule", a.rule},
                      {"bound", a.bound},
                      {"finding", a.finding},
                      {"remedy", a.remedy},
                      {"weight", a.weight}});
  }
  const Jitter& j = p.jitter;
  const MemoryTrend& m = p.memory;
  const json whole = {
      {"ferry", p.version},
      {"date", p.date},
      {"model", p.model},
      {"description", p.description},
      {"device", p.device},
      {"machine", json_machine(p.machine, p.peak)},
      {"threads", p.threads},
      {"batch", p.batch},
      {"height", p.height},
      {"width", p.width},
      {"tuned", p.tuned},
      {"source",
       {{"text", p.source},
        {"width", p.source_width},
        {"height", p.source_height},
        {"made_up", p.made_up},
        {"candidates", p.boxes},
        {"boxes", p.detections}}},
      {"warnings", p.warnings},
      {"warmup", p.warmup},
      {"stages", stages},
      {"picture_ms", json_stats(p.picture_ms)},
      {"network",
       {{"macs", p.macs},
        {"plain_ms", json_stats(p.plain_ms)},
        {"timed_ms", json_stats(p.timed_ms)},
        {"nodes_ms", p.steps_ms},
        {"difference", p.difference},
        {"faster_half",
         {{"nodes_ms", p.calm.steps_ms},
          {"plain_ms", p.calm.plain_ms},
          {"difference", p.calm.difference}}},
        {"clock_ms", p.clock_ms}}},
      {"nodes", nodes},
      {"by_op", json_groups(by_op(p.steps), &runtime::StepInfo::op, "op")},
      {"by_kernel", json_groups(by_kernel(p.steps), &runtime::StepInfo::kernel, "kernel")},
      {"jitter",
       {{"slow_limit_ms", j.slow_limit_ms},
        {"slow_runs", j.slow},
        {"others_cores", {{"slow", j.others_slow}, {"rest", j.others_rest}}},
        {"switches", {{"slow", j.switches_slow}, {"rest", j.switches_rest}}},
        {"steal_percent", j.steal_percent},
        {"burst_gflops", {{"low", j.burst_low}, {"high", j.burst_high}}}}},
      {"memory",
       {{"first_bytes", m.first},
        {"last_bytes", m.last},
        {"peak_bytes", p.peak_resident},
        {"bytes_per_run", m.bytes_per_run},
        {"growth_bytes", m.growth_bytes},
        {"steady", m.steady},
        {"weight_bytes", p.weight_bytes},
        {"context_bytes", p.context_bytes}}},
      {"advice", advice}};
  return whole.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace ferry::perf

#include "perf/bench_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ferry::perf {

namespace {

using nlohmann::json;

std::string plural(int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

double megabytes(int64_t bytes) { return static_cast<double>(bytes) / 1e6; }

std::string or_dash(double value, const char* text) {
  return value > 0 ? fmt::format(fmt::runtime(text), value) : "-";
}

std::string ratio_text(const Ratio& ratio) {
  return fmt::format("{:.2f} ({:.2f}-{:.2f})", ratio.median, ratio.low, ratio.high);
}

std::string row_label(const BenchRow& row) {
  const RowResult& r = row.result;
  std::string label = fmt::format("{} {}x{}, batch {}, {}", row.model, row.width, row.height,
                                  r.batch, plural(r.threads, "thread"));
  if (r.streams > 1) label += fmt::format(", {} streams", r.streams);
  if (row.work != "network") label += ", " + row.work;
  return label;
}

// What the machine did while the row was measured, in one line.
std::string conditions_text(const RowResult& row) {
  if (row.rounds.empty()) return "no round was played";
  std::vector<double> others, bursts, trips;
  double steal = 0;
  for (const Round& round : row.rounds) {
    others.push_back(round.disturbance.others_cores);
    bursts.push_back(round.burst_gflops);
    if (round.round_trip_ns > 0) trips.push_back(round.round_trip_ns);
    steal = std::max(steal, round.disturbance.steal_percent);
  }
  std::ranges::sort(others);
  const auto [least, most] = std::ranges::minmax(bursts);
  std::string text = fmt::format(
      "others used {:.2f} processors (at most {:.2f}), stolen at most {:.1f} %, bursts "
      "{:.0f}-{:.0f} % of peak",
      percentile(others, 50), others.back(), steal, 100 * least / row.peak.f32_gflops,
      100 * most / row.peak.f32_gflops);
  if (!trips.empty()) {
    const auto [near, far] = std::ranges::minmax(trips);
    text += fmt::format(", round trip {:.0f}-{:.0f} ns", near, far);
  }
  return text + fmt::format("; {} played, {} kept", plural(row.played, "round"), row.rounds.size());
}

std::string engine_text(const EngineResult& e, const RowResult& row, bool first) {
  std::string text = fmt::format("{} {}", e.name, e.info.version);
  if (!e.info.precision.empty()) text += ", " + e.info.precision;
  if (!e.info.device.empty()) text += ", " + e.info.device;
  text += '\n';
  if (!e.refused.empty()) return text + fmt::format("  not timed   {}\n", e.refused);
  const Stats& s = e.latency;
  text += fmt::format("  throughput  {:.2f} images/s\n", e.images_per_s);
  text += fmt::format(
      "  latency ms  min {:.2f}  mean {:.2f}  median {:.2f}  p90 {:.2f}  p99 {:.2f}  max {:.2f}  "
      "({})\n",
      s.min, s.mean, s.median, s.p90, s.p99, s.max, plural(s.count, "run"));
  if (e.of_peak > 0 && e.of_peak_fastest > 0) {
    text += fmt::format("  of peak     {:.0f} % at the median, {:.0f} % at the fastest\n",
                        100 * e.of_peak, 100 * e.of_peak_fastest);
  } else if (e.of_peak > 0) {
    text += fmt::format("  of peak     {:.0f} % of {}\n", 100 * e.of_peak,
                        plural(row.threads * row.streams, "thread"));
  }
  text += fmt::format("  memory      peak RSS {:.1f} MB", e.memory.peak_rss_mb);
  if (e.memory.interpreter_mb > 0) {
    text += fmt::format(", {:.1f} of it Python", e.memory.interpreter_mb);
  }
  if (e.info.weight_bytes > 0) {
    text += fmt::format("; weights {:.1f} MB, arena {:.1f} MB", megabytes(e.info.weight_bytes),
                        megabytes(e.info.arena_bytes));
  }
  text += fmt::format("\n  load        {:.0f} ms\n", e.info.load_ms);
  if (!first) {
    text += fmt::format(
        "  ratio       {:.3f} times the time of {} ({:.3f} to {:.3f} in 8 of 10 rounds, median "
        "within {:.3f} to {:.3f} at 95 %; fastest runs {:.3f})\n",
        e.ratio.median, row.engines[0].name, e.ratio.low, e.ratio.high, e.ratio.sure_low,
        e.ratio.sure_high, e.ratio.of_fastest);
    text += fmt::format("  differs     scores {:.1e} relative, boxes {:.1e} pixels\n",
                        e.difference.scores, e.difference.boxes);
  }
  return text;
}

json json_stats(const Stats& s) {
  return {{"count", s.count}, {"min", s.min}, {"mean", s.mean}, {"median", s.median},
          {"p90", s.p90},     {"p99", s.p99}, {"max", s.max},   {"deviation", s.deviation}};
}

json json_peak(const Peak& p) {
  return {{"threads", p.threads},
          {"isa", p.isa},
          {"f32_gflops", p.f32_gflops},
          {"bf16_gflops", p.bf16_gflops},
          {"int8_gops", p.int8_gops},
          {"amx_bf16_gflops", p.amx_bf16_gflops},
          {"amx_int8_gops", p.amx_int8_gops},
          {"memory_gb_s", p.memory_gb_s}};
}

json json_machine(const Machine& m) {
  return {{"cpu", m.cpu},
          {"flags", m.flags},
          {"cores", m.cores},
          {"governor", m.governor},
          {"virtualisation", m.virtualisation},
          {"memory_bytes", m.memory_bytes},
          {"kernel", m.kernel}};
}

json json_engine(const EngineResult& e, bool first, bool times) {
  json object = {{"name", e.name},
                 {"version", e.info.version},
                 {"precision", e.info.precision},
                 {"device", e.info.device}};
  if (!e.refused.empty()) {
    object["refused"] = e.refused;
    return object;
  }
  object["images_per_s"] = e.images_per_s;
  object["latency_ms"] = json_stats(e.latency);
  object["of_peak"] = {{"median", e.of_peak}, {"fastest", e.of_peak_fastest}};
  object["memory"] = {{"peak_rss_mb", e.memory.peak_rss_mb},
                      {"rss_mb", e.memory.rss_mb},
                      {"python_mb", e.memory.interpreter_mb},
                      {"weight_bytes", e.info.weight_bytes},
                      {"arena_bytes", e.info.arena_bytes}};
  object["load_ms"] = e.info.load_ms;
  if (!first) {
    object["ratio"] = {{"median", e.ratio.median},     {"low", e.ratio.low},
                       {"high", e.ratio.high},         {"least", e.ratio.least},
                       {"most", e.ratio.most},         {"of_fastest", e.ratio.of_fastest},
                       {"sure_low", e.ratio.sure_low}, {"sure_high", e.ratio.sure_high}};
    object["differs"] = {{"scores", e.difference.scores}, {"boxes", e.difference.boxes}};
  }
  if (times) object["rounds_ms"] = e.rounds_ms;
  return object;
}

json json_row(const BenchRow& row, bool times) {
  const RowResult& r = row.result;
  json engines = json::array(), rounds = json::array();
  for (const EngineResult& e : r.engines) {
    engines.push_back(json_engine(e, &e == r.engines.data(), times));
  }
  for (const Round& round : r.rounds) {
    rounds.push_back({{"others_cores", round.disturbance.others_cores},
                      {"steal_percent", round.disturbance.steal_percent},
                      {"burst_gflops", round.burst_gflops},
                      {"round_trip_ns", round.round_trip_ns}});
  }
  return {{"model", row.model},
          {"description", row.description},
          {"work", row.work},
          {"height", row.height},
          {"width", row.width},
          {"batch", r.batch},
          {"threads", r.threads},
          {"streams", r.streams},
          {"macs", r.macs},
          {"peak", json_peak(r.peak)},
          {"engines", engines},
          {"rounds", rounds},
          {"rounds_played", r.played},
          {"warnings", r.warnings}};
}

std::string dump(const json& object, int indent) {
  return object.dump(indent, ' ', false, json::error_handler_t::replace) + "\n";
}

// A field of a CSV file.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string escaped = "\"";
  for (const char c : text) escaped += c == '"' ? std::string("\"\"") : std::string(1, c);
  return escaped + "\"";
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

std::string machine_text(const Machine& m, std::span<const Peak> peaks) {
  std::string text =
      fmt::format("machine  {}, {}, {:.1f} GB, {}{}{}\n", m.cpu, plural(m.cores, "core"),
                  static_cast<double>(m.memory_bytes) / 1e9, m.kernel,
                  m.virtualisation.empty() ? "" : ", under " + m.virtualisation,
                  m.governor.empty() ? "" : ", governor " + m.governor);
  text += fmt::format("         {}\n", fmt::join(m.flags, " "));
  for (const Peak& p : peaks) {
    text += fmt::format("peak     {}: {:.0f} GFLOP/s f32 ({})", plural(p.threads, "thread"),
                        p.f32_gflops, p.isa);
    if (p.bf16_gflops > 0) text += fmt::format(", {:.0f} bf16", p.bf16_gflops);
    if (p.int8_gops > 0) text += fmt::format(", {:.0f} int8", p.int8_gops);
    if (p.amx_bf16_gflops > 0) {
      text += fmt::format(", tiles {:.0f} bf16, {:.0f} int8", p.amx_bf16_gflops, p.amx_int8_gops);
    }
    text += fmt::format("; memory {:.1f} GB/s\n", p.memory_gb_s);
  }
  return text;
}

std::string row_text(const BenchRow& row) {
  std::string text = fmt::format("== {} ==\n", row_label(row));
  for (const EngineResult& e : row.result.engines) {
    text += engine_text(e, row.result, &e == row.result.engines.data());
  }
  text += fmt::format("conditions: {}\n", conditions_text(row.result));
  for (const std::string& warning : row.result.warnings) text += "NOTE: " + warning + "\n";
  return text;
}

std::string table_text(std::span<const BenchRow> rows) {
  size_t model = 5, engine = 6;  // widths of these columns
  for (const BenchRow& row : rows) {
    model = std::max(model, row.model.size());
    for (const EngineResult& e : row.result.engines) engine = std::max(engine, e.name.size());
  }
  std::string text =
      fmt::format("{:<{}} {:>5} {:>7} {:>7}  {:<{}} {:>9} {:>9} {:>9} {:>10} {:>8} {:>9}  {}\n",
                  "model", model, "batch", "threads", "streams", "engine", engine, "median ms",
                  "min ms", "p99 ms", "images/s", "of peak", "RSS MB", "ratio (spread)");
  for (const BenchRow& row : rows) {
    const RowResult& r = row.result;
    for (const EngineResult& e : r.engines) {
      const bool first = &e == r.engines.data();
      text += fmt::format("{:<{}} {:>5} {:>7} {:>7}  {:<{}} ", row.model, model, r.batch, r.threads,
                          r.streams, e.name, engine);
      if (!e.refused.empty()) {
        text += "not timed: " + first_line(e.refused) + "\n";
        continue;
      }
      text += fmt::format("{:>9.2f} {:>9.2f} {:>9.2f} {:>10.2f} {:>8} {:>9.1f}  {}\n",
                          e.latency.median, e.latency.min, e.latency.p99, e.images_per_s,
                          or_dash(100 * e.of_peak, "{:.0f} %"), e.memory.peak_rss_mb,
                          first ? "1" : ratio_text(e.ratio));
    }
  }
  return text;
}

std::string markdown(const BenchRun& run) {
  std::string text = fmt::format("ferry {}{}, {}\n\n```\n{}```\n\n", run.version,
                                 run.commit.empty() ? "" : fmt::format(" ({})", run.commit),
                                 run.date, machine_text(run.machine, run.peaks));
  text +=
      "| model | batch | threads | streams | engine | median ms | min ms | p90 | p99 | images/s | "
      "of peak | peak RSS MB | load ms | ratio (spread) | differs |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const BenchRow& row : run.rows) {
    const RowResult& r = row.result;
    for (const EngineResult& e : r.engines) {
      const bool first = &e == r.engines.data();
      text += fmt::format("| {} | {} | {} | {} | {} {} | ", row.model, r.batch, r.threads,
                          r.streams, e.name, e.info.version);
      if (!e.refused.empty()) {
        text += fmt::format("not timed: {} | | | | | | | | | |\n", first_line(e.refused));
        continue;
      }
      text += fmt::format(
          "{:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {} | {:.1f} | {:.0f} | {} | {} |\n",
          e.latency.median, e.latency.min, e.latency.p90, e.latency.p99, e.images_per_s,
          or_dash(100 * e.of_peak, "{:.0f} %"), e.memory.peak_rss_mb, e.info.load_ms,
          first ? "1" : ratio_text(e.ratio),
          first ? "" : fmt::format("{:.0e}, {:.0e} px", e.difference.scores, e.difference.boxes));
    }
  }
  text += "\n";
  for (const BenchRow& row : run.rows) {
    text += fmt::format("- {}: {}.\n", row_label(row), conditions_text(row.result));
    for (const std::string& warning : row.result.warnings) text += "  - " + warning + "\n";
  }
  return text;
}

std::string csv(const BenchRun& run) {
  std::string text =
      "model,work,height,width,batch,threads,streams,engine,version,runs,images_per_s,min_ms,"
      "mean_ms,median_ms,p90_ms,p99_ms,max_ms,of_peak,peak_rss_mb,weights_mb,arena_mb,load_ms,"
      "ratio,ratio_low,ratio_high,ratio_of_fastest,others_cores,steal_percent,refused\n";
  for (const BenchRow& row : run.rows) {
    const RowResult& r = row.result;
    double others = 0, steal = 0;
    for (const Round& round : r.rounds) {
      others += round.disturbance.others_cores / static_cast<double>(r.rounds.size());
      steal = std::max(steal, round.disturbance.steal_percent);
    }
    for (const EngineResult& e : r.engines) {
      const Stats& s = e.latency;
      text += fmt::format("{},{},{},{},{},{},{},{},{},", quoted(row.model), row.work, row.height,
                          row.width, r.batch, r.threads, r.streams, quoted(e.name),
                          quoted(e.info.version));
      text += fmt::format("{},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},", s.count,
                          e.images_per_s, s.min, s.mean, s.median, s.p90, s.p99, s.max, e.of_peak);
      text += fmt::format("{:.1f},{:.3f},{:.3f},{:.1f},{:.4f},{:.4f},{:.4f},{:.4f},",
                          e.memory.peak_rss_mb, megabytes(e.info.weight_bytes),
                          megabytes(e.info.arena_bytes), e.info.load_ms, e.ratio.median,
                          e.ratio.low, e.ratio.high, e.ratio.of_fastest);
      text += fmt::format("{:.3f},{:.2f},{}\n", others, steal, quoted(e.refused));
    }
  }
  return text;
}

std::string json_text(const BenchRun& run) {
  json rows = json::array(), peaks = json::array();
  for (const BenchRow& row : run.rows) rows.push_back(json_row(row, /*times=*/true));
  for (const Peak& peak : run.peaks) peaks.push_back(json_peak(peak));
  return dump({{"ferry", run.version},
               {"date", run.date},
               {"commit", run.commit},
               {"machine", json_machine(run.machine)},
               {"peaks", peaks},
               {"rows", rows}},
              1);
}

std::string record_line(const BenchRun& run, const BenchRow& row) {
  return dump({{"ferry", run.version},
               {"date", run.date},
               {"commit", run.commit},
               {"machine", json_machine(run.machine)},
               {"row", json_row(row, /*times=*/false)}},
              -1);
}

}  // namespace ferry::perf

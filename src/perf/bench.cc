#include "perf/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <utility>

#include "perf/npy.h"

namespace ferry::perf {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSettleS = 0.05;     // lets the last engine's threads stop spinning
constexpr double kWakeBelowMs = 200;  // a run faster than this has an untimed one before its turn

// From here on a condition is a doubt.
constexpr double kOthersCores = 0.1;
constexpr double kStealPercent = 1;
constexpr double kBurstSpread = 0.10;
constexpr double kOwnSpread = 0.05;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void sleep_s(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return percentile(values, 50);
}

std::vector<double> medians_of(std::span<const std::vector<double>> rounds) {
  std::vector<double> medians;
  for (const std::vector<double>& round : rounds) medians.push_back(median_of(round));
  return medians;
}

// One engine of a row while it is measured.
struct Player {
  EngineResult result;
  std::unique_ptr<Peer> peer;  // null: refused
  double estimate_ms = 0;      // of one run
  int64_t per_turn = 1;        // runs

  void refuse(std::string why) {
    result.refused = std::move(why);
    peer.reset();
  }
};

class Row {
 public:
  explicit Row(const RowOptions& options) : o_(options) {
    row_.threads = o_.threads;
    row_.streams = o_.streams;
    row_.batch = o_.batch;
    row_.peak = o_.peak;
  }

  Result<RowResult> measure(std::vector<PeerCommand> engines) {
    for (PeerCommand& command : engines) {
      FERRY_CHECK_OK(cancelled());
      Player& player = players_.emplace_back();
      player.result.name = command.name;
      say(fmt::format("{}: load and check", command.name));
      const Status ready = prepare(player, std::move(command));
      FERRY_CHECK_OK(cancelled());
      if (ready.ok()) continue;
      if (players_.size() == 1) return ready.error();
      player.refuse(ready.error().message);
    }
    row_.macs = players_[0].result.info.macs;
    FERRY_CHECK_OK(play());
    collect();
    return std::move(row_);
  }

 private:
  Status cancelled() const {
    if (o_.cancelled && o_.cancelled()) return error(Code::kCancelled, "interrupted");
    return {};
  }

  void say(const std::string& what) const {
    if (o_.progress) o_.progress(what);
  }

  double turn_timeout(const Player& player, int64_t runs) const {
    return o_.timeout_s + 20e-3 * player.estimate_ms * static_cast<double>(runs);
  }

  // Loads an engine, compares its output, warms it up and finds how often it runs in a turn.
  Status prepare(Player& player, PeerCommand command) {
    command.cancelled = o_.cancelled;
    FERRY_TRY(peer, Peer::start(std::move(command)));
    player.peer = std::move(peer);
    FERRY_TRY(info, player.peer->info(o_.timeout_s));
    player.result.info = info;
    // Before anything but running was asked of it: writing its output takes memory too.
    FERRY_TRY(first_run, player.peer->run(1, o_.timeout_s));
    FERRY_TRY(memory, player.peer->memory(o_.timeout_s));
    player.result.memory = memory;
    if (o_.check_outputs && !o_.folder.empty()) FERRY_CHECK_OK(check_output(player));
    const Clock::time_point start = Clock::now();
    for (int64_t runs = 1;; runs *= 2) {
      FERRY_TRY(run, player.peer->run(runs, turn_timeout(player, runs)));
      player.estimate_ms = run.wall_ms / static_cast<double>(runs);
      if (seconds_since(start) >= o_.warmup_s) break;
    }
    const double runs = o_.iterations > 0
                            ? std::ceil(static_cast<double>(o_.iterations) / o_.rounds)
                            : std::round(1e3 * o_.duration_s / o_.rounds / player.estimate_ms);
    player.per_turn = std::max<int64_t>(1, static_cast<int64_t>(runs));
    return {};
  }

  Status check_output(Player& player) {
    const bool first = players_.size() == 1;
    const std::string reference = o_.folder + "/output.npy";
    const std::string path = first ? reference : o_.folder + "/output_of_peer.npy";
    FERRY_CHECK_OK(player.peer->output(path, o_.timeout_s));
    FERRY_TRY(difference, difference_of(path, reference));
    if (!first) std::remove(path.c_str());
    player.result.difference = difference;
    if (difference.scores <= kScoreLimit && difference.boxes <= kBoxLimit) return {};
    return error(Code::kInvalid,
                 "{}: computes something else than {}: scores differ by {:.2g} (relative), boxes "
                 "by {:.2g} pixels",
                 player.result.name, players_[0].result.name, difference.scores, difference.boxes);
  }

  std::vector<int> children() const {
    std::vector<int> pids;
    for (const Player& player : players_) {
      if (player.peer) pids.push_back(player.peer->pid());
    }
    return pids;
  }

  // Returns when others use no more than they may, or after the time to wait.
  void wait_until_quiet() const {
    const Clock::time_point start = Clock::now();
    while (seconds_since(start) < o_.wait_s && cancelled().ok()) {
      const CpuClock begin = read_cpu_clock(children());
      sleep_s(0.25);
      const double others = between(begin, read_cpu_clock(children())).others_cores;
      if (others <= std::max(o_.quiet_cores, 0.05)) return;  // 0.04 is one tick
    }
  }

  // One turn of one engine; what others did meanwhile is added to `round`.
  Status turn(Player& player, std::vector<CpuClock>& readings) {
    if (players_.size() > 1) sleep_s(kSettleS);
    if (player.estimate_ms < kWakeBelowMs) {  // its weights and threads come back
      FERRY_TRY(woken, player.peer->run(1, turn_timeout(player, 1)));
    }
    readings.push_back(read_cpu_clock(children()));
    FERRY_TRY(run, player.peer->run(player.per_turn, turn_timeout(player, player.per_turn)));
    readings.push_back(read_cpu_clock(children()));
    player.result.rounds_ms.push_back(std::move(run.times_ms));
    player.result.walls_ms.push_back(run.wall_ms);
    return {};
  }

  Status play_round(int number) {
    Round round;
    wait_until_quiet();
    const int threads = o_.threads * o_.streams;
    round.burst_gflops = f32_burst_gflops(threads);
    if (threads > 1) round.round_trip_ns = cache_line_round_trip_ns();
    std::vector<size_t> order(players_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (number % 2 == 1) std::ranges::reverse(order);
    double others_s = 0, wall_s = 0, stolen_s = 0, total_s = 0;
    for (const size_t i : order) {
      Player& player = players_[i];
      if (!player.peer) continue;
      std::vector<CpuClock> readings;
      const Status status = turn(player, readings);
      FERRY_CHECK_OK(cancelled());
      if (!status.ok()) {
        if (i == 0) return status;
        player.refuse(status.error().message);
        continue;
      }
      const Disturbance d = between(readings[0], readings[1]);
      const double wall = readings[1].wall_s - readings[0].wall_s;
      const double total = readings[1].total_s - readings[0].total_s;
      others_s += d.others_cores * wall;
      wall_s += wall;
      stolen_s += d.steal_percent * total;
      total_s += total;
      round.disturbance.involuntary_switches += d.involuntary_switches;
    }
    if (wall_s > 0) round.disturbance.others_cores = others_s / wall_s;
    if (total_s > 0) round.disturbance.steal_percent = stolen_s / total_s;
    row_.rounds.push_back(round);
    return {};
  }

  // Plays rounds until enough were quiet or patience ends, and keeps the least disturbed.
  Status play() {
    const int most = std::max(o_.rounds, static_cast<int>(o_.rounds * o_.patience));
    int quiet = 0;
    while (row_.played < most && quiet < o_.rounds) {
      say(fmt::format("round {} of {}", row_.played + 1, std::max(o_.rounds, row_.played + 1)));
      FERRY_CHECK_OK(play_round(row_.played));
      row_.played += 1;
      quiet += row_.rounds.back().disturbance.others_cores <= o_.quiet_cores;
    }
    std::vector<size_t> kept(row_.rounds.size());
    std::iota(kept.begin(), kept.end(), size_t{0});
    std::ranges::stable_sort(kept, {},
                             [&](size_t i) { return row_.rounds[i].disturbance.others_cores; });
    kept.resize(std::min(kept.size(), static_cast<size_t>(o_.rounds)));
    std::ranges::sort(kept);
    row_.rounds = picked(row_.rounds, kept);
    for (Player& player : players_) {
      if (!player.peer) continue;
      player.result.rounds_ms = picked(player.result.rounds_ms, kept);
      player.result.walls_ms = picked(player.result.walls_ms, kept);
    }
    return {};
  }

  template <class T>
  static std::vector<T> picked(const std::vector<T>& all, const std::vector<size_t>& indices) {
    std::vector<T> some;
    for (const size_t i : indices) some.push_back(all[i]);
    return some;
  }

  void collect() {
    double best = o_.peak.f32_gflops;
    for (const Round& round : row_.rounds) best = std::max(best, round.burst_gflops);
    row_.peak.f32_gflops = best;
    for (Player& player : players_) {
      EngineResult& result = player.result;
      if (player.peer) {
        summarise(result);
      } else {
        result.rounds_ms.clear();
        result.walls_ms.clear();
      }
      row_.engines.push_back(std::move(result));
    }
    for (EngineResult& engine : row_.engines) {
      if (engine.refused.empty()) {
        engine.ratio = ratio_of(row_.engines[0].rounds_ms, engine.rounds_ms);
      }
    }
    row_.warnings = doubts(row_);
  }

  void summarise(EngineResult& result) const {
    std::vector<double> all;
    for (const auto& round : result.rounds_ms) all.insert(all.end(), round.begin(), round.end());
    result.latency = stats_of(all);
    const double wall_ms = std::accumulate(result.walls_ms.begin(), result.walls_ms.end(), 0.0);
    result.images_per_s =
        1e3 * static_cast<double>(o_.batch) * static_cast<double>(all.size()) / wall_ms;
    const double least_ms = 2e-6 * static_cast<double>(row_.macs) / row_.peak.f32_gflops;
    if (row_.macs > 0 && std::isfinite(least_ms) && o_.streams == 1) {
      result.of_peak = least_ms / result.latency.median;
      result.of_peak_fastest = least_ms / result.latency.min;
    }
    if (row_.macs > 0 && std::isfinite(least_ms) && o_.streams > 1) {
      result.of_peak = least_ms * result.images_per_s / static_cast<double>(o_.batch) * 1e-3;
    }
  }

  const RowOptions& o_;
  RowResult row_;
  std::vector<Player> players_;
};

}  // namespace

Ratio ratio_of(std::span<const std::vector<double>> ours,
               std::span<const std::vector<double>> theirs) {
  const std::vector<double> a = medians_of(ours), b = medians_of(theirs);
  std::vector<double> ratios(a.size());
  for (size_t i = 0; i < a.size(); ++i) ratios[i] = b[i] / a[i];

  std::vector<double> resampled;  // the median of as many rounds, drawn with replacement
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    std::vector<double> drawn;
    for (size_t k = 0; k < ratios.size(); ++k) drawn.push_back(ratios[random() % ratios.size()]);
    resampled.push_back(median_of(std::move(drawn)));
  }
  std::ranges::sort(resampled);
  std::ranges::sort(ratios);
  const auto fastest = [](std::span<const std::vector<double>> rounds) {
    double least = rounds[0][0];
    for (const auto& round : rounds) least = std::min(least, std::ranges::min(round));
    return least;
  };
  return {.median = percentile(ratios, 50),
          .low = percentile(ratios, 10),
          .high = percentile(ratios, 90),
          .least = ratios.front(),
          .most = ratios.back(),
          .of_fastest = fastest(theirs) / fastest(ours),
          .sure_low = percentile(resampled, 2.5),
          .sure_high = percentile(resampled, 97.5)};
}

Result<Difference> difference_of(const std::string& path, const std::string& reference) {
  FERRY_TRY(output, read_npy(path));
  FERRY_TRY(wanted, read_npy(reference));
  if (output.shape != wanted.shape) {
    return error(Code::kInvalid, "its output is [{}], where [{}] is meant",
                 fmt::join(output.shape, ", "), fmt::join(wanted.shape, ", "));
  }
  const auto columns = static_cast<size_t>(output.shape.empty() ? 1 : output.shape.back());
  const bool boxes = output.shape.size() == 3 && columns > 5;
  Difference difference;
  for (size_t i = 0; i < output.values.size(); ++i) {
    const double a = output.values[i], b = wanted.values[i];
    const double apart = std::abs(a - b);
    if (std::isnan(apart) && !(std::isnan(a) && std::isnan(b)) && a != b) {
      return error(Code::kInvalid, "its output holds {} where {} is meant", a, b);
    }
    if (boxes && i % columns < 4) {
      difference.boxes = std::max(difference.boxes, apart);
    } else {
      difference.scores = std::max(difference.scores, apart / (std::abs(b) + 1e-6));
    }
  }
  return difference;
}

std::vector<std::string> doubts(const RowResult& row) {
  std::vector<std::string> said;
  if (row.rounds.empty()) return said;
  std::vector<double> others, steal, bursts;
  for (const Round& round : row.rounds) {
    others.push_back(round.disturbance.others_cores);
    steal.push_back(round.disturbance.steal_percent);
    if (round.burst_gflops > 0) bursts.push_back(round.burst_gflops);
  }
  if (median_of(others) > kOthersCores) {
    said.push_back(
        fmt::format("Other processes used {:.2f} processors meanwhile ({:.2f} at most): times are "
                    "longer than they need be.",
                    median_of(others), std::ranges::max(others)));
  }
  if (std::ranges::max(steal) > kStealPercent) {
    said.push_back(fmt::format("The hypervisor took {:.1f} % of the processors' time at most.",
                               std::ranges::max(steal)));
  }
  if (!bursts.empty()) {
    const auto [least, most] = std::ranges::minmax(bursts);
    if (least < (1 - kBurstSpread) * row.peak.f32_gflops) {
      said.push_back(fmt::format(
          "A burst of multiply-adds reached between {:.0f} and {:.0f} % of the machine's peak: its "
          "speed changed while it was measured.",
          100 * least / row.peak.f32_gflops, 100 * most / row.peak.f32_gflops));
    }
  }
  if (!row.engines.empty() && row.engines[0].refused.empty()) {
    std::vector<double> medians = medians_of(row.engines[0].rounds_ms);
    std::ranges::sort(medians);
    const double spread =
        (percentile(medians, 90) - percentile(medians, 10)) / percentile(medians, 50);
    if (spread > kOwnSpread) {
      said.push_back(
          fmt::format("Rounds of {} lie {:.0f} % apart: a difference below that means nothing.",
                      row.engines[0].name, 100 * spread));
    }
  }
  for (size_t i = 1; i < row.engines.size(); ++i) {
    const EngineResult& engine = row.engines[i];
    if (!engine.refused.empty()) continue;
    if (engine.ratio.low <= 1 && engine.ratio.high >= 1) {
      said.push_back(
          fmt::format("No difference is shown between {} and {}: the spread of their "
                      "ratio, {:.3f} to {:.3f}, holds 1.",
                      row.engines[0].name, engine.name, engine.ratio.low, engine.ratio.high));
    }
  }
  return said;
}

Result<RowResult> measure_row(std::vector<PeerCommand> engines, const RowOptions& options) {
  FERRY_ASSERT(!engines.empty() && options.rounds > 0, "a row has an engine and a round");
  return Row(options).measure(std::move(engines));
}

}  // namespace ferry::perf

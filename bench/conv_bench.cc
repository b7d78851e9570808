// Times every convolution of YOLOv5 with every tactic that accepts it, one by one: where is the
// time, who is fastest, how far from the machine's peak. The layers are those ferry runs: siblings
// (cv1 and cv2 of a C3) are one convolution.
//
//   conv_bench [--net nsm] [--imgsz 640 640] [--threads 1] [--rounds 30] [--peak GFLOPS] [--tactics
//   igemm,onednn]
//   [--layer TEXT]
//
// A round runs every tactic once on a layer, so that what else the machine does meets all alike.
// Printed: the minimum and the median of the rounds, the minimum as a share of the FMA peak
// (measured between the layers; Winograd may pass 100 %), and sums over the network. First each
// answer is compared with the reference, on the first rows.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/kernels/conv.h"
#include "backends/cpu/kernels/vec.h"

#define FERRY_KERNEL "conv_bench.inc"
#include "backends/cpu/kernels/foreach_isa.inc"

namespace ferry::cpu {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string nets = "nsm", tactics, layer;
  int64_t h = 640, w = 640;
  int threads = 1, rounds = 30;
  double peak = 0;  // GFLOP/s that the core is known to reach; 0: what it reaches meanwhile
};

struct Layer {
  std::string name;
  ConvProblem problem;
  int count = 1;
};

// The convolutions of YOLOv5 v6/v7 at a size, equal ones counted.
class Network {
 public:
  Network(char size, int64_t h, int64_t w, Isa isa) : h_(h), w_(w), isa_(isa) {
    static const std::map<char, std::pair<double, double>> kMultiples = {{'n', {0.33, 0.25}},
                                                                         {'s', {0.33, 0.50}},
                                                                         {'m', {0.67, 0.75}},
                                                                         {'l', {1.0, 1.0}},
                                                                         {'x', {1.33, 1.25}}};
    const auto [depth, width] = kMultiples.at(size);
    const auto ch = [&](int64_t c) {
      return static_cast<int64_t>(std::ceil(static_cast<double>(c) * width / 8)) * 8;
    };
    const auto n = [&](int repeats) {
      return std::max(static_cast<int>(std::lround(repeats * depth)), 1);
    };
    add("0 stem", 3, ch(64), 6, 2, 2);
    add("1 down", ch(64), ch(128), 3, 2, 4);
    c3("2", ch(128), ch(128), n(3), 4, true);
    add("3 down", ch(128), ch(256), 3, 2, 8);
    c3("4", ch(256), ch(256), n(6), 8, true);
    add("5 down", ch(256), ch(512), 3, 2, 16);
    c3("6", ch(512), ch(512), n(9), 16, true);
    add("7 down", ch(512), ch(1024), 3, 2, 32);
    c3("8", ch(1024), ch(1024), n(3), 32, true);
    add("9 sppf", ch(1024), ch(512), 1, 1, 32);
    add("9 sppf", ch(2048), ch(1024), 1, 1, 32);
    add("10", ch(1024), ch(512), 1, 1, 32);
    c3("13", ch(1024), ch(512), n(3), 16, false);
    add("14", ch(512), ch(256), 1, 1, 16);
    c3("17", ch(512), ch(256), n(3), 8, false);
    add("18 down", ch(256), ch(256), 3, 2, 16);
    c3("20", ch(512), ch(512), n(3), 16, false);
    add("21 down", ch(512), ch(512), 3, 2, 32);
    c3("23", ch(1024), ch(1024), n(3), 32, false);
    for (int i = 0; i < 3; ++i) add("24 head", ch(256 << i), 255, 1, 1, 8 << i, {});
  }

  const std::vector<Layer>& layers() const { return layers_; }

 private:
  static constexpr Epilogue kSilu = {{ActivationKind::kSilu}, Residual::kNone};

  void add(const std::string& name, int64_t in_c, int64_t out_c, int64_t k, int64_t stride,
           int64_t at, Epilogue e = kSilu) {
    const int64_t pad = k == 6 ? 2 : k / 2;
    ConvProblem p = {.shape = {.in_h = h_ / at * stride,
                               .in_w = w_ / at * stride,
                               .in_c = in_c,
                               .out_h = h_ / at,
                               .out_w = w_ / at,
                               .out_c = out_c,
                               .kernel_h = k,
                               .kernel_w = k,
                               .stride_h = stride,
                               .stride_w = stride,
                               .pad_top = pad,
                               .pad_left = pad},
                     .epilogue = e,
                     .in_stride = in_c,
                     .out_stride = out_c,
                     .isa = isa_};
    if (e.residual != Residual::kNone) p.residual_stride = out_c;
    for (Layer& layer : layers_) {
      if (layer.problem == p) {
        ++layer.count;
        return;
      }
    }
    layers_.push_back({name, p, 1});
  }

  void c3(const std::string& name, int64_t in_c, int64_t out_c, int repeats, int64_t at,
          bool shortcut) {
    const int64_t hidden = out_c / 2;
    add(name + " c3.cv12", in_c, 2 * hidden, 1, 1, at);
    for (int i = 0; i < repeats; ++i) {
      add(name + " m.cv1", hidden, hidden, 1, 1, at);
      add(name + " m.cv2", hidden, hidden, 3, 1, at,
          {{ActivationKind::kSilu}, shortcut ? Residual::kAfterActivation : Residual::kNone});
    }
    add(name + " c3.cv3", 2 * hidden, out_c, 1, 1, at);
  }

  int64_t h_, w_;
  Isa isa_;
  std::vector<Layer> layers_;
};

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Memory = std::unique_ptr<float, Free>;

Memory allocate(size_t bytes) {
  const size_t rounded = (bytes + 127) / 64 * 64;
  Memory memory(static_cast<float*>(std::aligned_alloc(64, rounded)));
  std::memset(memory.get(), 0, rounded);
  return memory;
}

Memory noise(int64_t floats, float spread, unsigned seed) {
  Memory memory = allocate(static_cast<size_t>(floats) * sizeof(float));
  std::minstd_rand random(seed);
  std::uniform_real_distribution<float> uniform(-spread, spread);
  for (int64_t i = 0; i < floats; ++i) memory.get()[i] = uniform(random);
  return memory;
}

// One tactic, ready to run one layer.
struct Candidate {
  const ConvTactic* tactic;
  Memory packed, scratch;
  std::shared_ptr<const void> prepared;
  std::vector<double> seconds;
};

struct Operands {
  explicit Operands(const ConvShape& s)
      : input(noise(s.batch * s.in_h * s.in_w * s.in_c, 1, 1)),
        residual(noise(s.batch * s.out_h * s.out_w * s.out_c, 1, 2)),
        output(
            allocate(static_cast<size_t>(s.batch * s.out_h * s.out_w * s.out_c) * sizeof(float))),
        weights(noise(s.weights(), std::sqrt(3.0f / static_cast<float>(s.weights() / s.out_c)), 3)),
        bias(noise(s.out_c, 1, 4)) {}
  Memory input, residual, output, weights, bias;
};

ConvArgs args_of(const ConvProblem& p, const Operands& o, const Candidate& c) {
  return {.input = o.input.get(),
          .packed = c.packed.get(),
          .output = o.output.get(),
          .residual = p.epilogue.residual == Residual::kNone ? nullptr : o.residual.get(),
          .scratch = c.scratch.get(),
          .prepared = c.prepared.get()};
}

Candidate make_candidate(const ConvTactic& tactic, const ConvProblem& p, const Operands& o,
                         int threads) {
  Candidate c = {&tactic,
                 allocate(tactic.packed_bytes(p)),
                 allocate(tactic.scratch_bytes(p, threads)),
                 nullptr,
                 {}};
  tactic.pack(p, o.weights.get(), o.bias.get(), c.packed.get());
  if (tactic.prepare) c.prepared = tactic.prepare(p);
  return c;
}

// The largest difference from the reference on the first rows, relative to the largest value.
double error_of(const ConvProblem& p, const Operands& o, const Candidate& c, ThreadPool& pool) {
  c.tactic->run(p, args_of(p, o, c), pool);
  ConvProblem top = p;
  top.shape.out_h = std::min<int64_t>(p.shape.out_h, 5);
  const int64_t floats = top.shape.out_h * top.shape.out_w * top.shape.out_c;
  Memory want = allocate(static_cast<size_t>(floats) * sizeof(float));
  Candidate reference = make_candidate(*find_conv_tactic("reference"), top, o, pool.threads());
  ConvArgs args = args_of(top, o, reference);
  args.output = want.get();
  reference.tactic->run(top, args, pool);
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < floats; ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(want.get()[i]) -
                                     static_cast<double>(o.output.get()[i])));
    largest = std::max(largest, std::abs(static_cast<double>(want.get()[i])));
  }
  return worst / largest;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Operations a second of one thread now, over about 30 us.
double speed_now(Isa isa) {
  static constexpr double (*kChains[])(int64_t) = FERRY_BY_ISA(fma_chains);
  const Clock::time_point start = Clock::now();
  const double operations = kChains[static_cast<int>(isa)](16'000);
  return operations / seconds_since(start);
}

double measured_peak(Isa isa) {
  double best = 0;
  for (int i = 0; i < 200; ++i) best = std::max(best, speed_now(isa));
  return best;
}

// Whether nobody else slows this core down just now: a virtual machine has neighbours that cannot
// be seen otherwise.
bool undisturbed(Isa isa, double* peak) {
  const double speed = speed_now(isa);
  *peak = std::max(*peak, speed);
  return speed > 0.97 * *peak;
}

double minimum(const Candidate& c) { return *std::min_element(c.seconds.begin(), c.seconds.end()); }
double median(Candidate& c) {
  std::nth_element(c.seconds.begin(),
                   c.seconds.begin() + static_cast<std::ptrdiff_t>(c.seconds.size() / 2),
                   c.seconds.end());
  return c.seconds[c.seconds.size() / 2];
}

struct Sums {
  std::map<std::string, double> minimum;  // by tactic; "chosen" and "best" too
  std::set<std::string> ran;              // tactics that took part in a layer
  double flops = 0;
};

void bench_layer(const Layer& layer, const Options& options, ThreadPool& pool, double* peak,
                 Sums* sums) {
  const ConvProblem& p = layer.problem;
  const Operands operands(p.shape);
  std::vector<Candidate> candidates;
  for (const ConvTactic* tactic : conv_tactics()) {
    const bool named =
        options.tactics.empty()
            ? std::strcmp(tactic->name, "reference") != 0
            : ("," + options.tactics + ",").find(fmt::format(",{},", tactic->name)) !=
                  std::string::npos;
    if (!named || tactic->refuse(p) != nullptr) continue;
    candidates.push_back(make_candidate(*tactic, p, operands, pool.threads()));
    const double error = error_of(p, operands, candidates.back(), pool);
    if (error > 1e-4)
      fmt::print("WRONG: {} on {} is off by {:.1e}\n", tactic->name, layer.name, error);
  }
  // Samples count when the core ran at its peak before and after; when it never does, all count.
  for (Candidate& c : candidates) c.tactic->run(p, args_of(p, operands, c), pool);
  std::vector<std::vector<double>> disturbed(candidates.size());
  for (int round = 0; round < (options.peak > 0 ? 100 : 4) * options.rounds; ++round) {
    bool enough = true;
    for (size_t i = 0; i < candidates.size(); ++i) {
      Candidate& c = candidates[i];
      if (static_cast<int>(c.seconds.size()) >= options.rounds) continue;
      enough = false;
      c.tactic->run(p, args_of(p, operands, c), pool);  // its weights and code into the caches
      const bool before = undisturbed(p.isa, peak);
      const Clock::time_point start = Clock::now();
      c.tactic->run(p, args_of(p, operands, c), pool);
      const double seconds = seconds_since(start);
      const bool good = undisturbed(p.isa, peak) && before;
      (good ? c.seconds : disturbed[i]).push_back(seconds);
    }
    if (enough) break;
  }
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].seconds.empty()) candidates[i].seconds = disturbed[i];
  }

  const double flops = 2.0 * static_cast<double>(p.shape.macs());
  const std::string chosen = choose_conv_tactic(p, pool.threads()).name;
  fmt::print("{:12} x{:<2} {:4}x{:<4} {:4}->{:<4} k{} s{} {:7.1f} MMAC |", layer.name, layer.count,
             p.shape.out_h, p.shape.out_w, p.shape.in_c, p.shape.out_c, p.shape.kernel_h,
             p.shape.stride_h, flops / 2e6);
  double best = 1e9;
  for (Candidate& c : candidates) {
    const double low = minimum(c);
    fmt::print(" {}{} {:.3f} ({:.3f}) {:3.0f} %", c.tactic->name,
               chosen == c.tactic->name ? "*" : "", low * 1e3, median(c) * 1e3,
               100 * flops / low / (*peak * pool.threads()));
    sums->minimum[c.tactic->name] += low * layer.count;
    sums->ran.insert(c.tactic->name);
    if (chosen == c.tactic->name) sums->minimum["chosen*"] += low * layer.count;
    if (!c.tactic->foreign) best = std::min(best, low);
  }
  // What a tactic refuses counts with the best of the others, so that sums compare.
  for (const ConvTactic* tactic : conv_tactics()) {
    const auto ran = [&](const Candidate& c) { return c.tactic == tactic; };
    if (std::none_of(candidates.begin(), candidates.end(), ran))
      sums->minimum[tactic->name] += best * layer.count;
  }
  sums->minimum["best of ours"] += best * layer.count;
  sums->flops += flops * layer.count;
  fmt::print("\n");
  std::fflush(stdout);
}

int run(const Options& options) {
  const Isa isa = best_isa();
  ThreadPool pool(options.threads);
  for (char size : options.nets) {
    const Network network(size, options.h, options.w, isa);
    fmt::print(
        "yolov5{} {}x{}, {}, {} thread(s): minimum ms (median) share of peak; * what ferry chooses "
        "unmeasured\n",
        size, options.h, options.w, isa_name(isa), options.threads);
    double peak = std::max(measured_peak(isa), options.peak * 1e9);
    Sums sums;
    for (const Layer& layer : network.layers()) {
      if (layer.name.find(options.layer) != std::string::npos)
        bench_layer(layer, options, pool, &peak, &sums);
    }
    fmt::print("peak {:.1f} GFLOP/s a thread; floor {:.2f} ms for {:.3f} GMAC\n", peak / 1e9,
               sums.flops / (peak * options.threads) * 1e3, sums.flops / 2e9);
    for (const auto& [name, seconds] : sums.minimum) {
      const bool is_tactic = find_conv_tactic(name.c_str()) != nullptr;
      if (is_tactic && !sums.ran.contains(name)) continue;
      fmt::print("  {:14} {:8.2f} ms {:5.1f} % of peak\n", name, seconds * 1e3,
                 100 * sums.flops / seconds / (peak * options.threads));
    }
  }
  return 0;
}

bool parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (i + 1 >= argc) return false;
    if (name == "--net")
      options->nets = argv[++i];
    else if (name == "--threads")
      options->threads = std::atoi(argv[++i]);
    else if (name == "--rounds")
      options->rounds = std::max(1, std::atoi(argv[++i]));
    else if (name == "--peak")
      options->peak = std::atof(argv[++i]);
    else if (name == "--tactics")
      options->tactics = argv[++i];
    else if (name == "--layer")
      options->layer = argv[++i];
    else if (name == "--imgsz" && i + 2 < argc) {
      options->h = std::atoi(argv[++i]);
      options->w = std::atoi(argv[++i]);
    } else {
      return false;
    }
  }
  return options->nets.find_first_not_of("nsmlx") == std::string::npos && options->h >= 32 &&
         options->w >= 32;
}

}  // namespace
}  // namespace ferry::cpu

int main(int argc, char** argv) {
  ferry::cpu::Options options;
  if (!ferry::cpu::parse(argc, argv, &options)) {
    fmt::print(stderr,
               "usage: conv_bench [--net nsm] [--imgsz H W] [--threads N] [--rounds N] [--peak "
               "GFLOPS] [--tactics "
               "a,b] [--layer TEXT]\n");
    return 2;
  }
  return ferry::cpu::run(options);
}

// ferry's side of the engine comparison (tools/peers): one process that speaks compare.py's line
// protocol.
//
//   net_bench --model yolov5n.onnx --threads 2 [--tune] [--raw] [--profile]
//
// A run is the network and the full decoding of its head into [1, rows, 5 + nc], which is what the
// peers' graphs compute too; --raw leaves the decoding out, as `ferry detect` does (it decodes only
// what passes the objectness threshold).
// --profile prints the slowest steps and ends.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "detect/network.h"

namespace {

using namespace ferry;
using Clock = std::chrono::steady_clock;

// tools/peers/run_peer.py, test_input: element i of the row-major input is a hash of i in [0, 1).
float test_input(uint32_t i) {
  uint32_t h = i * 2654435761u;
  h = (h ^ (h >> 15)) * 2246822519u;
  h ^= h >> 13;
  return static_cast<float>(h >> 8) * 0x1p-24f;
}

double rss_mb(const char* key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::stod(line.substr(std::strlen(key) + 1)) / 1024;
  }
  return 0;
}

class NetBench {
 public:
  NetBench(std::shared_ptr<detect::Network> network, int threads, bool raw)
      : network_(network), lane_(network), pool_(threads), raw_(raw) {}

  Status prepare() {
    FERRY_TRY(context, lane_.context(network_->nominal()));
    context_ = context;
    const ferry_io io = context_->input(0);
    FERRY_TRY(input, graph::Tensor::make(
                         {graph::DType::kF32, {io.dims[0], io.dims[1], io.dims[2], io.dims[3]}}));
    const auto values = input.mut<float>();
    for (size_t i = 0; i < values.size(); ++i) values[i] = test_input(static_cast<uint32_t>(i));
    runtime::write_input(io, input);
    return {};
  }

  Status infer() {
    FERRY_CHECK_OK(context_->run());
    if (raw_ || !network_->raw_heads()) return {};
    const std::vector<vision::HeadMap> maps = network_->head_maps(*context_, 0);
    const vision::RawHead head{maps, network_->info().nc};
    rows_.resize(static_cast<size_t>(head.rows() * head.columns()));
    return vision::decode_rows(head, rows_.data(), &pool_);
  }

  // A NumPy file of the decoded rows (format 1.0: magic, header length, a Python literal, the
  // data).
  Status save(const std::string& path) {
    if (!network_->raw_heads()) return error(Code::kUnsupported, "the model has no raw heads");
    const bool raw = std::exchange(raw_, false);
    FERRY_CHECK_OK(infer());
    raw_ = raw;
    const int64_t columns = 5 + network_->info().nc;
    std::string header =
        fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': (1, {}, {}), }}",
                    static_cast<int64_t>(rows_.size()) / columns, columns);
    header.resize((header.size() + 10 + 64) / 64 * 64 - 10 - 1, ' ');
    header += '\n';
    std::ofstream file(path, std::ios::binary);
    file << "\x93NUMPY\x01" << '\0' << static_cast<char>(header.size() & 255)
         << static_cast<char>(header.size() >> 8) << header;
    file.write(reinterpret_cast<const char*>(rows_.data()),
               static_cast<std::streamsize>(rows_.size() * sizeof(float)));
    return file.good() ? Status() : error(Code::kIo, "cannot write '{}'", path);
  }

  Status profile() {
    std::vector<double> ms, total;
    for (int run = 0; run < 30; ++run) {
      FERRY_CHECK_OK(context_->run_timed(ms));
      if (total.empty()) total = ms;
      for (size_t i = 0; i < ms.size(); ++i) total[i] = std::min(total[i], ms[i]);
    }
    const std::vector<runtime::StepInfo> steps = context_->plan().steps();
    std::vector<size_t> order(steps.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return total[i]; });
    const double sum = std::accumulate(total.begin(), total.end(), 0.0);
    fmt::print("{:.2f} ms in {} steps (minimum of each step over 30 runs)\n", sum, steps.size());
    for (const size_t i : order) {
      const runtime::StepInfo& s = steps[i];
      fmt::print("{:8.3f} ms {:5.1f} %  {:7.1f} GFLOP/s {:6.1f} GB/s  {:28} {:10} {}\n", total[i],
                 100 * total[i] / sum, 2e-6 * static_cast<double>(s.macs) / total[i],
                 1e-6 * static_cast<double>(s.bytes) / total[i], s.kernel, s.op, s.node);
    }
    const ferry_plan_info info = context_->plan().info();
    fmt::print("weights {:.1f} MB, context {:.1f} MB (live at once {:.1f} MB)\n",
               info.weight_bytes / 1e6, info.context_bytes / 1e6, info.peak_bytes / 1e6);
    return {};
  }

 private:
  std::shared_ptr<detect::Network> network_;
  detect::Lane lane_;
  ThreadPool pool_;
  bool raw_;
  runtime::Context* context_ = nullptr;
  std::vector<float> rows_;
};

int fail(const Error& error) {
  fmt::print(stderr, "net_bench: {}\n", error.message);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::string model;
  LoadOptions options{.fit = Fit::kSquare, .fixed_shape = true};
  bool raw = false, profile = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--model" && i + 1 < argc)
      model = argv[++i];
    else if (argument == "--threads" && i + 1 < argc)
      options.threads = std::atoi(argv[++i]);
    else if (argument == "--imgsz" && i + 1 < argc)
      options.input_height = options.input_width = std::atoi(argv[++i]);
    else if (argument == "--disable-pass" && i + 1 < argc)
      options.disable_passes.push_back(argv[++i]);
    else if (argument == "--tune")
      options.tune = true;
    else if (argument == "--raw")
      raw = true;
    else if (argument == "--profile")
      profile = true;
  }
  const auto start = Clock::now();
  auto network = detect::Network::load(model, options);
  if (!network.ok()) return fail(network.error());
  NetBench bench(*network, options.threads, raw);
  if (const Status status = bench.prepare(); !status.ok()) return fail(status.error());
  if (const Status status = bench.infer(); !status.ok()) return fail(status.error());
  const double load_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  if (profile) {
    const Status status = bench.profile();
    return status.ok() ? 0 : fail(status.error());
  }
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "quit") break;
    if (line == "info") {
      fmt::print(
          "{{\"engine\": \"ferry\", \"version\": \"{}\", \"threads\": {}, \"precision\": \"f32\", "
          "\"load_ms\": {:.1f}}}\n",
          version(), options.threads, load_ms);
    } else if (line == "rss") {
      fmt::print("{{\"rss_mb\": {:.1f}, \"peak_rss_mb\": {:.1f}, \"python_mb\": 0}}\n",
                 rss_mb("VmRSS:"), rss_mb("VmHWM:"));
    } else if (line.starts_with("output ")) {
      if (const Status status = bench.save(line.substr(7)); !status.ok())
        return fail(status.error());
      fmt::print("{{\"output\": \"{}\"}}\n", line.substr(7));
    } else if (line.starts_with("run ")) {
      std::string times;
      for (int i = std::atoi(line.c_str() + 4); i > 0; --i) {
        const auto begin = Clock::now();
        if (const Status status = bench.infer(); !status.ok()) return fail(status.error());
        times +=
            fmt::format("{}{:.4f}", times.empty() ? "" : ", ",
                        std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
      }
      fmt::print("{{\"times_ms\": [{}]}}\n", times);
    }
    std::fflush(stdout);
  }
  return 0;
}

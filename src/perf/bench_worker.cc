#include "perf/bench_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <istream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "base/thread_pool.h"
#include "detect/network.h"
#include "ferry/ferry.h"
#include "perf/machine.h"
#include "perf/npy.h"

namespace ferry::perf {

namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// What one stream runs again and again.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual Status infer() = 0;
};

// The network and the full decoding of its head into [batch, rows, 5 + nc], which is what the
// peers' graphs compute too.
class NetworkStream : public Stream {
 public:
  NetworkStream(std::shared_ptr<detect::Network> network, ThreadPool& pool, bool raw)
      : network_(network), lane_(std::move(network)), pool_(pool), raw_(raw) {}

  Status prepare(int64_t batch) {
    detect::InputShape shape = network_->nominal();
    shape.batch = batch;
    FERRY_TRY(context, lane_.context(shape));
    context_ = context;
    batch_ = batch;
    const ferry_io io = context_->input(0);
    FERRY_TRY(input, graph::Tensor::make(
                         {graph::DType::kF32, {io.dims[0], io.dims[1], io.dims[2], io.dims[3]}}));
    const auto values = input.mut<float>();
    for (size_t i = 0; i < values.size(); ++i) values[i] = test_input(static_cast<uint32_t>(i));
    runtime::write_input(io, input);
    return {};
  }

  Status infer() override {
    FERRY_CHECK_OK(context_->run());
    return raw_ || !network_->raw_heads() ? Status() : decode();
  }

  // REQUIRES: infer() was called
  Result<NpyArray> output() {
    if (!network_->raw_heads()) {
      FERRY_TRY(tensor, runtime::read_output(context_->output(0)));
      const auto values = tensor.as<float>();
      return NpyArray{tensor.type().shape, {values.begin(), values.end()}};
    }
    FERRY_CHECK_OK(decode());
    const int64_t columns = 5 + network_->info().nc;
    return NpyArray{{batch_, std::ssize(rows_) / columns / batch_, columns}, rows_};
  }

  const runtime::Plan& plan() const { return context_->plan(); }

 private:
  Status decode() {
    for (int64_t image = 0; image < batch_; ++image) {
      const std::vector<vision::HeadMap> maps = network_->head_maps(*context_, image);
      const vision::RawHead head{maps, network_->info().nc};
      const int64_t size = head.rows() * head.columns();
      rows_.resize(static_cast<size_t>(size * batch_));
      FERRY_CHECK_OK(vision::decode_rows(head, rows_.data() + image * size, &pool_));
    }
    return {};
  }

  std::shared_ptr<detect::Network> network_;
  detect::Lane lane_;
  ThreadPool& pool_;
  bool raw_;
  int64_t batch_ = 1;
  runtime::Context* context_ = nullptr;
  std::vector<float> rows_;
};

// Letterbox, network, decoding of what passes the threshold, NMS.
class DetectorStream : public Stream {
 public:
  DetectorStream(std::unique_ptr<Detector> detector, const Image& image, int64_t batch)
      : detector_(std::move(detector)), images_(static_cast<size_t>(batch), image) {}

  Status infer() override {
    FERRY_TRY(found, detector_->detect(images_, {}, std::ssize(images_)));
    return {};
  }

  const Detector& detector() const { return *detector_; }

 private:
  std::unique_ptr<Detector> detector_;
  std::vector<Image> images_;
};

class Worker {
 public:
  static Result<std::unique_ptr<Worker>> load(const WorkerOptions& options) {
    std::unique_ptr<Worker> worker(new Worker(options.threads));
    const auto start = Clock::now();
    LoadOptions load{.threads = options.threads,
                     .input_height = options.height,
                     .input_width = options.width,
                     .fit = Fit::kSquare,
                     .fixed_shape = true,
                     .cfg = options.cfg,
                     .tune = options.tune,
                     .disable_passes = options.disable_passes};
    worker->info_ = {{"engine", "ferry"},
                     {"version", version()},
                     {"threads", options.threads},
                     {"precision", "f32"}};
    FERRY_CHECK_OK(options.source.empty() ? worker->load_network(options, load)
                                          : worker->load_detector(options, load));
    worker->info_["load_ms"] = ms_since(start);
    return worker;
  }

  Result<json> answer(const std::string& request) {
    if (request == "info") return info_;
    if (request == "rss") {
      const Resident memory = resident_memory();
      return json{{"rss_mb", static_cast<double>(memory.now) / (1 << 20)},
                  {"peak_rss_mb", static_cast<double>(memory.peak) / (1 << 20)},
                  {"python_mb", 0}};
    }
    if (request.starts_with("output ")) {
      auto* first = dynamic_cast<NetworkStream*>(streams_[0].get());
      if (first == nullptr) return error(Code::kUnsupported, "a picture's boxes are no array");
      FERRY_CHECK_OK(first->infer());
      FERRY_TRY(array, first->output());
      FERRY_CHECK_OK(write_npy(request.substr(7), array));
      return json{{"output", request.substr(7)}};
    }
    if (request.starts_with("run ")) return run(std::atoi(request.c_str() + 4));
    return error(Code::kInvalid, "unknown request: {}", request);
  }

 private:
  explicit Worker(int threads) : pool_(threads) {}

  Status load_network(const WorkerOptions& options, const LoadOptions& load) {
    FERRY_TRY(network, detect::Network::load(options.weights, load));
    for (int i = 0; i < options.streams; ++i) {
      auto stream = std::make_unique<NetworkStream>(network, pool_, options.raw);
      FERRY_CHECK_OK(stream->prepare(options.batch));
      FERRY_CHECK_OK(stream->infer());
      if (i == 0) {
        const ferry_plan_info plan = stream->plan().info();
        int64_t macs = 0;
        for (const runtime::StepInfo& step : stream->plan().steps()) macs += step.macs;
        info_["macs"] = macs;
        info_["weight_bytes"] = plan.weight_bytes;
        info_["arena_bytes"] = plan.context_bytes * options.streams;
      }
      streams_.push_back(std::move(stream));
    }
    info_["device"] = network->device_text();
    info_["model"] = network->description();
    return {};
  }

  Status load_detector(const WorkerOptions& options, const LoadOptions& load) {
    FERRY_TRY(picture, read_image(options.source));
    picture_ = std::move(picture);
    // A detector runs fixed shapes one by one, so a batch keeps its shape open.
    LoadOptions open = load;
    open.fixed_shape = options.batch == 1;
    FERRY_TRY(detector, Detector::load(options.weights, open));
    info_["device"] = detector->device();
    info_["model"] = detector->description();
    std::vector<std::unique_ptr<Detector>> detectors;
    for (int i = 1; i < options.streams; ++i) {
      FERRY_TRY(shared, detector->share());
      detectors.push_back(std::move(shared));
    }
    detectors.push_back(std::move(detector));
    for (auto& one : detectors) {
      auto stream = std::make_unique<DetectorStream>(std::move(one), picture_.image, options.batch);
      FERRY_CHECK_OK(stream->infer());
      const Memory memory = stream->detector().memory();
      info_["weight_bytes"] = memory.weights;
      info_["arena_bytes"] = memory.activations * options.streams;
      streams_.push_back(std::move(stream));
    }
    return {};
  }

  // `count` runs of every stream, all streams at the same time.
  Result<json> run(int count) {
    std::vector<std::vector<double>> times(streams_.size());
    std::vector<Status> ends(streams_.size());
    const auto work = [&](size_t i) {
      times[i].reserve(static_cast<size_t>(std::max(count, 0)));
      for (int k = 0; k < count && ends[i].ok(); ++k) {
        const auto begin = Clock::now();
        ends[i] = streams_[i]->infer();
        times[i].push_back(ms_since(begin));
      }
    };
    double wall_ms = 0;
    if (streams_.size() == 1) {
      const auto start = Clock::now();
      work(0);
      wall_ms = ms_since(start);
    } else {
      std::atomic<size_t> ready{0};
      Clock::time_point start;
      {
        std::vector<std::jthread> threads;
        for (size_t i = 0; i < streams_.size(); ++i) {
          threads.emplace_back([&, i] {
            if (ready.fetch_add(1) + 1 == streams_.size()) start = Clock::now();
            while (ready.load() < streams_.size()) std::this_thread::yield();
            work(i);
          });
        }
      }
      wall_ms = ms_since(start);
    }
    json all = json::array();
    for (size_t i = 0; i < streams_.size(); ++i) {
      FERRY_CHECK_OK(ends[i]);
      for (const double ms : times[i]) all.push_back(ms);
    }
    return json{{"times_ms", std::move(all)}, {"wall_ms", wall_ms}};
  }

  ThreadPool pool_;  // for the decoding of heads
  ImageFile picture_;
  std::vector<std::unique_ptr<Stream>> streams_;
  json info_;
};

void say(std::FILE* answers, const json& object) {
  // What a file or a path put into a message need not be UTF-8.
  const std::string line = object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  std::fwrite(line.data(), 1, line.size(), answers);
  std::fflush(answers);
}

}  // namespace

Status serve_bench(const WorkerOptions& options, std::istream& requests, std::FILE* answers) {
  const auto worker = Worker::load(options);
  for (std::string line; std::getline(requests, line) && line != "quit";) {
    if (line.empty()) continue;
    const Result<json> answer = worker.ok() ? (*worker)->answer(line) : worker.error();
    say(answers, answer.ok() ? *answer : json{{"error", answer.error().message}});
    if (!answer.ok()) return answer.error();
  }
  return worker.ok() ? Status() : worker.error();
}

}  // namespace ferry::perf

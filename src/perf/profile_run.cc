#include "perf/profile_run.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "detect/engine.h"
#include "detect/network.h"
#include "ferry/ferry.h"
#include "perf/profile_source.h"
#include "vision/boxes.h"
#include "vision/draw.h"
#include "vision/head_decode.h"
#include "vision/letterbox.h"
#include "vision/nms.h"

namespace ferry::perf {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMostRuns = 10000;  // of each kind
constexpr int64_t kBursts = 20;       // bursts of multiply-adds, spread over the runs

int64_t nanoseconds(Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

double milliseconds(int64_t ns) { return static_cast<double>(ns) / 1e6; }

// What one reading of the clock costs, in ms: the best of a few hundred pairs.
double clock_cost_ms() {
  int64_t best = INT64_MAX;
  for (int i = 0; i < 500; ++i) {
    const auto begin = Clock::now();
    for (int k = 0; k < 8; ++k) static_cast<void>(Clock::now());
    best = std::min(best, nanoseconds(Clock::now() - begin));
  }
  return milliseconds(best) / 9;
}

// "0,1,4": the processors this process may use.
std::string allowed_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return "";
  std::string out;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) out += fmt::format("{}{}", out.empty() ? "" : ",", i);
  }
  return out;
}

// One batch through all stages.
struct Record {
  bool timed = false;
  int64_t start_ns = 0, end_ns = 0;
  std::array<int64_t, kStages> stage_start_ns = {}, stage_ns = {};
  CpuClock cpu_begin, cpu_end;
  int64_t resident = 0;
  int64_t boxes = 0, detections = 0;
};

class Profiler {
 public:
  explicit Profiler(const ProfileOptions& options)
      : options_(options),
        nms_{.conf_threshold = options.conf_threshold,
             .iou_threshold = options.iou_threshold,
             .max_detections = options.max_detections} {}

  Result<Profile> run() {
    FERRY_CHECK_OK(vision::check_options(nms_));
    profile_.version = version();
    profile_.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
    profile_.machine = this_machine();
    FERRY_CHECK_OK(load());
    measure_peak_again();
    FERRY_CHECK_OK(warm_up());
    FERRY_CHECK_OK(measure());
    measure_peak_again();
    say("");
    summarise_stages();
    summarise_network();
    summarise_machine();
    for (const std::string& warning : source_->warnings()) profile_.warnings.push_back(warning);
    const detect::Network& network = *network_;
    profile_.advice = advise(evidence_of(profile_, allowed_processors(), network.raw_heads()));
    make_trace();
    return std::move(profile_);
  }

 private:
  void say(const std::string& what) const {
    if (options_.progress) options_.progress(what);
  }
  bool cancelled() const { return options_.cancelled && options_.cancelled(); }

  Status load() {
    say("load");
    const bool any_source = !options_.source.empty();
    const bool rect = any_source && options_.rect;
    FERRY_TRY(network,
              detect::Network::load(
                  options_.weights,
                  {.device = options_.device,
                   .threads = options_.threads,
                   .input_height = options_.height,
                   .input_width = options_.width,
                   .fit = rect ? Fit::kRect : Fit::kSquare,
                   .fixed_shape = !rect && options_.batch == 1,  // gives unpacked weights back
                   .cfg = options_.cfg,
                   .tune = options_.tune,
                   .disable_passes = options_.disable_passes}));
    network_ = std::move(network);
    profile_.model = std::filesystem::path(options_.weights).filename().string();
    profile_.description = network_->description();
    profile_.device = network_->device_text();
    profile_.threads = options_.threads > 0 ? options_.threads : profile_.machine.cores;
    profile_.tuned = options_.tune;
    profile_.warnings = network_->source().warnings;
    detect::InputShape shape = network_->nominal();
    if (any_source) {
      FERRY_TRY(source, ProfileSource::open(options_.source));
      source_.emplace(std::move(source));
    } else {
      FERRY_TRY(source, ProfileSource::made_up(2 * shape.width, 2 * shape.height));
      source_.emplace(std::move(source));
    }
    if (network_->any_size()) {
      shape.batch = options_.batch;
    } else if (shape.batch != options_.batch) {
      profile_.warnings.push_back(
          fmt::format("the model is made for batches of {}, so that is "
                      "what runs, not {}",
                      shape.batch, options_.batch));
    }
    pictures_.resize(static_cast<size_t>(shape.batch));
    FERRY_CHECK_OK(source_->next(pictures_[0]));
    profile_.source = source_->text();
    profile_.made_up = source_->is_made_up();
    profile_.source_width = pictures_[0].width();
    profile_.source_height = pictures_[0].height();
    if (rect && network_->any_size()) {
      FERRY_TRY(plan, vision::plan_letterbox(pictures_[0].width(), pictures_[0].height(),
                                             detect::letterbox_options(*network_, Fit::kRect)));
      shape.height = plan.input_height;
      shape.width = plan.input_width;
    }
    shape_ = shape;
    profile_.batch = shape.batch;
    profile_.height = shape.height;
    profile_.width = shape.width;
    FERRY_TRY(plan, network_->plan(shape));
    FERRY_TRY(context, runtime::Context::create(std::move(plan)));
    context_ = std::move(context);
    steps_ = context_->plan().steps();
    return {};
  }

  // Half before and half after the runs: the better half counts, for all figures.
  void measure_peak_again() {
    if (options_.peak_seconds <= 0) return;
    say("the machine's peak");
    const int threads = std::min(profile_.threads, profile_.machine.cores);
    const Peak now = measure_peak(threads, options_.peak_seconds / 2);
    Peak& best = profile_.peak;
    best.threads = now.threads;
    best.isa = now.isa;
    for (double Peak::*figure :
         {&Peak::f32_gflops, &Peak::bf16_gflops, &Peak::int8_gops, &Peak::memory_gb_s,
          &Peak::amx_bf16_gflops, &Peak::amx_int8_gops}) {
      best.*figure = std::max(best.*figure, now.*figure);
    }
  }

  Status warm_up() {
    say("warm up");
    const auto begin = Clock::now();
    const int64_t runs = std::max<int64_t>(options_.warmup, 1);
    for (int64_t i = 0; i < runs && !cancelled(); ++i) {
      Record record;
      record.timed = i % 2 == 1;
      FERRY_CHECK_OK(one_batch(record));
      if (i == 0) first_end_ = Clock::now();
    }
    profile_.warmup = runs;
    // The first builds tables; one of the others says how many fit into the duration.
    const double total_s = 1e-9 * static_cast<double>(nanoseconds(Clock::now() - begin));
    const double rest_s = 1e-9 * static_cast<double>(nanoseconds(Clock::now() - first_end_));
    run_s_ = runs > 1 ? rest_s / static_cast<double>(runs - 1) : total_s;
    return {};
  }

  Status measure() {
    const int64_t most =
        options_.runs > 0
            ? std::min(options_.runs, kMostRuns)
            : std::clamp(static_cast<int64_t>(options_.duration_s / std::max(run_s_, 1e-6)),
                         kLeastRuns, kMostRuns);
    // Everything is there before the first run, so that what is written down does not look like
    // memory that grows.
    records_.resize(static_cast<size_t>(2 * most));
    times_.assign(steps_.size(), std::vector<double>(static_cast<size_t>(most)));
    bursts_.reserve(static_cast<size_t>(kBursts) + 1);
    begin_ = Clock::now();
    const int64_t every = std::max<int64_t>(1, 2 * most / kBursts);
    int64_t done = 0, timed = 0;
    for (; done < 2 * most; ++done) {
      if (cancelled()) return error(Code::kCancelled, "interrupted");
      if (done % every == 0) {
        say(fmt::format("run {}", done));
        if (options_.peak_seconds > 0) {
          bursts_.push_back(f32_burst_gflops(std::min(profile_.threads, profile_.machine.cores)));
        }
      }
      const double elapsed_s = 1e-9 * static_cast<double>(nanoseconds(Clock::now() - begin_));
      if (options_.runs == 0 && done % 2 == 0 && done >= 2 * kLeastRuns &&
          elapsed_s >= options_.duration_s) {
        break;
      }
      Record& record = records_[static_cast<size_t>(done)];
      record.timed = done % 4 == 1 || done % 4 == 2;
      record.cpu_begin = read_cpu_clock();
      FERRY_CHECK_OK(one_batch(record));
      record.cpu_end = read_cpu_clock();
      record.resident = resident_memory().now;
      if (!record.timed) continue;
      for (size_t i = 0; i < steps_.size(); ++i)
        times_[i][static_cast<size_t>(timed)] = step_ms_[i];
      ++timed;
    }
    records_.resize(static_cast<size_t>(done));
    for (std::vector<double>& times : times_) times.resize(static_cast<size_t>(timed));
    return {};
  }

  template <class Work>
  Status stage(Stage which, Record& record, const Work& work) {
    const auto i = static_cast<size_t>(which);
    const auto begin = Clock::now();
    Status status = work();
    record.stage_start_ns[i] = nanoseconds(begin - begin_);
    record.stage_ns[i] = nanoseconds(Clock::now() - begin);
    return status;
  }

  // As detect::Engine does it, stage by stage.
  Status one_batch(Record& record) {
    record.start_ns = nanoseconds(Clock::now() - begin_);
    FERRY_CHECK_OK(stage(Stage::kDecode, record, [&] { return decode(); }));
    // A made-up picture is drawn anew outside of all stages.
    if (source_->is_made_up()) {
      record.start_ns = nanoseconds(Clock::now() - begin_);
      record.stage_start_ns[0] = record.start_ns;
      record.stage_ns[0] = 0;
    }
    FERRY_CHECK_OK(stage(Stage::kLetterbox, record, [&] { return letterbox(); }));
    FERRY_CHECK_OK(stage(Stage::kNetwork, record, [&] {
      return record.timed ? context_->run_timed(step_ms_) : context_->run();
    }));
    FERRY_CHECK_OK(stage(Stage::kHead, record, [&] { return decode_heads(); }));
    FERRY_CHECK_OK(stage(Stage::kNms, record, [&] { return suppress(); }));
    FERRY_CHECK_OK(stage(Stage::kDraw, record, [&] { return draw(); }));
    record.end_ns = nanoseconds(Clock::now() - begin_);
    for (const vision::Candidates& candidates : candidates_) {
      record.boxes += static_cast<int64_t>(candidates.items.size());
    }
    for (const auto& found : found_) record.detections += static_cast<int64_t>(found.size());
    return {};
  }

  Status decode() {
    for (vision::Picture& picture : pictures_) FERRY_CHECK_OK(source_->next(picture));
    return {};
  }

  Status letterbox() {
    const ferry_io io = context_->input(0);
    const auto layout =
        io.layout == FERRY_NHWC ? vision::TensorLayout::kNhwc : vision::TensorLayout::kNchw;
    plans_.clear();
    for (size_t i = 0; i < pictures_.size(); ++i) {
      FERRY_TRY(plan, vision::plan_letterbox(pictures_[i].width(), pictures_[i].height(),
                                             {.width = shape_.width,
                                              .height = shape_.height,
                                              .mode = vision::LetterboxMode::kSquare}));
      if (!letterbox_ || letterbox_->plan() != plan) letterbox_.emplace(plan);
      float* to =
          static_cast<float*>(io.data) + static_cast<int64_t>(i) * 3 * shape_.height * shape_.width;
      FERRY_CHECK_OK(letterbox_->to_float(pictures_[i], layout, to));
      plans_.push_back(plan);
    }
    return {};
  }

  Status decode_heads() {
    candidates_.clear();
    for (int64_t image = 0; image < shape_.batch; ++image) {
      if (network_->raw_heads()) {
        const std::vector<vision::HeadMap> maps = network_->head_maps(*context_, image);
        FERRY_TRY(found, vision::find_candidates(vision::RawHead{maps, network_->info().nc}, nms_));
        candidates_.push_back(std::move(found));
        continue;
      }
      const ferry_io io = context_->output(0);  // [batch, rows, 5 + nc]
      const int64_t rows = io.dims[1], columns = io.dims[2];
      FERRY_TRY(found, vision::find_candidates(
                           vision::DecodedRows{
                               .data = static_cast<const float*>(io.data) + image * rows * columns,
                               .rows = rows,
                               .columns = columns,
                               .row_stride = columns},
                           nms_));
      candidates_.push_back(std::move(found));
    }
    return {};
  }

  Status suppress() {
    found_.clear();
    for (const vision::Candidates& candidates : candidates_) {
      found_.push_back(vision::suppress(candidates, nms_));
    }
    return {};
  }

  Status draw() {
    const std::vector<std::string>& names = network_->info().names;
    for (size_t i = 0; i < pictures_.size(); ++i) {
      vision::scale_boxes(vision::box_scale(plans_[i]), found_[i]);
      boxes_.clear();
      for (const vision::Detection& d : found_[i]) {
        const auto id = static_cast<size_t>(d.class_id);
        boxes_.push_back(
            {.x1 = d.box.x1,
             .y1 = d.box.y1,
             .x2 = d.box.x2,
             .y2 = d.box.y2,
             .color = vision::class_color(d.class_id),
             .label = fmt::format("{} {:.2f}", id < names.size() ? names[id] : "?", d.confidence)});
      }
      FERRY_CHECK_OK(annotator_.draw(pictures_[i], boxes_));
    }
    return {};
  }

  // --- from records to the profile ---

  void summarise_stages() {
    const auto batch = static_cast<double>(profile_.batch);
    std::vector<double> whole;
    double total = 0, boxes = 0, detections = 0;
    for (const Record& record : records_) {
      boxes += static_cast<double>(record.boxes);
      detections += static_cast<double>(record.detections);
      if (record.timed) continue;  // its network reads the clock
      int64_t ns = 0;
      for (const int64_t part : record.stage_ns) ns += part;
      whole.push_back(milliseconds(ns) / batch);
    }
    const double pictures = batch * static_cast<double>(records_.size());
    profile_.boxes = boxes / pictures;
    profile_.detections = detections / pictures;
    profile_.picture_ms = stats_of(whole);
    for (size_t s = 0; s < kStages; ++s) {
      std::vector<double> ms;
      for (const Record& record : records_) {
        if (record.timed && s == static_cast<size_t>(Stage::kNetwork)) continue;
        ms.push_back(milliseconds(record.stage_ns[s]) / batch);
      }
      profile_.stages[s].ms = stats_of(ms);
      profile_.stages[s].measured = !(s == 0 && profile_.made_up);
      total += profile_.stages[s].ms.median;
    }
    for (StageProfile& stage : profile_.stages) {
      if (total > 0) stage.share = stage.ms.median / total;
    }
  }

  void summarise_network() {
    profile_.steps = step_profiles(steps_, times_, profile_.peak);
    describe_steps(profile_.steps, context_->plan().graph());
    for (const StepProfile& step : profile_.steps) {
      profile_.steps_ms += step.median_ms;
      profile_.macs += step.info.macs;
    }
    std::vector<double> plain, timed;
    for (const Record& record : records_) {
      (record.timed ? timed : plain)
          .push_back(milliseconds(record.stage_ns[static_cast<size_t>(Stage::kNetwork)]));
    }
    profile_.plain_ms = stats_of(plain);
    profile_.calm = calm_half(times_, plain);
    profile_.timed_ms = stats_of(timed);
    profile_.clock_ms = 2 * static_cast<double>(steps_.size()) * clock_cost_ms();
    if (profile_.plain_ms.median > 0) {
      profile_.difference = profile_.steps_ms / profile_.plain_ms.median - 1;
    }
    const ferry_plan_info info = context_->plan().info();
    profile_.weight_bytes = info.weight_bytes;
    profile_.context_bytes = info.context_bytes;
  }

  void summarise_machine() {
    std::vector<NetworkRun> runs;
    std::vector<int64_t> resident;
    for (const Record& record : records_) {
      resident.push_back(record.resident);
      if (record.timed) continue;
      runs.push_back({milliseconds(record.stage_ns[static_cast<size_t>(Stage::kNetwork)]),
                      record.cpu_begin, record.cpu_end});
    }
    profile_.jitter = jitter_of(runs, bursts_);
    profile_.memory = trend_of(resident);
    profile_.peak_resident = std::ranges::max(resident);
  }

  void make_trace() {
    Trace& trace = profile_.trace;
    trace.process = "ferry profile";
    trace.threads = {{1, "pictures"}};
    trace.about = {
        {"ferry", profile_.version},
        {"model", profile_.model},
        {"device", profile_.device},
        {"input", fmt::format("{}x{}, batch {}", profile_.width, profile_.height, profile_.batch)},
        {"nodes", "laid end to end from the start of the network"}};
    int64_t timed = 0;
    for (size_t i = 0; i < records_.size() && timed < options_.trace_runs; ++i) {
      const Record& record = records_[i];
      trace.spans.push_back({.name = fmt::format("run {}{}", i, record.timed ? "" : ", plain"),
                             .category = "run",
                             .start_ns = record.start_ns,
                             .duration_ns = record.end_ns - record.start_ns});
      for (size_t s = 0; s < kStages; ++s) {
        if (!profile_.stages[s].measured) continue;
        trace.spans.push_back({.name = std::string(kStageNames[s]),
                               .category = "stage",
                               .start_ns = record.stage_start_ns[s],
                               .duration_ns = record.stage_ns[s]});
      }
      trace.counters.push_back(
          {"resident MB", record.end_ns, static_cast<double>(record.resident) / 1e6});
      if (!record.timed) continue;
      trace_steps(record, static_cast<size_t>(timed++));
    }
  }

  void trace_steps(const Record& record, size_t timed) {
    const auto network = static_cast<size_t>(Stage::kNetwork);
    int64_t start = record.stage_start_ns[network];
    const int64_t end = start + record.stage_ns[network];
    for (size_t i = 0; i < steps_.size(); ++i) {
      const StepProfile& step = profile_.steps[i];
      const double ms = times_[i][timed];
      const int64_t ns = std::min(static_cast<int64_t>(ms * 1e6), end - start);
      profile_.trace.spans.push_back(
          {.name = step.info.node.empty() ? step.info.op : step.info.node,
           .category = "node",
           .start_ns = start,
           .duration_ns = ns,
           .texts = {{"op", step.info.op},
                     {"kernel", step.info.kernel},
                     {"shapes", step.shapes},
                     {"type", std::string(graph::dtype_name(step.info.dtype))}},
           .numbers = {{"MB", static_cast<double>(step.info.bytes) / 1e6},
                       {"GFLOP/s", ms > 0 ? 2e-6 * static_cast<double>(step.info.macs) / ms : 0}}});
      start += ns;
    }
  }

  const ProfileOptions& options_;
  const vision::NmsOptions nms_;
  Profile profile_;

  std::shared_ptr<detect::Network> network_;
  std::optional<ProfileSource> source_;
  detect::InputShape shape_;
  std::unique_ptr<runtime::Context> context_;
  std::vector<runtime::StepInfo> steps_;

  // Of the batch that is on its way.
  std::vector<vision::Picture> pictures_;
  std::vector<vision::LetterboxPlan> plans_;
  std::optional<vision::Letterbox> letterbox_;
  std::vector<double> step_ms_;
  std::vector<vision::Candidates> candidates_;
  std::vector<std::vector<vision::Detection>> found_;
  std::vector<vision::LabeledBox> boxes_;
  vision::Annotator annotator_;

  Clock::time_point begin_ = Clock::now(), first_end_ = begin_;
  double run_s_ = 0;
  std::vector<Record> records_;
  std::vector<std::vector<double>> times_;  // of each step, in each timed run
  std::vector<double> bursts_;
};

}  // namespace

Result<Profile> measure_profile(const ProfileOptions& options) {
  if (options.batch < 1) return error(Code::kInvalid, "a batch of {} pictures", options.batch);
  return Profiler(options).run();
}

}  // namespace ferry::perf

// ferry bench: how fast a model runs on this machine, next to what the machine could do at most
// and, with --peers, next to other engines. docs/bench.md says how it is kept fair.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/print.h"
#include "export/export_onnx.h"
#include "ferry/ferry.h"
#include "import/import.h"
#include "perf/bench.h"
#include "perf/bench_engines.h"
#include "perf/bench_report.h"
#include "perf/bench_worker.h"

namespace ferry::cli {

namespace fs = std::filesystem;

namespace {

using import::ImportOptions;

struct Arguments {
  std::string weights = "yolov5n.pt", cfg, source, precision = "fp32", python;
  std::string json, csv, markdown, record, commit;
  std::vector<int64_t> imgsz, batches = {1};
  std::vector<int> threads;
  std::vector<std::string> peers, disable_passes;
  int streams = 1, rounds = 10;
  int64_t iterations = 0;
  double duration = 10, warmup = 0.5, quiet = 0.1, wait = -1, patience = 1.5, timeout = 300;
  double peak_seconds = 1.5;
  bool end_to_end = false, tune = false, raw = false, worker = false;
};

// A folder that is gone when this is.
class TemporaryFolder {
 public:
  static Result<std::unique_ptr<TemporaryFolder>> create() {
    std::error_code failed;
    std::string path = (fs::temp_directory_path(failed) / "ferry-bench-XXXXXX").string();
    if (failed || mkdtemp(path.data()) == nullptr) {
      return error(Code::kIo, "cannot make a temporary folder {}", path);
    }
    return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(std::move(path)));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// What is being done, on a terminal only.
void show_progress(const std::string& what) {
  static const bool terminal = isatty(STDERR_FILENO) == 1;
  if (terminal) print(stderr, "\r\033[K{}", what);
}

// Messages of engines have lines, the last ones that the engine wrote.
std::string printable_lines(std::string_view text) {
  std::string safe;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    safe += (begin == 0 ? "" : "\n") + printable(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return safe;
}

int64_t height_of(const Arguments& a) { return a.imgsz.empty() ? 0 : a.imgsz.front(); }
int64_t width_of(const Arguments& a) { return a.imgsz.empty() ? 0 : a.imgsz.back(); }

perf::WorkerOptions worker_options(const Arguments& a, int64_t batch, int threads) {
  return {.weights = a.weights,
          .cfg = a.cfg,
          .height = height_of(a),
          .width = width_of(a),
          .batch = batch,
          .threads = threads,
          .streams = a.streams,
          .tune = a.tune,
          .raw = a.raw,
          .disable_passes = a.disable_passes,
          .source = a.end_to_end ? a.source : ""};
}

// One run of the command.
class Bench {
 public:
  Bench(const Arguments& arguments, std::unique_ptr<TemporaryFolder> folder)
      : a_(arguments), folder_(std::move(folder)) {}

  Result<int> run() {
    run_.version = version();
    run_.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
    run_.commit = a_.commit;
    run_.machine = perf::this_machine();
    FERRY_TRY(model, import::import_model(a_.weights, import_options(1)));
    for (const std::string& warning : model.source.warnings) {
      print(stderr, "ferry bench: {}: {}\n", a_.weights, printable(warning));
    }
    const graph::Shape input = model.graph.value(model.graph.inputs[0]).type.shape;
    if (input.size() == 4) height_ = input[2], width_ = input[3];
    description_ =
        fmt::format("{} ({}), {} parameters",
                    printable(model.source.release.empty() ? "YOLOv5" : model.source.release),
                    printable(model.source.format), model.source.params_fused);
    if (needs_python()) {
      FERRY_TRY(files, perf::find_peers(a_.python));
      files_ = files;
    }
    measure_peaks();
    say(perf::machine_text(run_.machine, run_.peaks));
    say(fmt::format("model    {}: {}, {}x{}\n", a_.weights, description_, width_, height_));
    for (const int64_t batch : a_.batches) {
      FERRY_CHECK_OK(convert(batch));
      for (const int threads : a_.threads) FERRY_CHECK_OK(measure(batch, threads));
    }
    if (run_.rows.size() > 1 || !a_.peers.empty()) {
      say("\n" + perf::table_text(run_.rows));
    }
    FERRY_CHECK_OK(save(a_.json, &perf::json_text));
    FERRY_CHECK_OK(save(a_.csv, &perf::csv));
    FERRY_CHECK_OK(save(a_.markdown, &perf::markdown));
    return refused_ ? kFailed : kDone;
  }

 private:
  // For people; where a file goes to standard output, that is all that goes there.
  void say(const std::string& text) const {
    const bool taken = a_.json == "-" || a_.csv == "-" || a_.markdown == "-";
    show_progress("");
    print(taken ? stderr : stdout, "{}", text);
    std::fflush(stdout);
  }

  Status save(const std::string& path, std::string (*text)(const perf::BenchRun&)) const {
    if (path.empty()) return {};
    if (path != "-") return write_file(path, std::string_view(text(run_)));
    print(stdout, "{}", text(run_));
    return {};
  }

  bool needs_python() const {
    return std::ranges::any_of(a_.peers, [](const std::string& peer) { return peer != "ferry"; });
  }

  ImportOptions import_options(int64_t batch) const {
    return {.height = height_of(a_), .width = width_of(a_), .batch = batch, .cfg = a_.cfg};
  }

  void measure_peaks() {
    if (a_.peak_seconds <= 0) return;
    for (const int threads : a_.threads) {
      const int used = std::min(threads * a_.streams, run_.machine.cores);
      if (std::ranges::find(run_.peaks, used, &perf::Peak::threads) != run_.peaks.end()) continue;
      show_progress(fmt::format("the machine's peak, {} threads", used));
      run_.peaks.push_back(perf::measure_peak(used, a_.peak_seconds));
    }
  }

  // With peers every engine, ours too, reads the same ONNX file; without, ours reads the weights.
  Status convert(int64_t batch) {
    job_ = {.model = {}, .single = {}, .batch = batch, .height = height_, .width = width_};
    unusable_.clear();
    if (a_.peers.empty()) return {};
    FERRY_TRY(model, onnx_of(batch));
    job_.model = model;
    if (batch > 1 && needs_python()) {
      FERRY_TRY(single, onnx_of(1));
      job_.single = single;
    }
    for (const std::string& peer : a_.peers) {
      if (peer == "ferry") continue;
      show_progress(fmt::format("{}: convert", peer));
      perf::PeerCommand command = perf::peer_conversion(files_, peer, job_);
      command.cancelled = interrupted;
      const Status converted = perf::run_to_end(std::move(command), a_.timeout);
      if (interrupted()) return error(Code::kCancelled, "interrupted");
      if (!converted.ok()) unusable_[peer] = converted.error().message;
    }
    return {};
  }

  // An ONNX file of this batch in the temporary folder: the user's own where it is one.
  Result<std::string> onnx_of(int64_t batch) {
    const std::string path = fmt::format("{}/model_b{}.onnx", folder_->path(), batch);
    if (fs::exists(path)) return path;
    show_progress(fmt::format("export for batch {}", batch));
    FERRY_TRY(model, import::import_model(a_.weights, import_options(batch)));
    const graph::Shape input = model.graph.value(model.graph.inputs[0]).type.shape;
    if (!input.empty() && input[0] != batch) {
      return error(Code::kUnsupported, "{} is made for batch {}, not for {}", a_.weights, input[0],
                   batch);
    }
    if (model.source.format.starts_with("ONNX") && !model.any_size) {
      std::error_code failed;
      fs::create_symlink(fs::absolute(a_.weights), path, failed);
      if (!failed) return path;
    }
    FERRY_TRY(report,
              exporter::export_onnx(std::move(model), {.producer_version = version()}, path));
    return path;
  }

  std::vector<perf::PeerCommand> engines(int64_t batch, int threads) const {
    perf::WorkerOptions ours = worker_options(a_, batch, threads);
    if (!a_.peers.empty()) {
      ours.weights = job_.model;
      ours.cfg.clear();
    }
    std::vector<perf::PeerCommand> commands = {perf::worker_command("ferry", ours)};
    for (const std::string& peer : a_.peers) {
      if (unusable_.contains(peer)) continue;
      perf::EngineJob job = job_;
      job.threads = threads;
      commands.push_back(peer == "ferry" ? perf::worker_command("ferry again", ours)
                                         : perf::peer_command(files_, peer, job));
    }
    return commands;
  }

  Status measure(int64_t batch, int threads) {
    const int used = std::min(threads * a_.streams, run_.machine.cores);
    const auto peak = std::ranges::find(run_.peaks, used, &perf::Peak::threads);
    const std::string label = fmt::format("batch {}, {} threads: ", batch, threads);
    perf::RowOptions options{
        .threads = threads,
        .streams = a_.streams,
        .batch = batch,
        .duration_s = a_.duration,
        .iterations = a_.iterations,
        .warmup_s = a_.warmup,
        .rounds = a_.rounds,
        .quiet_cores = a_.quiet,
        .wait_s = a_.wait,
        .patience = a_.patience,
        .timeout_s = a_.timeout,
        .check_outputs = !a_.peers.empty(),
        .peak = peak == run_.peaks.end() ? perf::Peak{} : *peak,
        .folder = folder_->path(),
        .cancelled = interrupted,
        .progress = [&](const std::string& what) { show_progress(label + what); }};
    FERRY_TRY(result, perf::measure_row(engines(batch, threads), options));
    for (const auto& [peer, why] : unusable_) {
      perf::EngineResult& engine = result.engines.emplace_back();
      engine.name = peer;
      engine.refused = why;
    }
    if (threads * a_.streams > run_.machine.cores) {
      result.warnings.push_back(
          fmt::format("{} threads share {} cores.", threads * a_.streams, run_.machine.cores));
    }
    for (const perf::EngineResult& engine : result.engines) {
      if (engine.refused.empty()) continue;
      refused_ = true;
      show_progress("");
      print(stderr, "ferry bench: {}\n", printable_lines(engine.refused));
    }
    run_.rows.push_back({.model = fs::path(a_.weights).stem().string(),
                         .description = description_,
                         .height = height_,
                         .width = width_,
                         .work = a_.end_to_end ? "end to end"
                                 : a_.raw      ? "raw network"
                                               : "network",
                         .result = std::move(result)});
    say("\n" + perf::row_text(run_.rows.back()));
    return record();
  }

  // Adds the last row's line to the file, which stays whole.
  Status record() const {
    if (a_.record.empty()) return {};
    std::string content;
    if (fs::exists(a_.record)) {
      FERRY_TRY(file, MappedFile::open(a_.record));
      content.assign(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
    }
    if (!content.empty() && content.back() != '\n') content += '\n';
    content += perf::record_line(run_, run_.rows.back());
    return write_file(a_.record, std::string_view(content));
  }

  const Arguments& a_;
  std::unique_ptr<TemporaryFolder> folder_;
  perf::BenchRun run_;
  std::string description_;
  int64_t height_ = 0, width_ = 0;
  perf::PeerFiles files_;
  perf::EngineJob job_;                          // of the batch that is measured
  std::map<std::string, std::string> unusable_;  // peer: why; of that batch
  bool refused_ = false;
};  // namespace

Status check(const Arguments& a) {
  if (a.precision != "fp32" && a.precision != "f32") {
    return error(Code::kUnsupported,
                 "precision {} comes with INT8 (ferry build); what runs today is fp32",
                 a.precision);
  }
  if (a.end_to_end != !a.source.empty()) {
    return error(Code::kInvalid, "--end-to-end and --source PICTURE need each other");
  }
  for (const std::string& output : {a.json, a.csv, a.markdown, a.record}) {
    const std::string why = overwrites(output, {a.weights, a.cfg, a.source});
    if (!why.empty()) return error(Code::kInvalid, "{}", why);
  }
  if (!a.peers.empty() && (a.end_to_end || a.streams > 1 || a.raw)) {
    return error(Code::kUnsupported,
                 "--peers compares one stream of the network with its decoding: without "
                 "--end-to-end, --streams and --raw");
  }
  return {};
}

int serve(const Arguments& a) {
  const Status served =
      perf::serve_bench(worker_options(a, a.batches[0], a.threads[0]), std::cin, stdout);
  return served.ok() ? kDone : kFailed;  // the reason was the answer
}

int run(Arguments a) {
  if (a.threads.empty()) a.threads = {perf::this_machine().cores};
  if (a.wait < 0) a.wait = a.peers.empty() ? 0 : 1;
  const auto fail = [](const Error& why) {
    show_progress("");
    print(stderr, "ferry bench: {}\n", printable_lines(why.message));
    return kFailed;
  };
  if (const Status valid = check(a); !valid.ok()) return fail(valid.error());
  if (a.worker) return serve(a);
  auto folder = TemporaryFolder::create();
  if (!folder.ok()) return fail(folder.error());
  const auto code = Bench(a, *std::move(folder)).run();
  return code.ok() ? *code : fail(code.error());
}

std::function<int()> setup(CLI::App& app) {
  const auto a = std::make_shared<Arguments>();
  app.add_option("--weights", a->weights, "a YOLOv5 .pt, an .onnx or a model .yaml")
      ->capture_default_str();
  add_cfg(app, a->cfg);
  add_image_size(app, a->imgsz);
  app.add_option("--batch-size", a->batches, "pictures a run; several: 1,4,8")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--threads", a->threads,
                 "threads a run; several: 1,2; default: every core this process may use")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  app.add_option("--streams", a->streams,
                 "contexts that run at the same time, with the same weights")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  app.add_option("--precision", a->precision, "fp32")->capture_default_str();
  app.add_option("--peers", a->peers,
                 "engines to compare with: onnxruntime,openvino,ncnn,torch; ferry: ours against "
                 "ours")
      ->delimiter(',');
  app.add_option("--python", a->python,
                 "the Python that has the peers; default: the one that `make "
                 "bench-peers` makes");
  app.add_option("--duration", a->duration, "seconds timed, of each engine in each row")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 1e6));
  app.add_option("--iterations", a->iterations, "timed runs, instead of a duration")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--warmup", a->warmup, "seconds before that")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
  app.add_option("--rounds", a->rounds, "turns of each engine; ratios are formed turn by turn")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  app.add_option("--quiet", a->quiet,
                 "processors that others may use; a round beside more is "
                 "played again")
      ->capture_default_str();
  app.add_option("--wait", a->wait,
                 "seconds to wait for that before a round; default: 1 with peers, else 0");
  app.add_option("--patience", a->patience, "rounds played at most, as a multiple of --rounds")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 100.0));
  app.add_option("--timeout", a->timeout, "seconds an engine may take to load or convert")
      ->capture_default_str();
  app.add_option("--peak-seconds", a->peak_seconds,
                 "for the machine's peak, a number of threads; 0: leave it out")
      ->capture_default_str();
  app.add_flag("--end-to-end", a->end_to_end, "a whole picture: letterbox, network, NMS");
  app.add_option("--source", a->source, "the picture for --end-to-end");
  app.add_flag("--tune", a->tune, "time candidate kernels while loading");
  app.add_flag("--raw", a->raw, "the network without the decoding of its head");
  app.add_option("--disable-pass", a->disable_passes, "leave a pass out, for debugging")
      ->delimiter(',')
      ->check(pass_name());
  app.add_option("--json", a->json, "write everything, every time too, to this file; -: print it");
  app.add_option("--csv", a->csv, "write a line for each row and engine");
  app.add_option("--markdown", a->markdown, "write a table");
  app.add_option("--record", a->record, "add a JSON line for each row to this file");
  app.add_option("--commit", a->commit, "what to call this version of the sources in the files");
  app.add_flag("--worker", a->worker, "")->group("");
  return [a] { return run(*a); };
}

}  // namespace

extern const Command command_bench;
const Command command_bench = {.name = "bench",
                               .summary = "how fast a model runs here, and next to other engines",
                               .setup = setup};

}  // namespace ferry::cli

// ferry profile: where the time of a detector goes, node by node and stage by stage, and what to do
// about it. docs/profile.md explains the figures and lists the rules of the advice.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/print.h"
#include "passes/pipeline.h"
#include "perf/advice.h"
#include "perf/profile.h"
#include "perf/profile_report.h"
#include "perf/profile_run.h"
#include "perf/trace.h"

namespace ferry::cli {
namespace {

struct Arguments {
  perf::ProfileOptions options;
  perf::ProfileTextOptions text;
  std::vector<int64_t> imgsz;
  std::string trace, json, csv;
  bool all = false, rules = false;
};

// What is being done, on a terminal only.
void show_progress(const std::string& what) {
  static const bool terminal = isatty(STDERR_FILENO) == 1;
  if (terminal) print(stderr, "\r\033[K{}", what);
}

// What is wrong on the command line; empty: nothing.
std::string wrong_usage(const Arguments& a) {
  int taken = 0;
  for (const std::string& path : {a.trace, a.json, a.csv}) {
    taken += path == "-" ? 1 : 0;
    std::string why = overwrites(path, {a.options.weights, a.options.cfg, a.options.source});
    if (!why.empty()) return why;
  }
  if (taken > 1) return "only one of --trace, --json and --csv can go to standard output";
  return {};
}

Status save(const std::string& path, const std::string& content) {
  if (path.empty()) return {};
  if (path != "-") return write_file(path, std::string_view(content));
  print("{}", content);
  return {};
}

Status run_profile(Arguments& a) {
  if (!a.imgsz.empty()) {
    a.options.height = a.imgsz.front();
    a.options.width = a.imgsz.back();
  }
  if (a.all) a.text.top = 0;
  a.options.cancelled = interrupted;
  a.options.progress = show_progress;
  FERRY_TRY(profile, perf::measure_profile(a.options));
  for (const std::string& warning : profile.warnings) {
    print(stderr, "ferry profile: warning: {}\n", printable(warning));
  }
  const bool taken = a.trace == "-" || a.json == "-" || a.csv == "-";
  print(taken ? stderr : stdout, "{}", perf::profile_text(profile, a.text));
  FERRY_CHECK_OK(save(a.json, perf::profile_json(profile)));
  FERRY_CHECK_OK(save(a.csv, perf::profile_csv(profile)));
  FERRY_CHECK_OK(save(a.trace, a.trace.empty() ? "" : perf::trace_json(profile.trace)));
  return {};
}

int run(Arguments a) {
  for (const std::string& name : a.options.disable_passes) {
    if (name != "help") continue;
    for (const std::string_view pass : passes::pass_names()) print("{}\n", pass);
    return kDone;
  }
  if (a.rules) {
    for (const perf::AdviceRule& rule : perf::advice_rules())
      print("{:<16} {}\n", rule.name, rule.summary);
    return kDone;
  }
  if (const std::string why = wrong_usage(a); !why.empty()) {
    print(stderr, "ferry profile: {}\n", printable(why));
    return kWrongUsage;
  }
  const Status done = run_profile(a);
  if (done.ok()) return kDone;
  show_progress("");
  print(stderr, "ferry profile: {}\n", printable(done.error().message));
  return kFailed;
}

void add_measuring(CLI::App& app, Arguments& a) {
  perf::ProfileOptions& o = a.options;
  app.add_option("--runs", o.runs,
                 "runs of each kind, plain and node by node; 0: as many as fit into --duration")
      ->capture_default_str()
      ->check(CLI::Range(0, 10000));
  app.add_option("--duration", o.duration_s, "seconds to measure")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 86400.0));
  app.add_option("--warmup", o.warmup, "runs before that")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  app.add_option("--peak-seconds", o.peak_seconds,
                 "for the machine's peak; 0: leave it and the roofs out")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 60.0));
}

void add_output(CLI::App& app, Arguments& a) {
  app.add_option("--top", a.text.top, "rows of the table")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  app.add_flag("--all", a.all, "all rows");
  app.add_option("--sort", a.text.sort, "time, or order of execution")
      ->transform(CLI::CheckedTransformer(std::map<std::string, perf::SortBy>{
          {"time", perf::SortBy::kTime}, {"order", perf::SortBy::kOrder}}));
  app.add_option("--by", a.text.group, "rows are nodes, or sums over an op or a kernel")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, perf::GroupBy>{{"node", perf::GroupBy::kNode},
                                               {"op", perf::GroupBy::kOp},
                                               {"kernel", perf::GroupBy::kKernel}}));
  app.add_option("--trace", a.trace,
                 "write the first runs for chrome://tracing or ui.perfetto.dev; - for standard "
                 "output");
  app.add_option("--trace-runs", a.options.trace_runs, "runs with nodes that go into the trace")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  app.add_option("--json", a.json, "write everything; - for standard output");
  app.add_option("--csv", a.csv, "write a line for each node; - for standard output");
  app.add_flag("--rules", a.rules, "list the rules behind the advice");
}

std::function<int()> setup(CLI::App& app) {
  const auto a = std::make_shared<Arguments>();
  perf::ProfileOptions& o = a->options;
  o.weights = "yolov5n.pt";
  app.add_option("--weights,--model", o.weights, "a YOLOv5 .pt, an .onnx or a model .yaml")
      ->capture_default_str();
  app.add_option("--source", o.source,
                 "picture, folder, glob, list file (.txt) or video; without it a picture is made "
                 "up and nothing decoded");
  add_image_size(app, a->imgsz);
  app.add_flag("--rect,!--no-rect", o.rect,
               "smallest input that holds the source's first picture (default), or the whole "
               "square");
  app.add_option("--batch-size,--batch", o.batch, "pictures that run together")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  add_threads(app, o.threads);
  add_device(app, o.device);
  add_measuring(app, *a);
  add_output(app, *a);
  app.add_option("--conf-thres", o.conf_threshold, "lowest confidence")
      ->check(fraction())
      ->capture_default_str();
  app.add_option("--iou-thres", o.iou_threshold, "overlap above which the weaker box goes")
      ->check(fraction())
      ->capture_default_str();
  app.add_option("--max-det", o.max_detections, "most boxes in a picture")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  add_cfg(app, o.cfg);
  app.add_flag("--tune", o.tune, "time candidate kernels on this machine first");
  app.add_option("--disable-pass", o.disable_passes,
                 "leave out graph passes by name; help lists them")
      ->check(pass_name());
  return [a] { return run(*a); };
}

}  // namespace

extern const Command command_profile;
const Command command_profile = {
    .name = "profile",
    .summary = "where the time goes, node by node, and what to do about it",
    .setup = setup};

}  // namespace ferry::cli

// ferry val: how good a network is on a dataset, by Ultralytics' and by COCO's definition. Flags,
// lines and files are those of Ultralytics' val.py.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "base/mapped_file.h"
#include "cli/command.h"
#include "cli/label_row.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/run_folder.h"
#include "data/dataset.h"
#include "detect/engine.h"
#include "eval/evaluation.h"
#include "eval/mosaic.h"
#include "eval/plots.h"
#include "eval/predict.h"
#include "eval/predictions_json.h"
#include "ferry/ferry.h"
#include "vision/encode.h"

namespace ferry::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string weights = "yolov5n.pt", data, cfg, device = "cpu", project = "runs/val", name = "exp",
              task = "val", json, images;
  std::vector<int64_t> imgsz;
  std::vector<int32_t> classes;
  bool rect = true, augment = false, single_cls = false, verbose = false, save_txt = false,
       save_conf = false, save_json = false, half = false, exist_ok = false, plots = true,
       cache = true;
  std::optional<double> conf_thres, iou_thres;
  int64_t max_det = 300;
  std::optional<int64_t> batch_size;
  int threads = 0;

  std::string split() const { return speed() ? "val" : task; }
  bool speed() const { return task == "speed"; }  // upstream's settings for timing
  double confidence() const { return conf_thres.value_or(speed() ? 0.25 : 0.001); }
  double iou() const { return iou_thres.value_or(speed() ? 0.45 : 0.6); }
  int64_t batch() const { return batch_size.value_or(speed() ? 1 : 32); }
};

void complain(const std::string& line) { print(stderr, "ferry val: {}\n", line); }

// val_batch0_labels.jpg and val_batch0_pred.jpg, of the first batches.
class BatchPages {
 public:
  BatchPages(std::string folder, const data::Dataset& dataset)
      : folder_(std::move(folder)), dataset_(dataset) {}

  Status add(const eval::Prediction& prediction) {
    if (prediction.batch != batch_) FERRY_CHECK_OK(write());
    batch_ = prediction.batch;
    if (batch_ >= kBatches || prediction.place >= eval::kMosaicTiles) return {};
    const data::Sample& sample = dataset_.samples[prediction.sample];
    FERRY_TRY(small, eval::tile_picture(prediction.picture));
    FERRY_TRY(copy, small.picture.clone());
    // Boxes are in pixels of the whole picture.
    const double gain_x =
        static_cast<double>(small.picture.width()) / static_cast<double>(sample.width);
    const double gain_y =
        static_cast<double>(small.picture.height()) / static_cast<double>(sample.height);
    const auto labeled = [&](const vision::Box& b, int32_t id, std::string text) {
      return vision::LabeledBox{b.x1 * gain_x, b.y1 * gain_y,           b.x2 * gain_x,
                                b.y2 * gain_y, vision::class_color(id), std::move(text)};
    };
    const std::string name = fs::path(sample.path).filename().string();
    eval::Tile& truths = truths_.emplace_back(eval::Tile{name, std::move(small.picture), {}});
    eval::Tile& found = found_.emplace_back(eval::Tile{name, std::move(copy), {}});
    for (const eval::Truth& truth : eval::truths_of(sample))
      truths.boxes.push_back(labeled(truth.box, truth.class_id, class_name(truth.class_id)));
    for (const vision::Detection& d : prediction.detections) {
      if (d.confidence <= kShown) break;
      found.boxes.push_back(labeled(
          d.box, d.class_id, fmt::format("{} {:.1f}", class_name(d.class_id), d.confidence)));
    }
    return {};
  }

  // The pages of the batch that is open.
  Status write() {
    if (!truths_.empty()) {
      FERRY_CHECK_OK(write_page(truths_, "labels"));
      FERRY_CHECK_OK(write_page(found_, "pred"));
    }
    truths_.clear();
    found_.clear();
    return {};
  }

 private:
  static constexpr size_t kBatches = 3;
  static constexpr float kShown = 0.25f;  // confidence

  const std::string& class_name(int32_t id) const {
    return dataset_.names[static_cast<size_t>(id)];
  }
  Status write_page(const std::vector<eval::Tile>& tiles, const char* what) const {
    FERRY_TRY(page, eval::mosaic(tiles));
    return vision::encode_picture(page,
                                  fmt::format("{}/val_batch{}_{}.jpg", folder_, batch_, what));
  }

  std::string folder_;
  const data::Dataset& dataset_;
  size_t batch_ = 0;
  std::vector<eval::Tile> truths_, found_;
};

// The files of a run, beside its plots.
class Outputs {
 public:
  static Result<Outputs> create(const Arguments& a, std::string folder,
                                const data::Dataset& dataset) {
    Outputs outputs(a, std::move(folder), dataset);
    if (a.save_json) {
      FERRY_TRY(json, eval::PredictionsJson::create(outputs.folder_ + "/predictions.json"));
      outputs.json_.emplace(std::move(json));
    }
    if (a.save_txt) FERRY_CHECK_OK(make_folder(outputs.folder_ + "/labels"));
    return outputs;
  }

  Status add(const eval::Prediction& prediction) {
    const data::Sample& sample = dataset_.samples[prediction.sample];
    if (json_)
      FERRY_CHECK_OK(json_->add(sample.image_id, prediction.detections, dataset_.category_ids));
    if (a_.save_txt) FERRY_CHECK_OK(write_labels(sample, prediction.detections));
    return a_.plots ? pages_.add(prediction) : Status();
  }

  Status finish(const eval::Evaluation& evaluation, const eval::Report& report,
                const eval::PredictTotals& totals) {
    const std::string json = eval::report_json(report, totals, dataset_.names);
    FERRY_CHECK_OK(write_file(folder_ + "/results.json", json));
    FERRY_CHECK_OK(write_file(folder_ + "/results.csv", eval::report_csv(report, dataset_.names)));
    if (a_.json == "-") {
      print("{}", json);
    } else if (!a_.json.empty()) {
      FERRY_CHECK_OK(write_file(a_.json, json));
    }
    if (json_) FERRY_CHECK_OK(json_->close());
    if (!a_.plots) return {};
    FERRY_CHECK_OK(pages_.write());
    Status plotted =
        eval::write_plots(folder_, report.ultralytics, evaluation.confusion(), dataset_.names);
    if (plotted.ok() || plotted.error().code != Code::kUnsupported) return plotted;
    complain("warning: no plots: " + plotted.error().message);  // no font is installed
    return {};
  }

 private:
  Outputs(const Arguments& a, std::string folder, const data::Dataset& dataset)
      : a_(a), folder_(std::move(folder)), dataset_(dataset), pages_(folder_, dataset) {}

  Status write_labels(const data::Sample& sample, std::span<const vision::Detection> detections) {
    std::string text;
    for (const vision::Detection& d : detections) {
      text += label_row(d.class_id, {d.box.x1, d.box.y1, d.box.x2, d.box.y2}, d.confidence,
                        sample.width, sample.height,
                        a_.save_conf ? WriteConfidence::kYes : WriteConfidence::kNo);
    }
    // Two pictures of one name (a/1.jpg, b/1.jpg) do not share a file.
    std::string stem = fs::path(sample.path).stem().string();
    if (const int count = ++stems_[stem]; count > 1) stem += fmt::format("_{}", count);
    return write_file(fmt::format("{}/labels/{}.txt", folder_, stem), text);
  }

  const Arguments& a_;
  std::string folder_;
  const data::Dataset& dataset_;
  BatchPages pages_;
  std::optional<eval::PredictionsJson> json_;
  std::map<std::string, int> stems_;
};

std::string dataset_line(const std::string& split, const data::Dataset& dataset) {
  const data::Summary& s = dataset.summary;
  std::string line = fmt::format("{}: {} images, {} backgrounds, {} corrupt, {} boxes", split,
                                 s.sound, s.backgrounds, s.corrupt + s.missing, s.boxes);
  const auto add = [&](int64_t count, const char* what) {
    if (count > 0) line += fmt::format(", {} {}", count, what);
  };
  add(s.bad_rows + s.zero_area, "bad rows left out");
  add(s.duplicates, "duplicates left out");
  add(s.crowds, "crowds");
  add(s.orphans, "orphan labels");
  return line;
}

// Keeps the labels of some classes.
void keep_classes(data::Dataset& dataset, const std::vector<int32_t>& classes) {
  const std::set<int32_t> wanted(classes.begin(), classes.end());
  for (data::Sample& sample : dataset.samples) {
    std::erase_if(sample.labels,
                  [&](const data::Label& label) { return !wanted.contains(label.class_id); });
  }
}

class Run {
 public:
  explicit Run(const Arguments& arguments) : a_(arguments) {}

  Result<int> run() {
    FERRY_TRY(dataset, open());
    LoadOptions load{.device = a_.device, .threads = a_.threads, .cfg = a_.cfg};
    if (!a_.imgsz.empty()) {
      load.input_height = a_.imgsz.front();
      load.input_width = a_.imgsz.back();
    }
    FERRY_TRY(network, detect::Network::load(a_.weights, load));
    for (const std::string& warning : network->source().warnings) complain("warning: " + warning);
    if (a_.half) complain("warning: --half has no effect on cpu; this is fp32");
    const auto classes = static_cast<size_t>(network->info().nc);
    if (!a_.single_cls && classes != dataset.names.size()) {
      return error(
          Code::kInvalid,
          "{} has {} classes, {} has {}: they do not belong together. (--single-cls counts "
          "all as one.)",
          a_.weights, classes, a_.data, dataset.names.size());
    }
    for (const int32_t id : a_.classes) {
      if (id < 0 || static_cast<size_t>(id) >= dataset.names.size())
        return error(Code::kInvalid, "--classes {}: the classes are 0 to {}", id,
                     dataset.names.size() - 1);
    }
    if (!a_.classes.empty()) keep_classes(dataset, a_.classes);
    FERRY_TRY(folder, make_run_folder(a_.project, a_.name,
                                      a_.exist_ok ? IfExists::kReuse : IfExists::kNumber));
    FERRY_TRY(outputs, Outputs::create(a_, folder, dataset));
    say(fmt::format("ferry {}, {}\n{}: {}", version(), network->device_text(), a_.weights,
                    network->description()));
    say(dataset_line(a_.split(), dataset));
    return evaluate(network, dataset, outputs, folder);
  }

 private:
  Result<data::Dataset> open() {
    data::OpenOptions options{.split = a_.split(),
                              .single_class = a_.single_cls,
                              .cache = a_.cache,
                              .threads = threads(),
                              .images = a_.images};
    std::optional<Progress> progress;
    options.progress = [&](int64_t done, int64_t total) {
      if (!progress) progress.emplace("dataset", total);
      progress->update(done);
      return !interrupted();
    };
    FERRY_TRY(dataset, data::open_dataset(a_.data, options));
    progress.reset();
    constexpr size_t kShown = 10;
    for (size_t i = 0; i < dataset.problems.size() && i < kShown; ++i) {
      const data::Problem& p = dataset.problems[i];
      complain(fmt::format("warning: {}: {}: {}", p.where, data::name_of(p.trouble), p.message));
    }
    if (dataset.problems.size() > kShown) {
      complain(fmt::format("warning: and {} more; `ferry dataset check {}` lists them",
                           dataset.problems.size() - kShown, a_.data));
    }
    return dataset;
  }

  Result<int> evaluate(const std::shared_ptr<detect::Network>& network,
                       const data::Dataset& dataset, Outputs& outputs, const std::string& folder) {
    detect::Engine engine(network);
    eval::Evaluation evaluation(dataset);
    const eval::PredictOptions options{.nms = {.conf_threshold = a_.confidence(),
                                               .iou_threshold = a_.iou(),
                                               .multi_label = true,
                                               .agnostic = a_.single_cls,
                                               .classes = a_.classes,
                                               .max_detections = a_.max_det},
                                       .rect = a_.rect && !a_.speed(),
                                       .batch = a_.batch(),
                                       .augment = a_.augment,
                                       .threads = threads()};
    std::optional<Progress> progress(std::in_place, "val",
                                     static_cast<int64_t>(dataset.samples.size()));
    int64_t done = 0;
    auto totals =
        eval::predict(engine, dataset, options, [&](const eval::Prediction& prediction) -> Status {
          if (interrupted()) return error(Code::kCancelled, "interrupted");
          eval::Prediction p = prediction;
          if (a_.single_cls) p.detections = as_one_class(p.detections);
          evaluation.add(p.sample, p.detections);
          progress->update(++done);
          return outputs.add(p);
        });
    progress.reset();
    if (!totals.ok()) return std::move(totals).error();
    const eval::Report report = evaluation.report();
    print_figures(report, dataset);
    const auto mean = [&](double ms) {
      return ms / static_cast<double>(std::max<int64_t>(totals->pictures, 1));
    };
    say(fmt::format(
        "Speed: {:.1f}ms pre-process, {:.1f}ms inference, {:.1f}ms NMS per image at "
        "shape ({}, 3, {}, {})",
        mean(totals->preprocess_ms), mean(totals->inference_ms), mean(totals->postprocess_ms),
        a_.batch(), network->nominal().height, network->nominal().width));
    FERRY_CHECK_OK(outputs.finish(evaluation, report, *totals));
    say(fmt::format("Results saved to {}", folder));
    for (const std::string& why : totals->unread) complain(why);
    return totals->unread.empty() ? kDone : kFailed;
  }

  std::span<const vision::Detection> as_one_class(std::span<const vision::Detection> detections) {
    one_class_.assign(detections.begin(), detections.end());
    for (vision::Detection& d : one_class_) d.class_id = 0;
    return one_class_;
  }

  void print_figures(const eval::Report& report, const data::Dataset& dataset) const {
    const eval::UltralyticsReport& u = report.ultralytics;
    say(fmt::format("{:>22}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}", "Class", "Images", "Instances",
                    "P", "R", "mAP50", "mAP50-95"));
    const auto row = [&](const std::string& name, int64_t instances, double p, double r,
                         double ap50, double ap) {
      say(fmt::format("{:>22}{:>11}{:>11}{:>11.3g}{:>11.3g}{:>11.3g}{:>11.3g}", name, report.images,
                      instances, p, r, ap50, ap));
    };
    row("all", report.instances, u.precision, u.recall, u.map50, u.map50_95);
    if ((a_.verbose || dataset.names.size() < 50) && u.classes.size() > 1) {
      for (const eval::ClassScore& c : u.classes) {
        row(dataset.names[static_cast<size_t>(c.class_id)], c.truths, c.precision, c.recall,
            c.ap50(), c.ap50_95());
      }
    }
    const eval::CocoReport& c = report.coco;
    say(
        fmt::format("COCO: AP {:.3f} AP50 {:.3f} AP75 {:.3f} APs {:.3f} APm {:.3f} APl {:.3f}, AR1 "
                    "{:.3f} AR10 {:.3f} AR100 {:.3f} ARs {:.3f} ARm {:.3f} ARl {:.3f}",
                    c.ap, c.ap50, c.ap75, c.ap_small, c.ap_medium, c.ap_large, c.ar1, c.ar10,
                    c.ar100, c.ar_small, c.ar_medium, c.ar_large));
  }

  // Standard output belongs to the JSON when it is asked for there.
  void say(const std::string& line) const { print(a_.json == "-" ? stderr : stdout, "{}\n", line); }
  int threads() const {
    return a_.threads > 0 ? a_.threads : static_cast<int>(std::thread::hardware_concurrency());
  }

  const Arguments& a_;
  std::vector<vision::Detection> one_class_;
};

int run(const Arguments& a) {
  if (a.data.empty()) {
    print(stderr, "ferry val: --data is required\nTry 'ferry val --help'.\n");
    return kWrongUsage;
  }
  if (const std::string why = overwrites(a.json, {a.weights, a.cfg, a.data}); !why.empty()) {
    print(stderr, "ferry val: --json: {}\n", why);
    return kWrongUsage;
  }
  auto code = Run(a).run();
  if (code.ok()) return *code;
  complain(code.error().message);
  return kFailed;
}

std::function<int()> setup(CLI::App& app) {
  const auto a = std::make_shared<Arguments>();
  app.add_option("--weights,--model", a->weights, "model: a YOLOv5 .pt, an .onnx or a model .yaml")
      ->capture_default_str();
  app.add_option("--data", a->data,
                 "dataset: a data.yaml, a COCO json, a VOC folder, a folder or list of pictures");
  app.add_option("--images", a->images, "folder of a COCO json's pictures, when it is not found");
  app.add_option("--task", a->task, "split to evaluate, or speed: timing, upstream's settings")
      ->check(CLI::IsMember({"train", "val", "test", "speed"}))
      ->capture_default_str();
  add_image_size(app, a->imgsz);
  app.add_option("--batch-size,--batch", a->batch_size,
                 "pictures that share a rectangle (32; 1 for speed)")
      ->check(CLI::Range(1, 4096));
  app.add_flag("--rect,!--no-rect", a->rect,
               "the smallest rectangle that holds a batch (default), or the whole square");
  app.add_option("--conf-thres", a->conf_thres, "lowest confidence (0.001; 0.25 for speed)")
      ->check(fraction());
  app.add_option("--iou-thres", a->iou_thres,
                 "overlap above which the weaker box goes (0.6; 0.45 for speed)")
      ->check(fraction());
  app.add_option("--max-det", a->max_det, "most boxes in a picture")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_flag("--augment", a->augment, "test-time augmentation: three scales, one mirrored");
  app.add_flag("--single-cls", a->single_cls, "all classes count as one");
  app.add_option("--classes", a->classes, "only these class numbers: --classes 0 2")
      ->check(CLI::Range(0, 1000000));
  app.add_flag("--verbose", a->verbose, "a line a class, however many there are");
  app.add_flag("--save-txt", a->save_txt, "labels/<name>.txt: class x y w h, parts of the picture");
  app.add_flag("--save-conf", a->save_conf, "the confidence too, in those files");
  app.add_flag("--save-json", a->save_json, "predictions.json in COCO's form");
  app.add_option("--json", a->json, "the figures as JSON into this file; - for standard output");
  app.add_flag("--half", a->half, "accepted for upstream's sake: the cpu computes in fp32");
  add_device(app, a->device);
  add_threads(app, a->threads);
  app.add_flag("--plots,!--no-plots", a->plots, "curves, confusion matrix and pictures (default)");
  app.add_flag("--cache,!--no-cache", a->cache, "remember which pictures are sound (default)");
  add_run_folder(app, a->project, a->name, a->exist_ok);
  add_cfg(app, a->cfg);
  return [a] { return run(*a); };
}

}  // namespace

extern const Command command_val;
const Command command_val = {
    .name = "val", .summary = "mAP of a model on a dataset, by two definitions", .setup = setup};

}  // namespace ferry::cli

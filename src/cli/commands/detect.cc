// ferry detect: pictures, folders, lists and videos in; boxes, pictures, text and JSON out. Flags
// and files are those of Ultralytics' detect.py, so that scripts which read them go on working.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "cli/command.h"
#include "cli/detect_outputs.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/run_folder.h"
#include "ferry/ferry.h"
#include "passes/pipeline.h"
#include "vision/decode.h"
#include "vision/letterbox.h"
#include "vision/sources.h"
#include "vision/video_reader.h"
#include "vision/video_writer.h"

namespace ferry::cli {

namespace fs = std::filesystem;

namespace {

struct Arguments {
  std::string weights = "yolov5n.pt", source, cfg, device = "cpu", project = "runs/detect",
              name = "exp", json, ignored_data;
  std::vector<int64_t> imgsz;
  std::vector<int32_t> classes;
  std::vector<std::string> disable_passes, dump_passes;
  bool rect = true, agnostic_nms = false, augment = false, save_txt = false, save_conf = false,
       save_crop = false, save_csv = false, nosave = false, exist_ok = false, hide_labels = false,
       hide_conf = false, tune = false, quiet = false;
  double conf_thres = 0.25, iou_thres = 0.45;
  int64_t max_det = 1000, batch_size = 1, line_thickness = 0, vid_stride = 1;
  int threads = 0;
};

// A command's run: what all sources share.
class Run {
 public:
  Run(const Arguments& arguments, std::unique_ptr<Detector> detector, std::string folder)
      : arguments_(arguments),
        detector_(std::move(detector)),
        folder_(std::move(folder)),
        outputs_({.folder = folder_,
                  .save_pictures = !arguments.nosave,
                  .save_txt = arguments.save_txt,
                  .save_conf = arguments.save_conf,
                  .save_crop = arguments.save_crop,
                  .save_csv = arguments.save_csv,
                  .json = arguments.json,
                  .line_thickness = arguments.line_thickness,
                  .hide_labels = arguments.hide_labels,
                  .hide_conf = arguments.hide_conf},
                 detector_->class_names()),
        options_{.conf_threshold = arguments.conf_thres,
                 .iou_threshold = arguments.iou_thres,
                 .max_detections = arguments.max_det,
                 .classes = arguments.classes,
                 .agnostic_nms = arguments.agnostic_nms,
                 .augment = arguments.augment} {}

  int run(const std::vector<vision::Source>& sources) {
    Progress progress("detect", static_cast<int64_t>(sources.size()));
    progress_ = &progress;
    total_ = sources.size();
    for (size_t i = 0; i < sources.size() && !interrupted() && !fatal_; ++i) {
      if (sources[i].kind == vision::SourceKind::kPicture) {
        read_picture(sources[i].path, i);
      } else {
        flush();
        fail_unless(run_video(sources[i], i), sources[i].path);
      }
      if (static_cast<int64_t>(waiting_.size()) >= arguments_.batch_size) flush();
      progress.update(static_cast<int64_t>(i) + 1);
    }
    flush();
    progress.clear();
    return finish();
  }

 private:
  struct Waiting {
    std::string path;
    size_t index;
    vision::Picture picture;
  };

  void read_picture(const std::string& path, size_t index) {
    auto decoded = vision::decode_picture(path);
    if (!decoded.ok()) return fail(decoded.error().message);
    if (!decoded->warning.empty())
      say_error(fmt::format("warning: {}: {}", path, decoded->warning));
    waiting_.push_back({path, index, std::move(decoded->picture)});
  }

  // Detects in the pictures that wait, as one call.
  void flush() {
    if (waiting_.empty()) return;
    std::vector<Waiting> batch = std::exchange(waiting_, {});
    std::vector<Image> images;
    for (const Waiting& w : batch) images.push_back(image_of(w.picture));
    auto results = detector_->detect(images, options_, arguments_.batch_size);
    if (!results.ok()) {
      for (const Waiting& w : batch) fail(fmt::format("{}: {}", w.path, results.error().message));
      return;
    }
    const double ms = detector_->timing().inference_ms / static_cast<double>(batch.size());
    count_time(batch.size());
    for (size_t i = 0; i < batch.size(); ++i) {
      Waiting& w = batch[i];
      const Detections& detections = (*results)[i];
      say(fmt::format("image {}/{} {}: {}x{} {}, {:.1f}ms", w.index + 1, total_, w.path,
                      detector_->timing().input_height, detector_->timing().input_width,
                      summary(detections, detector_->class_names()), ms));
      const fs::path file = unique_file(w.path, fs::path(w.path).filename());
      Status saved = outputs_.add(w.path, file.stem().string(), w.picture, detections);
      if (saved.ok() && !arguments_.nosave) saved = outputs_.save_picture(w.picture, file.string());
      stop_unless(std::move(saved));
    }
  }

  Status run_video(const vision::Source& source, size_t index) {
    FERRY_TRY(reader, vision::VideoReader::open(source.path, {.stride = arguments_.vid_stride}));
    const fs::path file =
        unique_file(source.path, fs::path(source.path).filename().replace_extension(".mp4"));
    std::optional<vision::VideoWriter> writer;
    const int64_t expected = reader.info().frames / arguments_.vid_stride;
    int64_t frames = 0;
    Status status;
    while (!interrupted() && !fatal_) {
      auto frame = reader.next();
      if (!frame.ok()) {
        status = std::move(frame).error();
        break;
      }
      if (!*frame) break;
      vision::Picture& picture = (*frame)->picture;
      auto detections = detector_->detect(image_of(picture), options_);
      if (!detections.ok()) {
        status = std::move(detections).error();
        break;
      }
      count_time(1);
      ++frames;
      say(fmt::format("video {}/{} ({}/{}) {}: {}x{} {}, {:.1f}ms", index + 1, total_, frames,
                      expected > 0 ? std::to_string(expected) : "?", source.path,
                      detector_->timing().input_height, detector_->timing().input_width,
                      summary(*detections, detector_->class_names()),
                      detector_->timing().inference_ms));
      // Upstream counts the frames it has seen, whatever --vid-stride leaves out.
      const std::string stem = fmt::format("{}_{}", file.stem().string(), frames);
      Status saved = outputs_.add(source.path, stem, picture, *detections, (*frame)->index);
      if (saved.ok() && !arguments_.nosave) {
        if (!writer) {
          auto created = vision::VideoWriter::create(
              (fs::path(folder_) / file).string(),
              {.fps = reader.info().fps > 0
                          ? reader.info().fps / static_cast<double>(arguments_.vid_stride)
                          : 25});
          if (created.ok())
            writer.emplace(*std::move(created));
          else
            saved = std::move(created).error();
        }
        if (saved.ok()) saved = writer->write(picture, (*frame)->seconds);
      }
      stop_unless(std::move(saved));
    }
    if (writer) stop_unless(writer->close());
    if (const auto& counters = reader.counters();
        counters.damaged_frames + counters.skipped_packets > 0) {
      say_error(fmt::format("warning: {}: {} damaged frames, {} packets that could not be decoded",
                            source.path, counters.damaged_frames, counters.skipped_packets));
    }
    if (status.ok() && frames == 0 && !interrupted())
      status = error(Code::kInvalid, "no frame could be decoded");
    return status;
  }

  int finish() {
    stop_unless(outputs_.finish());
    if (seen_ > 0) {
      const auto mean = [&](double ms) { return ms / static_cast<double>(seen_); };
      say(fmt::format("Speed: {:.1f}ms pre-process, {:.1f}ms inference, {:.1f}ms NMS per image at "
                      "shape (1, 3, {}, {})",
                      mean(time_.preprocess_ms), mean(time_.inference_ms),
                      mean(time_.postprocess_ms), detector_->input_height(),
                      detector_->input_width()),
          Loud::kYes);
    }
    if (const Memory memory = detector_->memory(); memory.weights > 0) {
      say(fmt::format("Memory: {:.1f} MB weights, {:.1f} MB activations ({:.1f} MB live at once)",
                      1e-6 * static_cast<double>(memory.weights),
                      1e-6 * static_cast<double>(memory.activations),
                      1e-6 * static_cast<double>(memory.peak)));
    }
    const bool saved =
        !arguments_.nosave || arguments_.save_txt || arguments_.save_crop || arguments_.save_csv;
    if (saved && seen_ > 0) say(fmt::format("Results saved to {}", folder_), Loud::kYes);
    if (arguments_.save_txt && outputs_.labels_written() > 0)
      say(fmt::format("{} labels saved to {}/labels", outputs_.labels_written(), folder_),
          Loud::kYes);
    if (outputs_.missing_glyphs()) {
      say_error(
          "warning: some labels have characters that no installed font has; for Chinese: apt "
          "install fonts-wqy-microhei");
    }
    if (failed_ > 0) say_error(fmt::format("{} of {} inputs failed", failed_, total_));
    if (interrupted()) say_error("interrupted; what was done so far is saved");
    return failed_ > 0 || fatal_ || interrupted() ? kFailed : kDone;
  }

  static Image image_of(const vision::Picture& picture) {
    return {
        picture.data(), picture.width(), picture.height(), picture.stride(),
        picture.format() == vision::PixelFormat::kBgr8 ? PixelFormat::kBgr8 : PixelFormat::kRgb8};
  }

  // Two inputs of one name (a/1.jpg, b/1.jpg) do not overwrite each other: 1.jpg, 1_2.jpg.
  // Nor does a result ever take the place of the file it was made from (--project . --name .).
  fs::path unique_file(const fs::path& source, const fs::path& name) {
    fs::path file = name;
    std::error_code failure;
    for (int number = 2; !taken_.insert(file.stem().string()).second ||
                         fs::equivalent(fs::path(folder_) / file, source, failure);
         ++number) {
      file = fmt::format("{}_{}{}", name.stem().string(), number, name.extension().string());
    }
    return file;
  }

  void count_time(size_t images) {
    const Timing& t = detector_->timing();
    time_.preprocess_ms += t.preprocess_ms;
    time_.inference_ms += t.inference_ms;
    time_.postprocess_ms += t.postprocess_ms;
    seen_ += images;
  }

  enum class Loud { kNo, kYes };
  // Standard output belongs to the JSON when it is asked for there.
  void say(const std::string& line, Loud loud = Loud::kNo) {
    if (arguments_.quiet && loud == Loud::kNo) return;
    progress_->clear();
    print(arguments_.json == "-" ? stderr : stdout, "{}\n", printable(line));
  }
  void say_error(const std::string& line) {
    progress_->clear();
    print(stderr, "ferry detect: {}\n", printable(line));
  }
  // One input that cannot be read: said, counted, and the rest goes on.
  void fail(const std::string& why) {
    ++failed_;
    say_error(why);
  }
  void fail_unless(Status status, const std::string& where) {
    if (!status.ok()) fail(fmt::format("{}: {}", where, status.error().message));
  }
  // Results that cannot be written will not be written for the next input either.
  void stop_unless(Status status) {
    if (status.ok() || fatal_) return;
    fatal_ = true;
    say_error(status.error().message);
  }

  const Arguments& arguments_;
  std::unique_ptr<Detector> detector_;
  std::string folder_;
  DetectOutputs outputs_;
  DetectOptions options_;
  std::vector<Waiting> waiting_;
  std::set<std::string> taken_;
  Progress* progress_ = nullptr;
  Timing time_;
  size_t seen_ = 0, failed_ = 0, total_ = 0;
  bool fatal_ = false;
};

int run(const Arguments& a) {
  const auto fail = [](const std::string& why) {
    print(stderr, "ferry detect: {}\n", why);
    return kFailed;
  };
  for (const std::vector<std::string>* names : {&a.disable_passes, &a.dump_passes}) {
    for (const std::string& name : *names) {
      if (name != "help") continue;
      for (const std::string_view pass : passes::pass_names()) print("{}\n", pass);
      return kDone;
    }
  }
  if (a.source.empty()) {
    print(stderr, "ferry detect: --source is required\nTry 'ferry detect --help'.\n");
    return kWrongUsage;
  }
  if (const std::string why = overwrites(a.json, {a.weights, a.cfg, a.source}); !why.empty()) {
    print(stderr, "ferry detect: --json: {}\n", why);
    return kWrongUsage;
  }
  const auto sources = vision::find_sources(a.source);
  if (!sources.ok()) return fail(sources.error().message);
  LoadOptions load{.device = a.device,
                   .threads = a.threads,
                   .fit = a.rect ? Fit::kRect : Fit::kSquare,
                   .fixed_shape = !a.rect && a.batch_size == 1 && !a.augment,
                   .cfg = a.cfg,
                   .tune = a.tune,
                   .disable_passes = a.disable_passes,
                   .dump_passes = a.dump_passes};
  if (!a.imgsz.empty()) {
    load.input_height = a.imgsz.front();
    load.input_width = a.imgsz.back();
  }
  auto detector = Detector::load(a.weights, load);
  if (!detector.ok()) return fail(detector.error().message);
  for (const std::string& warning : (*detector)->warnings())
    print(stderr, "ferry detect: warning: {}\n", warning);
  for (const int32_t id : a.classes) {
    if (id < 0 || static_cast<size_t>(id) >= (*detector)->class_names().size()) {
      return fail(fmt::format("--classes {}: the model has classes 0 to {}", id,
                              (*detector)->class_names().size() - 1));
    }
  }
  std::string folder;
  if (!a.nosave || a.save_txt || a.save_crop || a.save_csv) {
    auto made =
        make_run_folder(a.project, a.name, a.exist_ok ? IfExists::kReuse : IfExists::kNumber);
    if (!made.ok()) return fail(made.error().message);
    folder = *made;
  }
  if (!a.quiet) {
    print(a.json == "-" ? stderr : stdout, "ferry {}, {}\n{}: {}\n", version(),
          (*detector)->device(), a.weights, (*detector)->description());
  }
  return Run(a, *std::move(detector), folder).run(*sources);
}

std::function<int()> setup(CLI::App& app) {
  const auto a = std::make_shared<Arguments>();
  app.add_option("--weights,--model", a->weights, "model: a YOLOv5 .pt, an .onnx or a model .yaml")
      ->capture_default_str();
  app.add_option(
      "--source", a->source,
      "picture, video, folder, glob, list file (.txt), or - for a list on standard input");
  add_image_size(app, a->imgsz);
  app.add_flag("--rect,!--no-rect", a->rect,
               "smallest input that holds the picture (default), or the whole square");
  app.add_option("--conf-thres", a->conf_thres, "lowest confidence")
      ->check(fraction())
      ->capture_default_str();
  app.add_option("--iou-thres", a->iou_thres, "overlap above which the weaker box goes")
      ->check(fraction())
      ->capture_default_str();
  app.add_option("--max-det", a->max_det, "most boxes in a picture")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--classes", a->classes, "only these class numbers: --classes 0 2")
      ->check(CLI::Range(0, 1000000));
  app.add_flag("--agnostic-nms", a->agnostic_nms, "boxes of different classes suppress each other");
  app.add_flag("--augment", a->augment, "test-time augmentation: three scales, one mirrored");
  add_device(app, a->device);
  add_threads(app, a->threads);
  app.add_option("--batch-size,--batch", a->batch_size, "pictures of one shape that run together")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_flag("--save-txt", a->save_txt,
               "labels/<name>.txt: class x y w h, as parts of the picture");
  app.add_flag("--save-conf", a->save_conf, "the confidence too, in those files");
  app.add_flag("--save-crop", a->save_crop, "crops/<class>/<name>.jpg: each box as a picture");
  app.add_flag("--save-csv", a->save_csv, "predictions.csv");
  app.add_option("--json", a->json, "all boxes as JSON into this file; - for standard output");
  app.add_flag("--nosave", a->nosave, "no annotated pictures and videos");
  add_run_folder(app, a->project, a->name, a->exist_ok);
  app.add_option("--line-thickness", a->line_thickness, "pixels; 0: by the picture's size")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  app.add_flag("--hide-labels", a->hide_labels, "boxes only");
  app.add_flag("--hide-conf", a->hide_conf, "labels without the confidence");
  app.add_option("--vid-stride", a->vid_stride, "take every n-th frame of a video")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  add_cfg(app, a->cfg);
  app.add_flag("--tune", a->tune, "time candidate kernels on this machine first");
  app.add_option("--disable-pass", a->disable_passes,
                 "leave out graph passes by name; `--disable-pass help` lists them")
      ->check(pass_name());
  app.add_option("--dump-pass", a->dump_passes,
                 "print the graph before and after passes; all, or names")
      ->check(pass_name());
  for (const char* flag : {"--half", "--dnn", "--view-img", "--visualize", "--update"}) {
    app.add_flag_callback(
        flag, [flag] { print(stderr, "ferry detect: warning: {} has no effect here\n", flag); },
        "accepted for upstream's sake");
  }
  app.add_option("--data", a->ignored_data,
                 "accepted for upstream's sake: the model has the names");
  app.add_flag("--quiet,-q", a->quiet, "only the closing lines");
  return [a] { return run(*a); };
}

}  // namespace

extern const Command command_detect;
const Command command_detect = {
    .name = "detect", .summary = "pictures and videos to boxes", .setup = setup};

}  // namespace ferry::cli

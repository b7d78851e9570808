// ferry dataset: looks at a dataset (check), counts what is in it (stats), writes it in another
// form (convert).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/mapped_file.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/run_folder.h"
#include "data/dataset.h"
#include "data/stats.h"
#include "data/write.h"
#include "vision/encode.h"

namespace ferry::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct Arguments {
  std::string action, data, split = "all", to, output, images, names, json,
                            project = "runs/dataset", name = "exp";
  bool strict = false, verbose = false, copy = false, symlink = false, exist_ok = false,
       cache = true;
  int threads = 0;
};

// One split, opened.
struct Opened {
  std::string split;
  data::Dataset dataset;
};

// What was counted, with its name for people and for JSON. Rows that are 0 stay unsaid.
struct Counter {
  const char* key;
  const char* text;
  int64_t data::Summary::*member;
  bool is_trouble;
};
constexpr Counter kCounters[] = {
    {"backgrounds", "pictures without boxes", &data::Summary::backgrounds, false},
    {"unlabelled", "of these without a label file", &data::Summary::unlabelled, false},
    {"polygons", "outlines made boxes", &data::Summary::polygons, false},
    {"crowds", "crowds", &data::Summary::crowds, false},
    {"rotated", "pictures turned by EXIF", &data::Summary::rotated, false},
    {"windows_text", "label files with CRLF or a byte order mark", &data::Summary::windows_text,
     false},
    {"missing", "pictures missing", &data::Summary::missing, true},
    {"corrupt", "pictures corrupt", &data::Summary::corrupt, true},
    {"damaged", "pictures damaged, decoded all the same", &data::Summary::damaged, true},
    {"other_size", "pictures of another size than the annotations say", &data::Summary::other_size,
     true},
    {"bad_label_files", "label files unreadable", &data::Summary::bad_label_files, true},
    {"bad_rows", "bad rows left out", &data::Summary::bad_rows, true},
    {"zero_area", "boxes without area left out", &data::Summary::zero_area, true},
    {"duplicates", "duplicate boxes left out", &data::Summary::duplicates, true},
    {"orphans", "labels without a picture", &data::Summary::orphans, true},
};

int64_t troubles(const data::Summary& summary) {
  int64_t count = 0;
  for (const Counter& counter : kCounters)
    count += counter.is_trouble ? summary.*counter.member : 0;
  return count;
}

class Run {
 public:
  explicit Run(const Arguments& arguments) : a_(arguments) {}

  Result<int> run() {
    FERRY_CHECK_OK(open());
    if (a_.action == "check") return check();
    if (a_.action == "stats") return stats();
    return convert();
  }

 private:
  Status open() {
    data::OpenOptions options{
        .cache = a_.cache,
        .threads =
            a_.threads > 0 ? a_.threads : static_cast<int>(std::thread::hardware_concurrency()),
        .images = a_.images};
    if (!a_.names.empty()) FERRY_CHECK_OK(read_names(options.names));
    std::vector<std::string> splits{a_.split};
    if (a_.split == "all") {
      FERRY_TRY(found, data::splits_of(a_.data));
      splits = std::move(found);
      if (splits.empty())
        return error(Code::kNotFound, "{}: has neither train nor val nor test", a_.data);
    }
    for (const std::string& split : splits) {
      options.split = split;
      std::optional<Progress> bar;
      options.progress = [&](int64_t done, int64_t total) {
        if (!bar) bar.emplace("dataset", total);
        bar->update(done);
        return !interrupted();
      };
      FERRY_TRY(dataset, data::open_dataset(a_.data, options));
      opened_.push_back({split, std::move(dataset)});
    }
    // Without names of its own a split knows the classes it has seen.
    size_t most = 0;
    for (size_t i = 0; i < opened_.size(); ++i) {
      if (opened_[i].dataset.names.size() > opened_[most].dataset.names.size()) most = i;
    }
    for (Opened& o : opened_) {
      o.dataset.names = opened_[most].dataset.names;
      o.dataset.category_ids = opened_[most].dataset.category_ids;
    }
    return {};
  }

  Status read_names(std::vector<std::string>& names) const {
    FERRY_TRY(file, MappedFile::open(a_.names));
    const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()),
                                file->bytes().size());
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      std::string_view line = text.substr(begin, end - begin);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty()) names.emplace_back(line);
      begin = end + 1;
    }
    return {};
  }

  Result<int> check() const {
    int64_t all_troubles = 0;
    ordered_json json = ordered_json::array();
    for (const Opened& o : opened_) {
      const data::Dataset& d = o.dataset;
      const data::Summary& s = d.summary;
      say(fmt::format("{}: {}, {} pictures, {} sound, {} boxes of {} classes", o.split,
                      data::name_of(d.format), s.pictures, s.sound, s.boxes, d.names.size()));
      for (const Counter& counter : kCounters) {
        if (s.*counter.member > 0) say(fmt::format("  {:>8} {}", s.*counter.member, counter.text));
      }
      const size_t shown = a_.verbose ? d.problems.size() : std::min<size_t>(d.problems.size(), 20);
      for (size_t i = 0; i < shown; ++i) {
        const data::Problem& p = d.problems[i];
        say(fmt::format("  {}: {}: {}", p.where, data::name_of(p.trouble), p.message));
      }
      if (shown < d.problems.size())
        say(fmt::format("  and {} more; --verbose lists them", d.problems.size() - shown));
      all_troubles += troubles(s);
      json.push_back(check_json(o));
    }
    FERRY_CHECK_OK(write_json(json));
    if (all_troubles == 0) say("no problems found");
    return a_.strict && all_troubles > 0 ? kFailed : kDone;
  }

  static ordered_json check_json(const Opened& o) {
    const data::Summary& s = o.dataset.summary;
    ordered_json json = {{"split", o.split},       {"format", data::name_of(o.dataset.format)},
                         {"pictures", s.pictures}, {"sound", s.sound},
                         {"boxes", s.boxes},       {"classes", o.dataset.names}};
    for (const Counter& counter : kCounters) json[counter.key] = s.*counter.member;
    ordered_json problems = ordered_json::array();
    for (const data::Problem& p : o.dataset.problems)
      problems.push_back(
          {{"where", p.where}, {"kind", data::name_of(p.trouble)}, {"message", p.message}});
    json["problems"] = std::move(problems);
    return json;
  }

  Result<int> stats() const {
    FERRY_TRY(folder, make_run_folder(a_.project, a_.name,
                                      a_.exist_ok ? IfExists::kReuse : IfExists::kNumber));
    ordered_json json = ordered_json::array();
    for (const Opened& o : opened_) {
      const data::Stats stats = data::stats_of(o.dataset);
      print_stats(o, stats);
      json.push_back(stats_json(o, stats));
      auto picture = data::draw_labels(o.dataset);
      Status drawn = picture.ok() ? vision::encode_picture(
                                        *picture, fmt::format("{}/labels_{}.jpg", folder, o.split))
                                  : Status(std::move(picture).error());
      if (!drawn.ok() && drawn.error().code != Code::kUnsupported) return std::move(drawn).error();
      if (!drawn.ok()) print(stderr, "ferry dataset: warning: {}\n", drawn.error().message);
    }
    FERRY_CHECK_OK(write_json(json));
    say(fmt::format("Results saved to {}", folder));
    return kDone;
  }

  void print_stats(const Opened& o, const data::Stats& s) const {
    say(fmt::format(
        "{}: {} pictures ({} without boxes, sides {} to {}), {} boxes, {:.1f} a picture "
        "(at most {})",
        o.split, s.pictures, s.backgrounds, s.smallest_side, s.largest_side, s.boxes,
        s.boxes_a_picture, s.most_boxes));
    say(fmt::format("{:>24}{:>10}{:>10}{:>9}", "class", "boxes", "pictures", "share"));
    const auto share = [&](int64_t count) {
      return s.boxes == 0 ? 0.0 : 100.0 * static_cast<double>(count) / static_cast<double>(s.boxes);
    };
    for (size_t i = 0; i < s.classes.size(); ++i) {
      const data::ClassCount& c = s.classes[i];
      if (c.boxes == 0 && s.classes.size() > 20 && !a_.verbose) continue;
      say(fmt::format("{:>24}{:>10}{:>10}{:>8.1f}%", o.dataset.names[i], c.boxes, c.pictures,
                      share(c.boxes)));
    }
    say(fmt::format("by area: {} small (below 32x32), {} medium, {} large (from 96x96)",
                    s.by_area[0], s.by_area[1], s.by_area[2]));
    say("longer side at 640:");
    constexpr const char* kSides[] = {"0-8",    "8-16",    "16-32",   "32-64",
                                      "64-128", "128-256", "256-512", "512-"};
    print_bars(kSides, s.by_side, s.boxes);
    say("height to width:");
    constexpr const char* kAspects[] = {"below 1/4", "1/4-1/2", "1/2-1", "1-2", "2-4", "from 4"};
    print_bars(kAspects, s.by_aspect, s.boxes);
  }

  void print_bars(std::span<const char* const> names, std::span<const int64_t> counts,
                  int64_t all) const {
    for (size_t i = 0; i < names.size(); ++i) {
      const auto length = static_cast<size_t>(all == 0 ? 0 : (50 * counts[i] + all / 2) / all);
      say(fmt::format("{:>12}{:>10}  {}", names[i], counts[i], std::string(length, '#')));
    }
  }

  static ordered_json stats_json(const Opened& o, const data::Stats& s) {
    ordered_json classes = ordered_json::array();
    for (size_t i = 0; i < s.classes.size(); ++i) {
      classes.push_back({{"class_id", i},
                         {"class_name", o.dataset.names[i]},
                         {"boxes", s.classes[i].boxes},
                         {"pictures", s.classes[i].pictures}});
    }
    return {
        {"split", o.split},
        {"pictures", s.pictures},
        {"backgrounds", s.backgrounds},
        {"boxes", s.boxes},
        {"most_boxes", s.most_boxes},
        {"by_area", {{"small", s.by_area[0]}, {"medium", s.by_area[1]}, {"large", s.by_area[2]}}},
        {"by_longer_side_at_640", s.by_side},
        {"by_height_to_width", s.by_aspect},
        {"classes", std::move(classes)}};
  }

  Result<int> convert() const {
    const data::Format format = a_.to == "yolo"   ? data::Format::kYolo
                                : a_.to == "coco" ? data::Format::kCoco
                                                  : data::Format::kVoc;
    FERRY_TRY(folder, output_folder(format));
    std::error_code failure;
    if (fs::exists(folder, failure) && !fs::is_empty(folder, failure) && !a_.exist_ok) {
      return error(
          Code::kInvalid,
          "{} exists and is not empty; name another --output, or --exist-ok to write into it",
          folder);
    }
    FERRY_CHECK_OK(make_folder(folder));
    std::vector<data::SplitView> views;
    int64_t troubles_left_out = 0;
    for (const Opened& o : opened_) {
      views.push_back({o.split, &o.dataset});
      troubles_left_out += troubles(o.dataset.summary);
    }
    int64_t total = 0, done = 0;
    for (const Opened& o : opened_) total += static_cast<int64_t>(o.dataset.samples.size());
    std::optional<Progress> bar(std::in_place, "convert", total);
    auto written = data::write_dataset(views,
                                       {.format = format,
                                        .folder = folder,
                                        .pictures = a_.copy      ? data::Place::kCopy
                                                    : a_.symlink ? data::Place::kSymlink
                                                                 : data::Place::kLink},
                                       [&] {
                                         bar->update(done++);
                                         return !interrupted();
                                       });
    bar.reset();
    if (!written.ok()) return std::move(written).error();
    say(fmt::format("{} pictures, {} boxes written to {} as {}", written->pictures, written->boxes,
                    folder, data::name_of(format)));
    const auto lost = [&](int64_t count, const char* what) {
      if (count > 0) say(fmt::format("  {:>8} {}", count, what));
    };
    lost(written->outlines_lost, "outlines written as boxes: the form has no place for them");
    lost(written->crowds_lost, "crowds left out: the form has none");
    lost(written->difficult_lost, "boxes lost their marks `difficult` or `truncated`");
    lost(written->doubled, "boxes stand twice in their picture: a YOLO reader drops the second");
    lost(written->renamed, "pictures renamed: the name was taken");
    lost(troubles_left_out, "problems in the original; `ferry dataset check` lists them");
    return kDone;
  }

  // helmet/data.yaml becomes runs/dataset/exp/helmet_voc.
  Result<std::string> output_folder(data::Format format) const {
    if (!a_.output.empty()) return a_.output;
    FERRY_TRY(run, make_run_folder(a_.project, a_.name,
                                   a_.exist_ok ? IfExists::kReuse : IfExists::kNumber));
    std::error_code failure;
    fs::path data = fs::absolute(a_.data, failure).lexically_normal();
    if (!data.has_filename()) data = data.parent_path();
    std::string stem = data.stem().string();
    if (stem == "data") stem = data.parent_path().filename().string();
    return (fs::path(run) / fmt::format("{}_{}", stem, data::name_of(format))).string();
  }

  Status write_json(const ordered_json& json) const {
    if (a_.json.empty()) return {};
    const std::string text =
        json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
    if (a_.json != "-") return write_file(a_.json, text);
    print("{}", text);
    return {};
  }

  // Standard output belongs to the JSON when it is asked for there.
  void say(const std::string& line) const {
    print(a_.json == "-" ? stderr : stdout, "{}\n", printable(line));
  }

  const Arguments& a_;
  std::deque<Opened> opened_;
};

int run(const Arguments& a) {
  if (a.action == "convert" && a.to.empty()) {
    print(stderr,
          "ferry dataset: convert needs --to yolo, coco or voc\nTry 'ferry dataset --help'.\n");
    return kWrongUsage;
  }
  auto code = Run(a).run();
  if (code.ok()) return *code;
  print(stderr, "ferry dataset: {}\n", printable(code.error().message));
  return kFailed;
}

std::function<int()> setup(CLI::App& app) {
  const auto a = std::make_shared<Arguments>();
  app.add_option("ACTION", a->action,
                 "check: what is wrong with it; stats: what is in it; convert: write another form")
      ->check(CLI::IsMember({"check", "stats", "convert"}))
      ->required();
  app.add_option("DATA", a->data,
                 "a data.yaml, a COCO json, a VOC folder, a folder or list of pictures")
      ->required();
  app.add_option("--split,--task", a->split, "train, val, test, or all there are")
      ->check(CLI::IsMember({"train", "val", "test", "all"}))
      ->capture_default_str();
  app.add_option("--to", a->to, "form to convert to")
      ->check(CLI::IsMember({"yolo", "coco", "voc"}));
  app.add_option("--output", a->output,
                 "folder to convert into; default: in the run's folder, DATA's name and the form");
  auto* copy = app.add_flag("--copy", a->copy, "copy pictures (default: hard links)");
  app.add_flag("--symlink", a->symlink, "link pictures symbolically")->excludes(copy);
  app.add_flag("--exist-ok", a->exist_ok, "write into a folder that is not empty");
  app.add_option("--images", a->images, "folder of a COCO json's pictures, when it is not found");
  app.add_option("--names", a->names,
                 "file of class names, one a line, in order; instead of what DATA says");
  app.add_flag("--strict", a->strict, "check: exit with 1 when anything is wrong");
  app.add_flag("--verbose", a->verbose, "every problem, every class");
  app.add_option("--json", a->json, "the findings as JSON into this file; - for standard output");
  app.add_option("--threads", a->threads, "that decode pictures; 0: all processors")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  app.add_flag("--cache,!--no-cache", a->cache, "remember which pictures are sound (default)");
  app.add_option("--project", a->project, "folder of the runs")->capture_default_str();
  app.add_option("--name", a->name, "this run's folder in it; numbered when it exists")
      ->capture_default_str();
  return [a] { return run(*a); };
}

}  // namespace

extern const Command command_dataset;
const Command command_dataset = {
    .name = "dataset", .summary = "check, count and convert datasets", .setup = setup};

}  // namespace ferry::cli

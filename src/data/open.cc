// From what a dataset's files name to what can be used: pictures are looked at, labels counted.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>

#include "base/mapped_file.h"
#include "data/dataset.h"
#include "data/labels.h"
#include "data/pictures.h"

namespace ferry::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSplits[] = {"train", "val", "test"};
constexpr size_t kMaxProblems = 100'000;  // listed; all are counted

bool is_yaml(const fs::path& path) { return has_suffix(path, ".yaml") || has_suffix(path, ".yml"); }

// The data.yaml that a folder holds, or empty.
std::string yaml_in(const std::string& folder) {
  std::error_code failure;
  for (const char* name : {"data.yaml", "dataset.yaml", "data.yml"}) {
    const fs::path path = fs::path(folder) / name;
    if (fs::is_regular_file(path, failure)) return path.string();
  }
  return {};
}

bool is_voc(const std::string& folder) {
  std::error_code failure;
  return fs::is_directory(fs::path(folder) / "Annotations", failure);
}

// Any of train, val, test for which the folder has a COCO json.
std::vector<std::string> coco_splits(const std::string& folder) {
  std::vector<std::string> splits;
  for (const char* split : kSplits)
    if (!find_coco(folder, split).empty()) splits.emplace_back(split);
  return splits;
}

Result<Listing> list_yaml(const std::string& path, const OpenOptions& options) {
  FERRY_TRY(yaml, read_data_yaml(path, options.split));
  const std::vector<std::string>& names = options.names.empty() ? yaml.names : options.names;
  if (yaml.sources.size() == 1 && has_suffix(yaml.sources[0], ".json"))
    return list_coco(yaml.sources[0], options.images, names);
  for (const std::string& source : yaml.sources) {
    if (!has_suffix(source, ".json")) continue;
    return error(Code::kInvalid, "{}: `{}:` names {} among others; a COCO json has to stand alone",
                 path, options.split, source);
  }
  return list_yolo(yaml.sources, names);
}

Result<Listing> list_folder(const std::string& path, const OpenOptions& options) {
  if (const std::string yaml = yaml_in(path); !yaml.empty()) return list_yaml(yaml, options);
  if (is_voc(path)) return list_voc(path, options.split, options.names);
  if (const std::string json = find_coco(path, options.split); !json.empty())
    return list_coco(json, options.images, options.names);
  if (!coco_splits(path).empty()) {
    return error(Code::kNotFound, "{}: there is no annotations/instances_{}.json", path,
                 options.split);
  }
  return list_yolo({path}, options.names);
}

Result<Listing> list(const std::string& path, const OpenOptions& options) {
  std::error_code failure;
  if (fs::is_directory(path, failure)) return list_folder(path, options);
  if (!fs::exists(path, failure)) return error(Code::kNotFound, "{}: no such file or folder", path);
  if (has_suffix(path, ".json")) return list_coco(path, options.images, options.names);
  if (has_suffix(path, ".txt")) return list_yolo({path}, options.names);
  if (is_yaml(path)) return list_yaml(path, options);
  return error(Code::kInvalid,
               "{}: not a dataset: needs a data.yaml, a COCO json, a list of pictures (.txt), a "
               "VOC folder or a folder of pictures",
               path);
}

// The number that is the file's name, or nothing.
bool number_of(const std::string& path, int64_t& number) {
  const std::string stem = fs::path(path).stem().string();
  const auto [at, failure] = std::from_chars(stem.data(), stem.data() + stem.size(), number);
  return failure == std::errc() && at == stem.data() + stem.size() && number >= 0;
}

// COCO's ids stay; else the numbers in the names when all have one of their own; else 1, 2, ….
void number_samples(const std::vector<Entry>& entries, const std::vector<size_t>& used,
                    std::vector<Sample>& samples) {
  std::set<int64_t> numbers;
  bool all = true;
  for (const size_t i : used) {
    int64_t number = entries[i].image_id;
    all = all && (number >= 0 || number_of(entries[i].picture, number)) &&
          numbers.insert(number).second;
  }
  for (size_t k = 0; k < used.size(); ++k) {
    const Entry& entry = entries[used[k]];
    samples[k].image_id = entry.image_id;
    if (entry.image_id >= 0) continue;
    if (!all || !number_of(entry.picture, samples[k].image_id))
      samples[k].image_id = static_cast<int64_t>(k) + 1;
  }
}

class Gathering {
 public:
  explicit Gathering(Dataset& dataset) : dataset_(dataset) {}

  void add(Problem problem) {
    Summary& s = dataset_.summary;
    switch (problem.trouble) {
      case Trouble::kMissingPicture:
        ++s.missing;
        break;
      case Trouble::kCorruptPicture:
        ++s.corrupt;
        break;
      case Trouble::kDamagedPicture:
        ++s.damaged;
        break;
      case Trouble::kBadLabelFile:
        ++s.bad_label_files;
        break;
      case Trouble::kBadRow:
        ++s.bad_rows;
        break;
      case Trouble::kZeroArea:
        ++s.zero_area;
        break;
      case Trouble::kDuplicate:
        ++s.duplicates;
        break;
      case Trouble::kOrphanLabel:
        ++s.orphans;
        break;
      case Trouble::kOtherSize:
        ++s.other_size;
        break;
    }
    if (dataset_.problems.size() < kMaxProblems) dataset_.problems.push_back(std::move(problem));
  }

  // False: the picture cannot be used.
  bool add_picture(const Entry& entry, const PictureFacts& facts) {
    Summary& s = dataset_.summary;
    s.remembered += facts.remembered;
    if (facts.seen == Seen::kMissing || facts.seen == Seen::kCorrupt) {
      const bool missing = facts.seen == Seen::kMissing;
      add({missing ? Trouble::kMissingPicture : Trouble::kCorruptPicture, entry.picture,
           missing ? "there is no such file" : facts.message});
      return false;
    }
    if (facts.seen == Seen::kDamaged) add({Trouble::kDamagedPicture, entry.picture, facts.message});
    if (entry.said_width > 0 &&
        (entry.said_width != facts.width || entry.said_height != facts.height)) {
      add({Trouble::kOtherSize, entry.picture,
           fmt::format("the annotations say {} x {}, the picture has {} x {}", entry.said_width,
                       entry.said_height, facts.width, facts.height)});
    }
    s.rotated += facts.orientation != 1;
    ++s.sound;
    return true;
  }

  void add_labels(Entry& entry, const PictureFacts& facts, bool single_class) {
    Summary& s = dataset_.summary;
    Labels& labels = entry.labels;
    // The picture itself says how large it is.
    if (dataset_.format != Format::kYolo && entry.said_width == 0) judge_pixels(entry, facts);
    s.unlabelled += !labels.has_file;
    s.windows_text += labels.windows_text;
    s.backgrounds += labels.labels.empty();
    s.boxes += static_cast<int64_t>(labels.labels.size());
    for (Problem& problem : labels.problems) add(std::move(problem));
    for (Label& label : labels.labels) {
      s.polygons += !label.polygons.empty();
      s.crowds += label.crowd;
      if (single_class) label.class_id = 0;
    }
  }

 private:
  static void judge_pixels(Entry& entry, const PictureFacts& facts) {
    std::vector<Label> good;
    for (Label& label : entry.labels.labels) {
      std::optional<Problem> problem = judge_pixel_box(label, facts.width, facts.height);
      if (!problem) {
        good.push_back(std::move(label));
        continue;
      }
      problem->where = fmt::format("{}: a box", entry.picture);
      entry.labels.problems.push_back(*std::move(problem));
    }
    entry.labels.labels = std::move(good);
  }

  Dataset& dataset_;
};

}  // namespace

std::string_view name_of(Format format) {
  switch (format) {
    case Format::kYolo:
      return "yolo";
    case Format::kCoco:
      return "coco";
    case Format::kVoc:
      return "voc";
  }
  return {};
}

std::string_view name_of(Trouble trouble) {
  switch (trouble) {
    case Trouble::kMissingPicture:
      return "missing picture";
    case Trouble::kCorruptPicture:
      return "corrupt picture";
    case Trouble::kDamagedPicture:
      return "damaged picture";
    case Trouble::kBadLabelFile:
      return "bad label file";
    case Trouble::kBadRow:
      return "bad row";
    case Trouble::kZeroArea:
      return "zero area";
    case Trouble::kDuplicate:
      return "duplicate";
    case Trouble::kOrphanLabel:
      return "orphan label";
    case Trouble::kOtherSize:
      return "other size";
  }
  return {};
}

bool has_suffix(const fs::path& path, std::string_view suffix) {
  std::string extension = path.extension().string();
  std::ranges::transform(extension, extension.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension == suffix;
}

std::vector<fs::directory_entry> files_in(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure); !failure && at != fs::directory_iterator();
       at.increment(failure)) {
    entries.push_back(*at);
  }
  std::ranges::sort(entries, {}, [](const fs::directory_entry& e) -> const std::string& {
    return e.path().native();
  });
  return entries;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

Result<std::string> read_text(const std::string& path, int64_t max_bytes) {
  FERRY_TRY(file, MappedFile::open(path));
  const std::span<const std::byte> bytes = file->bytes();
  if (static_cast<int64_t>(bytes.size()) > max_bytes)
    return error(Code::kInvalid, "{}: {} bytes, more than the {} a file of its kind may have", path,
                 bytes.size(), max_bytes);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<Dataset> open_dataset(const std::string& path, const OpenOptions& options) {
  FERRY_TRY(listing, list(path, options));
  std::vector<Entry>& entries = listing.entries;
  std::ranges::stable_sort(entries, {}, &Entry::picture);
  std::vector<std::string> paths;
  for (const Entry& entry : entries) paths.push_back(entry.picture);
  std::error_code failure;
  const std::string key = fs::absolute(path, failure).string() + " " + options.split;
  FERRY_TRY(facts, look_at(paths, key, options));

  Dataset dataset{.format = listing.format, .names = std::move(listing.names)};
  dataset.category_ids = std::move(listing.category_ids);
  Gathering gathering(dataset);
  std::vector<size_t> used;
  int32_t most = -1;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!gathering.add_picture(entries[i], facts[i])) continue;
    gathering.add_labels(entries[i], facts[i], options.single_class);
    for (const Label& label : entries[i].labels.labels) most = std::max(most, label.class_id);
    dataset.samples.push_back({.path = entries[i].picture,
                               .width = facts[i].width,
                               .height = facts[i].height,
                               .labels = std::move(entries[i].labels.labels)});
    used.push_back(i);
  }
  for (Problem& problem : listing.problems) gathering.add(std::move(problem));
  dataset.summary.pictures = static_cast<int64_t>(entries.size());
  number_samples(entries, used, dataset.samples);
  if (dataset.samples.empty()) {
    return error(Code::kInvalid, "{}: no sound picture: {} named, {} missing, {} corrupt{}", path,
                 entries.size(), dataset.summary.missing, dataset.summary.corrupt,
                 dataset.problems.empty() ? ""
                                          : "; the first: " + dataset.problems[0].where + ": " +
                                                dataset.problems[0].message);
  }
  if (options.single_class) {
    dataset.names = {"item"};
    dataset.category_ids.clear();
  }
  // Without names the classes are called by their numbers.
  for (auto id = static_cast<int32_t>(dataset.names.size()); id <= most; ++id)
    dataset.names.push_back(fmt::format("{}", id));
  for (auto id = static_cast<int64_t>(dataset.category_ids.size());
       id < static_cast<int64_t>(dataset.names.size()); ++id) {
    dataset.category_ids.push_back(id);
  }
  return dataset;
}

Result<std::vector<std::string>> splits_of(const std::string& path) {
  std::error_code failure;
  std::vector<std::string> splits;
  if (is_yaml(path)) return data_yaml_splits(path);
  if (fs::is_directory(path, failure)) {
    if (const std::string yaml = yaml_in(path); !yaml.empty()) return data_yaml_splits(yaml);
    splits = is_voc(path) ? voc_splits(path) : coco_splits(path);
  } else {
    // instances_train2017.json
    const std::string name = fs::path(path).filename().string();
    for (const char* split : kSplits)
      if (splits.empty() && name.find(split) != name.npos) splits.emplace_back(split);
  }
  if (splits.empty()) splits.emplace_back("val");
  return splits;
}

}  // namespace ferry::data

// COCO's instances json: images, annotations, categories (cocodataset.org, "data format").
//
// Such a file may have a gigabyte, so it is never held as a tree: each element of the three lists
// is taken as soon as it ends, and forgotten.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "base/mapped_file.h"
#include "data/labels.h"

namespace ferry::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kMaxDepth = 64;
constexpr size_t kMaxNumbers = size_t{1} << 20;  // of one annotation's outlines
constexpr double kMaxSide = 1e6;

// One element of a list, with the keys that matter here.
struct Element {
  bool is_object = false;
  std::optional<double> id, image_id, category_id, width, height, area, iscrowd;
  // Not COCO's own; `ferry dataset convert` keeps VOC's marks so.
  std::optional<double> difficult, truncated;
  std::string name, file_name;
  std::vector<double> bbox;
  bool bbox_is_numbers = true;
  std::vector<std::vector<double>> outlines;
  size_t numbers = 0;  // in the outlines
};

std::optional<double>* number_of(Element& element, std::string_view key) {
  constexpr std::pair<std::string_view, std::optional<double> Element::*> kKeys[] = {
      {"id", &Element::id},
      {"image_id", &Element::image_id},
      {"category_id", &Element::category_id},
      {"width", &Element::width},
      {"height", &Element::height},
      {"area", &Element::area},
      {"iscrowd", &Element::iscrowd},
      {"difficult", &Element::difficult},
      {"truncated", &Element::truncated},
  };
  for (const auto& entry : kKeys)
    if (entry.first == key) return &(element.*entry.second);
  return nullptr;
}

// -1 for what is no whole number from 0.
int64_t id_of(const std::optional<double>& number) {
  if (!number || *number < 0 || *number > 9e15 || *number != std::floor(*number)) return -1;
  return static_cast<int64_t>(*number);
}

// Hears what nlohmann's parser reads, and hands over the elements of the lists in the root object.
class Listener {
 public:
  using Take = std::function<bool(const std::string& section, Element& element)>;
  explicit Listener(Take take) : take_(std::move(take)) {}
  std::string failure;  // of the syntax

  bool has_list(std::string_view section) const {
    return std::ranges::find(lists_, section) != lists_.end();
  }

  // The interface of nlohmann::json_sax.
  bool null() { return other(); }
  bool boolean(bool value) { return number(value ? 1 : 0); }
  bool number_integer(int64_t value) { return number(static_cast<double>(value)); }
  bool number_unsigned(uint64_t value) { return number(static_cast<double>(value)); }
  bool number_float(double value, const std::string&) { return number(value); }
  bool binary(json::binary_t&) { return true; }
  bool string(std::string& value) {
    if (depth_ == 3 && key_ == "name") element_.name = value;
    if (depth_ == 3 && key_ == "file_name") element_.file_name = value;
    return other();
  }
  bool key(std::string& value) {
    if (depth_ == 1) section_ = value;
    if (depth_ == 3) key_ = value;
    return true;
  }
  bool start_object(size_t) {
    if (depth_ == 2) {
      element_ = {};
      element_.is_object = true;
    }
    if (depth_ >= 3) ++inner_objects_;
    return enter();
  }
  bool end_object() {
    --depth_;
    if (depth_ >= 3) --inner_objects_;
    return depth_ == 2 && in_list_ ? take_(section_, element_) : true;
  }
  bool start_array(size_t) {
    if (depth_ == 1) {
      in_list_ = true;
      if (section_.size() < 16 && !has_list(section_)) lists_.push_back(section_);
    }
    if (depth_ == 3 && key_ == "bbox") element_.bbox.clear();
    if (depth_ == 4 && in_outlines()) element_.outlines.emplace_back();
    return enter();
  }
  bool end_array() {
    --depth_;
    if (depth_ == 2 && in_list_) return other_element();
    if (depth_ == 1) in_list_ = false;
    return true;
  }
  bool parse_error(size_t, const std::string&, const json::exception& e) {
    failure = e.what();
    return false;
  }

 private:
  // depth_ counts what is open: 1 the root, 2 a list, 3 an element, 4 its `bbox` or
  // `segmentation`, 5 one outline.
  bool enter() {
    if (++depth_ <= kMaxDepth) return true;
    failure = fmt::format("lists in lists, {} deep", depth_);
    return false;
  }
  bool in_outlines() const { return inner_objects_ == 0 && key_ == "segmentation"; }
  bool number(double value) {
    if (!in_list_ || inner_objects_ > 0) return true;
    if (depth_ == 2) return other_element();
    if (depth_ == 3) {
      if (std::optional<double>* field = number_of(element_, key_)) *field = value;
    } else if (depth_ == 4 && key_ == "bbox") {
      if (element_.bbox.size() < 5) element_.bbox.push_back(value);
    } else if (depth_ == 5 && in_outlines() && !element_.outlines.empty()) {
      if (++element_.numbers <= kMaxNumbers) element_.outlines.back().push_back(value);
    }
    return true;
  }
  bool other() {
    if (depth_ == 2 && in_list_) return other_element();
    if (depth_ == 4 && key_ == "bbox") element_.bbox_is_numbers = false;
    return true;
  }
  bool other_element() {
    element_ = {};
    return take_(section_, element_);
  }

  Take take_;
  int depth_ = 0, inner_objects_ = 0;
  bool in_list_ = false;
  std::string section_, key_;
  std::vector<std::string> lists_;
  Element element_;
};

// The folder in which the first pictures are found.
fs::path pictures_folder(const fs::path& json_path, const std::string& images,
                         const std::vector<Entry>& entries) {
  if (!images.empty()) return images;
  const fs::path here = json_path.parent_path();
  std::vector<fs::path> candidates;
  // annotations/instances_val2017.json -> val2017/
  const std::string stem = json_path.stem().string();
  const std::string split = stem.substr(stem.rfind('_') + 1);
  for (const fs::path& base : {here, here / "..", here / ".." / "images"})
    candidates.push_back(base / split);
  candidates.insert(candidates.end(), {here / "images", here, here / ".." / "images", here / ".."});
  for (size_t i = 0; i < std::min<size_t>(entries.size(), 16); ++i) {
    for (const fs::path& candidate : candidates) {
      std::error_code failure;
      if (fs::exists(candidate / entries[i].picture, failure)) return candidate.lexically_normal();
    }
  }
  return here / "images";
}

class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  Status parse(std::string_view text) {
    Listener listener([this](const std::string& section, Element& element) {
      if (section == "categories") take_category(element);
      if (section == "images") take_image(element);
      if (section == "annotations") take_annotation(element);
      return !failure_;
    });
    try {
      json::sax_parse(text.begin(), text.end(), &listener);
    } catch (const json::exception& e) {
      listener.failure = e.what();
    }
    if (failure_) return *std::move(failure_);
    if (!listener.failure.empty())
      return error(Code::kInvalid, "{}: not a json: {}", path_, listener.failure);
    for (const char* section : {"images", "annotations", "categories"}) {
      if (listener.has_list(section)) continue;
      return error(Code::kInvalid,
                   "{}: not COCO instances: there is no list `{}`. A file of predictions, or of "
                   "another task?",
                   path_, section);
    }
    return {};
  }

  Result<Listing> listing(const std::string& images, const std::vector<std::string>& names) && {
    listing_.format = Format::kCoco;
    FERRY_CHECK_OK(number_categories(names));
    for (Annotation& annotation : annotations_) place(annotation);
    const fs::path folder = pictures_folder(path_, images, listing_.entries);
    for (Entry& entry : listing_.entries)
      entry.picture = (folder / entry.picture).lexically_normal().string();
    return std::move(listing_);
  }

 private:
  struct Annotation {
    int64_t id = -1, image_id = -1, category_id = -1;
    std::string fault;  // why it is none
    Label label;        // in pixels
  };

  void take_category(Element& category) {
    const int64_t id = id_of(category.id);
    if (id < 0) {
      failure_ = error(Code::kInvalid, "{}: a category without an id", path_);
      return;
    }
    std::string& name = category.name;
    categories_.emplace_back(id, name.empty() ? fmt::format("{}", id) : std::move(name));
  }

  void take_image(Element& image) {
    const int64_t id = id_of(image.id);
    if (image.file_name.empty() || id < 0) {
      failure_ = error(Code::kInvalid, "{}: an image without `file_name` or `id`", path_);
    } else if (!places_.emplace(id, listing_.entries.size()).second) {
      failure_ = error(Code::kInvalid, "{}: two images have the id {}", path_, id);
    }
    if (failure_) return;
    Entry& entry =
        listing_.entries.emplace_back(Entry{.picture = std::move(image.file_name), .image_id = id});
    entry.labels.has_file = true;
    const double width = image.width.value_or(0), height = image.height.value_or(0);
    if (!(width >= 1 && height >= 1 && width <= kMaxSide && height <= kMaxSide)) return;
    entry.said_width = static_cast<int64_t>(width);
    entry.said_height = static_cast<int64_t>(height);
  }

  void take_annotation(Element& given) {
    Annotation& annotation = annotations_.emplace_back();
    annotation.id = id_of(given.id);
    annotation.image_id = id_of(given.image_id);
    annotation.category_id = id_of(given.category_id);
    const auto is_finite = [](double value) { return std::isfinite(value); };
    if (!given.is_object) {
      annotation.fault = "it is no object";
    } else if (given.numbers > kMaxNumbers) {
      annotation.fault = fmt::format("its outlines hold more than {} numbers", kMaxNumbers);
    } else if (given.bbox.size() != 4 || !given.bbox_is_numbers) {
      annotation.fault = "`bbox` is not [x, y, width, height]";
    } else if (!std::ranges::all_of(given.bbox, is_finite)) {
      annotation.fault = "`bbox` holds what is no finite number";
    }
    if (!annotation.fault.empty()) return;
    const std::vector<double>& b = given.bbox;
    annotation.label = {.x = b[0] + b[2] / 2, .y = b[1] + b[3] / 2, .width = b[2], .height = b[3]};
    annotation.label.crowd = given.iscrowd.value_or(0) != 0;
    annotation.label.area = std::max(given.area.value_or(0), 0.0);
    annotation.label.difficult = given.difficult.value_or(0) != 0;
    annotation.label.truncated = given.truncated.value_or(0) != 0;
    // Polygons; run-length masks (crowds) are not kept.
    for (std::vector<double>& outline : given.outlines) {
      if (outline.size() >= 6 && outline.size() % 2 == 0 && std::ranges::all_of(outline, is_finite))
        annotation.label.polygons.push_back(std::move(outline));
    }
  }

  // Classes in the order of the ids, or as `names` has them.
  Status number_categories(const std::vector<std::string>& names) {
    std::ranges::stable_sort(categories_);
    for (size_t i = 1; i < categories_.size(); ++i) {
      if (categories_[i].first == categories_[i - 1].first) {
        return error(Code::kInvalid, "{}: two categories have the id {}", path_,
                     categories_[i].first);
      }
    }
    listing_.names = names;
    if (names.empty())
      for (const auto& category : categories_) listing_.names.push_back(category.second);
    listing_.category_ids.assign(listing_.names.size(), -1);
    for (size_t i = 0; i < categories_.size(); ++i) {
      const auto& [id, name] = categories_[i];
      const auto found = std::ranges::find(names, name);
      if (!names.empty() && found == names.end()) continue;
      const size_t index = names.empty() ? i : static_cast<size_t>(found - names.begin());
      listing_.category_ids[index] = id;
      classes_.emplace(id, static_cast<int32_t>(index));
    }
    // A class without a category gets an id that is free.
    int64_t free = categories_.empty() ? 0 : categories_.back().first + 1;
    for (int64_t& id : listing_.category_ids)
      if (id < 0) id = free++;
    return {};
  }

  void place(Annotation& annotation) {
    const std::string where = fmt::format("{}: annotation {}", path_, annotation.id);
    const auto found = places_.find(annotation.image_id);
    if (found == places_.end()) {
      listing_.problems.push_back({Trouble::kOrphanLabel, where, "its `image_id` is no image's"});
      return;
    }
    Entry& entry = listing_.entries[found->second];
    std::optional<Problem> problem;
    const auto known = classes_.find(annotation.category_id);
    if (!annotation.fault.empty()) {
      problem = {Trouble::kBadRow, {}, std::move(annotation.fault)};
    } else if (known == classes_.end()) {
      problem = {Trouble::kBadRow,
                 {},
                 fmt::format("its category {} is not among the classes", annotation.category_id)};
    } else if (entry.said_width > 0) {
      problem = judge_pixel_box(annotation.label, entry.said_width, entry.said_height);
    }
    if (problem) {
      problem->where = where;
      entry.labels.problems.push_back(*std::move(problem));
      return;
    }
    annotation.label.class_id = known->second;
    entry.labels.labels.push_back(std::move(annotation.label));
  }

  std::string path_;
  std::optional<Error> failure_;
  // What it found.
  std::vector<std::pair<int64_t, std::string>> categories_;
  std::vector<Annotation> annotations_;
  std::unordered_map<int64_t, int32_t> classes_;
  std::unordered_map<int64_t, size_t> places_;
  Listing listing_;
};

}  // namespace

std::string find_coco(const std::string& folder, const std::string& split) {
  const fs::path root(folder);
  const std::string prefix = "instances_" + split;
  std::error_code failure;
  for (const fs::path& place : {root / "annotations", root}) {
    for (const std::string& name : {prefix + ".json", split + ".json"})
      if (fs::is_regular_file(place / name, failure)) return (place / name).string();
    for (const fs::directory_entry& file : files_in(place)) {
      const std::string name = file.path().filename().string();
      if (name.starts_with(prefix) && has_suffix(name, ".json")) return file.path().string();
    }
  }
  // As Roboflow exports it.
  for (const std::string& place : {split, std::string(split == "val" ? "valid" : split)}) {
    const fs::path path = root / place / "_annotations.coco.json";
    if (fs::is_regular_file(path, failure)) return path.string();
  }
  return {};
}

Result<Listing> parse_coco(std::string_view json, const std::string& path,
                           const std::string& images, const std::vector<std::string>& names) {
  Reader reader(path);
  FERRY_CHECK_OK(reader.parse(json));
  return std::move(reader).listing(images, names);
}

Result<Listing> list_coco(const std::string& path, const std::string& images,
                          const std::vector<std::string>& names) {
  FERRY_TRY(file, MappedFile::open(path));
  const std::span<const std::byte> bytes = file->bytes();
  return parse_coco({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path, images,
                    names);
}

}  // namespace ferry::data

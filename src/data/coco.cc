// COCO's instances json: images, annotations, categories (cocodataset.org, "data format").
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "data/labels.h"

namespace ferry::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kMaxJsonBytes = int64_t{2} << 30;

// The value of `key` as a finite number, else `fallback`.
double number_or(const json& object, const char* key, double fallback) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return fallback;
  const double value = found->get<double>();
  return std::isfinite(value) ? value : fallback;
}

int64_t whole_or(const json& object, const char* key, int64_t fallback) {
  const double value = number_or(object, key, static_cast<double>(fallback));
  return std::abs(value) < 9e15 ? static_cast<int64_t>(value) : fallback;
}

std::string text_or(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The folder in which the first picture is found.
fs::path pictures_folder(const fs::path& json_path, const std::string& images,
                         const std::string& first_picture) {
  const fs::path here = json_path.parent_path();
  std::vector<fs::path> candidates;
  if (!images.empty()) return images;
  candidates = {here / "images", here, here / ".." / "images", here / ".."};
  // annotations/instances_val2017.json -> val2017/
  const std::string stem = json_path.stem().string();
  if (const size_t cut = stem.rfind('_'); cut != stem.npos) {
    for (const fs::path& base : {here, here / "..", here / ".." / "images"})
      candidates.push_back(base / stem.substr(cut + 1));
  }
  for (const fs::path& candidate : candidates) {
    std::error_code failure;
    if (fs::exists(candidate / first_picture, failure)) return candidate.lexically_normal();
  }
  return candidates.front().lexically_normal();
}

class Reader {
 public:
  Reader(const json& root, std::string path) : root_(root), path_(std::move(path)) {}

  Result<Listing> read(const std::string& images) {
    for (const char* key : {"images", "annotations", "categories"}) {
      if (!root_.is_object() || !root_.contains(key) || !root_[key].is_array()) {
        return error(Code::kInvalid,
                     "{}: not COCO instances: there is no list `{}`. A file of predictions, or of "
                     "another task?",
                     path_, key);
      }
    }
    listing_.format = Format::kCoco;
    FERRY_CHECK_OK(read_categories());
    FERRY_CHECK_OK(read_images(images));
    for (const json& annotation : root_["annotations"]) read_annotation(annotation);
    return std::move(listing_);
  }

 private:
  Status read_categories() {
    std::vector<std::pair<int64_t, std::string>> categories;
    for (const json& category : root_["categories"]) {
      const int64_t id = category.is_object() ? whole_or(category, "id", -1) : -1;
      if (id < 0) return error(Code::kInvalid, "{}: a category without an id", path_);
      categories.emplace_back(id, text_or(category, "name"));
    }
    std::ranges::sort(categories);
    for (auto& [id, name] : categories) {
      if (!classes_.emplace(id, static_cast<int32_t>(listing_.names.size())).second)
        return error(Code::kInvalid, "{}: two categories have the id {}", path_, id);
      listing_.names.push_back(name.empty() ? fmt::format("{}", id) : std::move(name));
      listing_.category_ids.push_back(id);
    }
    return {};
  }

  Status read_images(const std::string& images) {
    const json& list = root_["images"];
    const std::string first = list.empty() ? "" : text_or(list[0], "file_name");
    const fs::path folder = pictures_folder(path_, images, first);
    for (const json& image : list) {
      const std::string name = image.is_object() ? text_or(image, "file_name") : "";
      const int64_t id = image.is_object() ? whole_or(image, "id", -1) : -1;
      if (name.empty() || id < 0)
        return error(Code::kInvalid, "{}: an image without `file_name` or `id`", path_);
      if (!places_.emplace(id, listing_.entries.size()).second)
        return error(Code::kInvalid, "{}: two images have the id {}", path_, id);
      Entry& entry = listing_.entries.emplace_back(
          Entry{.picture = (folder / name).lexically_normal().string(), .image_id = id});
      entry.said_width = std::max<int64_t>(whole_or(image, "width", 0), 0);
      entry.said_height = std::max<int64_t>(whole_or(image, "height", 0), 0);
      entry.labels.has_file = true;
      if (entry.said_width == 0 || entry.said_height == 0)
        return error(Code::kInvalid, "{}: image {} has no `width` and `height`", path_, id);
    }
    return {};
  }

  void read_annotation(const json& annotation) {
    const int64_t id = annotation.is_object() ? whole_or(annotation, "id", -1) : -1;
    const std::string where = fmt::format("{}: annotation {}", path_, id);
    const auto place =
        places_.find(annotation.is_object() ? whole_or(annotation, "image_id", -1) : -1);
    if (place == places_.end()) {
      listing_.problems.push_back({Trouble::kOrphanLabel, where, "its `image_id` is no image's"});
      return;
    }
    Entry& entry = listing_.entries[place->second];
    const auto leave_out = [&](Trouble trouble, std::string why) {
      entry.labels.problems.push_back({trouble, where, std::move(why)});
    };
    const auto known = classes_.find(whole_or(annotation, "category_id", -1));
    if (known == classes_.end()) return leave_out(Trouble::kBadRow, "its `category_id` is unknown");
    const auto box = annotation.find("bbox");
    if (box == annotation.end() || !box->is_array() || box->size() != 4)
      return leave_out(Trouble::kBadRow, "`bbox` is not [x, y, width, height]");
    double v[4];
    for (size_t i = 0; i < 4; ++i) {
      const json& value = (*box)[i];
      if (!value.is_number() || !std::isfinite(value.get<double>()))
        return leave_out(Trouble::kBadRow, "`bbox` holds what is no finite number");
      v[i] = value.get<double>();
    }
    const auto width = static_cast<double>(entry.said_width);
    const auto height = static_cast<double>(entry.said_height);
    if (v[2] <= 0 || v[3] <= 0) return leave_out(Trouble::kZeroArea, "the box has no area");
    if (v[0] < -1 || v[1] < -1 || v[0] + v[2] > width + 1 || v[1] + v[3] > height + 1) {
      return leave_out(Trouble::kBadRow,
                       fmt::format("the box {:.1f} {:.1f} {:.1f} {:.1f} leaves the picture of {} x "
                                   "{}",
                                   v[0], v[1], v[2], v[3], entry.said_width, entry.said_height));
    }
    Label label{.class_id = known->second,
                .x = (v[0] + v[2] / 2) / width,
                .y = (v[1] + v[3] / 2) / height,
                .width = v[2] / width,
                .height = v[3] / height,
                .crowd = whole_or(annotation, "iscrowd", 0) != 0,
                .area = std::max(number_or(annotation, "area", 0), 0.0)};
    read_outlines(annotation, width, height, label);
    entry.labels.labels.push_back(std::move(label));
  }

  // Polygons; run-length masks (crowds) are not kept.
  static void read_outlines(const json& annotation, double width, double height, Label& label) {
    const auto outlines = annotation.find("segmentation");
    if (outlines == annotation.end() || !outlines->is_array()) return;
    for (const json& outline : *outlines) {
      if (!outline.is_array() || outline.size() < 6 || outline.size() % 2 != 0) continue;
      std::vector<double> polygon;
      for (size_t i = 0; i < outline.size(); ++i) {
        if (!outline[i].is_number()) return;
        polygon.push_back(outline[i].get<double>() / (i % 2 == 0 ? width : height));
      }
      label.polygons.push_back(std::move(polygon));
    }
  }

  const json& root_;
  std::string path_;
  Listing listing_;
  std::unordered_map<int64_t, int32_t> classes_;
  std::unordered_map<int64_t, size_t> places_;
};

}  // namespace

Result<Listing> list_coco(const std::string& path, const std::string& images) {
  FERRY_TRY(text, read_text(path, kMaxJsonBytes));
  const json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  text = {};
  if (root.is_discarded()) return error(Code::kInvalid, "{}: not a json", path);
  return Reader(root, path).read(images);
}

}  // namespace ferry::data

#include "data/write.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <set>
#include <sstream>
#include <tuple>

#include "base/mapped_file.h"

namespace ferry::data {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr double kSameBox = 0.5;  // pixels that an outline's hull may differ from its box

// A pixel coordinate: to two places when it differs from that by arithmetic only.
double pixels(double value) {
  const double hundredth = std::round(value * 100) / 100;
  return std::abs(hundredth - value) < 1e-8 ? hundredth : value;
}

// A part of the picture: the fewest digits that differ from it by arithmetic only.
std::string part(double value) {
  if (std::string text = fmt::format("{}", value); text.size() <= 12) return text;
  for (int digits = 1; digits < 17; ++digits) {
    std::string text = fmt::format("{:.{}g}", value, digits);
    if (std::abs(std::strtod(text.c_str(), nullptr) - value) <= 2e-15) return text;
  }
  return fmt::format("{}", value);
}

Status make_folders(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) return error(Code::kIo, "cannot make {}: {}", folder.string(), failure.message());
  return {};
}

Status place_picture(const fs::path& from, const fs::path& to, Place how) {
  std::error_code failure;
  const fs::path original = fs::canonical(from, failure);
  if (failure) return error(Code::kIo, "{}: {}", from.string(), failure.message());
  // A link may have led back to the original: it stays.
  if (!fs::is_symlink(to, failure) && fs::canonical(to, failure) == original) return {};
  fs::remove(to, failure);
  if (how == Place::kSymlink) {
    fs::create_symlink(original, to, failure);
  } else {
    if (how == Place::kLink) fs::create_hard_link(original, to, failure);
    // Another file system, or one without links.
    if (how == Place::kCopy || failure) {
      return write_file_with(to.string(), [&](const std::string& temporary) -> Status {
        std::error_code why;
        fs::copy_file(original, temporary, fs::copy_options::overwrite_existing, why);
        if (why) return error(Code::kIo, "cannot copy {}: {}", from.string(), why.message());
        return {};
      });
    }
  }
  if (failure) return error(Code::kIo, "cannot place {}: {}", to.string(), failure.message());
  return {};
}

// One of thousands: whole or not at all, but on the disk only after `settle`.
Status write_label(const fs::path& path, const std::string& text) {
  const std::string temporary = path.parent_path() / ".ferry-label";
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  bool good = file != nullptr;
  if (good) {
    good = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    good = std::fclose(file) == 0 && good;
  }
  std::error_code failure;
  if (good) fs::rename(temporary, path, failure);
  if (good && !failure) return {};
  const std::string why = failure ? failure.message() : std::strerror(errno);
  fs::remove(temporary, failure);
  return error(Code::kIo, "cannot write {}: {}", path.string(), why);
}

// Brings to the disk what has been written to the file system of `folder`.
void settle(const fs::path& folder) {
  const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return;
  ::syncfs(opened);
  ::close(opened);
}

// Names of files, each given once: of two pictures a/1.jpg and b/1.jpg the second is 1_2.jpg.
class FileNames {
 public:
  std::string take(const std::string& path, int64_t& renamed) {
    const fs::path name = fs::path(path).filename();
    std::string stem = name.stem().string();
    for (int number = 2; !taken_.insert(stem).second; ++number)
      stem = fmt::format("{}_{}", name.stem().string(), number);
    renamed += stem != name.stem().string();
    return stem + name.extension().string();
  }

 private:
  std::set<std::string> taken_;
};

// The one outline that says all that the box says, or null.
const std::vector<double>* outline_of(const Label& label, const Sample& sample) {
  if (label.polygons.size() != 1) return nullptr;
  const std::vector<double>& polygon = label.polygons[0];
  double low[2] = {1e9, 1e9}, high[2] = {-1e9, -1e9};
  for (size_t i = 0; i < polygon.size(); ++i) {
    low[i % 2] = std::min(low[i % 2], polygon[i]);
    high[i % 2] = std::max(high[i % 2], polygon[i]);
  }
  const double center[2] = {label.x, label.y}, size[2] = {label.width, label.height};
  const double side[2] = {static_cast<double>(sample.width), static_cast<double>(sample.height)};
  for (int axis = 0; axis < 2; ++axis) {
    if (low[axis] < 0 || high[axis] > 1) return nullptr;
    const double begin = center[axis] - size[axis] / 2, end = center[axis] + size[axis] / 2;
    if (std::abs(low[axis] - begin) * side[axis] > kSameBox) return nullptr;
    if (std::abs(high[axis] - end) * side[axis] > kSameBox) return nullptr;
  }
  return &polygon;
}

class Writer {
 public:
  Writer(const WriteOptions& options, const std::function<bool()>& keep_going)
      : options_(options), folder_(options.folder), keep_going_(keep_going) {}

  Result<Written> write(std::span<const SplitView> splits) {
    switch (options_.format) {
      case Format::kYolo:
        FERRY_CHECK_OK(write_yolo(splits));
        break;
      case Format::kCoco:
        FERRY_CHECK_OK(write_coco(splits));
        break;
      case Format::kVoc:
        FERRY_CHECK_OK(write_voc(splits));
        break;
    }
    return written_;
  }

 private:
  // Places the picture; gives its file name.
  Result<std::string> place(const Sample& sample, const fs::path& folder, FileNames& names) {
    if (keep_going_ && !keep_going_()) return error(Code::kCancelled, "interrupted");
    const std::string name = names.take(sample.path, written_.renamed);
    FERRY_CHECK_OK(place_picture(sample.path, folder / name, options_.pictures));
    ++written_.pictures;
    return name;
  }

  static std::string stem_of(const std::string& name) { return fs::path(name).stem().string(); }

  Status write_yolo(std::span<const SplitView> splits) {
    std::string yaml = "# made by `ferry dataset convert`\npath: .\n";
    for (const SplitView& view : splits) {
      const fs::path images = folder_ / "images" / view.split,
                     labels = folder_ / "labels" / view.split;
      FERRY_CHECK_OK(make_folders(images));
      FERRY_CHECK_OK(make_folders(labels));
      yaml += fmt::format("{}: images/{}\n", view.split, view.split);
      FileNames names;
      for (const Sample& sample : view.dataset->samples) {
        FERRY_TRY(name, place(sample, images, names));
        FERRY_CHECK_OK(write_label(labels / (stem_of(name) + ".txt"), yolo_rows(sample)));
      }
    }
    settle(folder_);
    const std::vector<std::string>& classes = splits[0].dataset->names;
    yaml += fmt::format("nc: {}\nnames:\n", classes.size());
    // JSON's strings are YAML's, whatever characters a name has.
    for (size_t i = 0; i < classes.size(); ++i)
      yaml += fmt::format("  {}: {}\n", i, quoted(classes[i]));
    return write_file((folder_ / "data.yaml").string(), yaml);
  }

  static std::string quoted(const std::string& text) {
    return ordered_json(text).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  }

  std::string yolo_rows(const Sample& sample) {
    std::string rows;
    std::set<std::tuple<int32_t, double, double, double, double>> seen;
    for (const Label& label : sample.labels) {
      if (label.crowd) {
        ++written_.crowds_lost;
        continue;
      }
      ++written_.boxes;
      written_.difficult_lost += label.difficult || label.truncated;
      written_.doubled +=
          !seen.insert({label.class_id, label.x, label.y, label.width, label.height}).second;
      rows += fmt::format("{}", label.class_id);
      if (const std::vector<double>* polygon = outline_of(label, sample)) {
        for (const double value : *polygon) rows += ' ' + part(value);
      } else {
        written_.outlines_lost += !label.polygons.empty();
        for (const double value : {label.x, label.y, label.width, label.height})
          rows += ' ' + part(value);
      }
      rows += '\n';
    }
    return rows;
  }

  Status write_coco(std::span<const SplitView> splits) {
    FERRY_CHECK_OK(make_folders(folder_ / "annotations"));
    int64_t annotation_id = 0;
    for (const SplitView& view : splits) {
      const Dataset& dataset = *view.dataset;
      const fs::path images = folder_ / "images" / view.split;
      FERRY_CHECK_OK(make_folders(images));
      // COCO counts from 1; ids that came from COCO stay.
      const auto category = [&](size_t id) {
        return dataset.format == Format::kCoco ? dataset.category_ids[id]
                                               : static_cast<int64_t>(id) + 1;
      };
      ordered_json all = {{"info", {{"description", "made by ferry dataset convert"}}},
                          {"images", ordered_json::array()},
                          {"annotations", ordered_json::array()},
                          {"categories", ordered_json::array()}};
      for (size_t i = 0; i < dataset.names.size(); ++i)
        all["categories"].push_back({{"id", category(i)}, {"name", dataset.names[i]}});
      FileNames names;
      for (const Sample& sample : dataset.samples) {
        FERRY_TRY(name, place(sample, images, names));
        all["images"].push_back({{"id", sample.image_id},
                                 {"file_name", name},
                                 {"width", sample.width},
                                 {"height", sample.height}});
        for (const Label& label : sample.labels) {
          all["annotations"].push_back(coco_annotation(
              label, sample, ++annotation_id, category(static_cast<size_t>(label.class_id))));
        }
      }
      const fs::path path = folder_ / "annotations" / fmt::format("instances_{}.json", view.split);
      FERRY_CHECK_OK(write_file(
          path.string(), all.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n"));
    }
    return {};
  }

  ordered_json coco_annotation(const Label& label, const Sample& sample, int64_t id,
                               int64_t category) {
    const auto w = static_cast<double>(sample.width), h = static_cast<double>(sample.height);
    ++written_.boxes;
    ordered_json segmentation = ordered_json::array();
    for (const std::vector<double>& polygon : label.polygons) {
      ordered_json points = ordered_json::array();
      for (size_t i = 0; i < polygon.size(); ++i)
        points.push_back(pixels(polygon[i] * (i % 2 == 0 ? w : h)));
      segmentation.push_back(std::move(points));
    }
    const double width = label.width * w, height = label.height * h;
    ordered_json annotation = {{"id", id},
                               {"image_id", sample.image_id},
                               {"category_id", category},
                               {"bbox",
                                {pixels(label.x * w - width / 2), pixels(label.y * h - height / 2),
                                 pixels(width), pixels(height)}},
                               {"area", label.area > 0 ? label.area : pixels(width * height)},
                               {"iscrowd", label.crowd ? 1 : 0},
                               {"segmentation", std::move(segmentation)}};
    if (label.difficult) annotation["difficult"] = 1;
    if (label.truncated) annotation["truncated"] = 1;
    return annotation;
  }

  Status write_voc(std::span<const SplitView> splits) {
    for (const char* sub : {"Annotations", "JPEGImages", "ImageSets/Main"})
      FERRY_CHECK_OK(make_folders(folder_ / sub));
    const std::vector<std::string>& classes = splits[0].dataset->names;
    std::string list;
    for (const std::string& name : classes) {
      // What XML trims or a list of names cannot hold.
      const bool trimmed = name.empty() || std::isspace(static_cast<unsigned char>(name.front())) ||
                           std::isspace(static_cast<unsigned char>(name.back()));
      if (trimmed || std::ranges::any_of(name, [](char c) { return c >= 0 && c < 0x20; }))
        return error(Code::kInvalid, "VOC cannot hold the class name {}", quoted(name));
      list += name + "\n";
    }
    FERRY_CHECK_OK(write_file((folder_ / "classes.txt").string(), list));
    FileNames names;
    for (const SplitView& view : splits) {
      std::string members;
      for (const Sample& sample : view.dataset->samples) {
        FERRY_TRY(name, place(sample, folder_ / "JPEGImages", names));
        const std::string stem = stem_of(name);
        members += stem + "\n";
        FERRY_CHECK_OK(
            write_label(folder_ / "Annotations" / (stem + ".xml"), voc_xml(sample, name, classes)));
      }
      settle(folder_);
      FERRY_CHECK_OK(write_file(
          (folder_ / "ImageSets/Main" / fmt::format("{}.txt", view.split)).string(), members));
    }
    return {};
  }

  std::string voc_xml(const Sample& sample, const std::string& name,
                      const std::vector<std::string>& classes) {
    pugi::xml_document document;
    pugi::xml_node root = document.append_child("annotation");
    const auto add = [](pugi::xml_node node, const char* tag, const std::string& text) {
      node.append_child(tag).text().set(text.c_str());
    };
    add(root, "folder", "JPEGImages");
    add(root, "filename", name);
    pugi::xml_node size = root.append_child("size");
    add(size, "width", fmt::format("{}", sample.width));
    add(size, "height", fmt::format("{}", sample.height));
    add(size, "depth", "3");
    const auto w = static_cast<double>(sample.width), h = static_cast<double>(sample.height);
    for (const Label& label : sample.labels) {
      if (label.crowd) {
        ++written_.crowds_lost;
        continue;
      }
      ++written_.boxes;
      written_.outlines_lost += !label.polygons.empty();
      pugi::xml_node object = root.append_child("object");
      add(object, "name", classes[static_cast<size_t>(label.class_id)]);
      add(object, "pose", "Unspecified");
      add(object, "truncated", label.truncated ? "1" : "0");
      add(object, "difficult", label.difficult ? "1" : "0");
      pugi::xml_node box = object.append_child("bndbox");
      const auto edge = [](double center, double length, double side, int sign) {
        return fmt::format("{}", pixels((center + sign * length / 2) * side));
      };
      add(box, "xmin", edge(label.x, label.width, w, -1));
      add(box, "ymin", edge(label.y, label.height, h, -1));
      add(box, "xmax", edge(label.x, label.width, w, 1));
      add(box, "ymax", edge(label.y, label.height, h, 1));
    }
    std::ostringstream text;
    document.save(text, "  ", pugi::format_default | pugi::format_no_declaration);
    return std::move(text).str();
  }

  const WriteOptions& options_;
  fs::path folder_;
  const std::function<bool()>& keep_going_;
  Written written_;
};

}  // namespace

Result<Written> write_dataset(std::span<const SplitView> splits, const WriteOptions& options,
                              const std::function<bool()>& keep_going) {
  std::error_code failure;
  const fs::path folder = fs::canonical(options.folder, failure);
  if (failure) return error(Code::kIo, "{}: {}", options.folder, failure.message());
  for (const SplitView& view : splits) {
    for (const Sample& sample : view.dataset->samples) {
      const fs::path picture = fs::canonical(sample.path, failure);
      if (std::ranges::mismatch(folder, picture).in1 != folder.end()) continue;
      return error(Code::kInvalid, "{} is the dataset itself: its pictures are there, {} is one",
                   options.folder, sample.path);
    }
  }
  return Writer(options, keep_going).write(splits);
}

}  // namespace ferry::data

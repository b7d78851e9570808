// Pascal VOC: Annotations/*.xml, JPEGImages/, ImageSets/Main/<split>.txt. Boxes are taken as plain
// pixel coordinates, xmin and ymin included, xmax and ymax not, as labelling tools write them
// today. (The 2012 development kit counts from 1 and includes both ends.)
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <pugixml.hpp>
#include <set>

#include "data/labels.h"
#include "vision/sources.h"

namespace ferry::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxXmlBytes = int64_t{16} << 20;
constexpr int64_t kMaxListBytes = int64_t{64} << 20;
constexpr double kMaxSide = 1e6;

// Entities other than XML's five stay as they are written; no document type is followed.
constexpr unsigned kParse = pugi::parse_default;

std::vector<fs::path> annotations_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& file : files_in(folder / "Annotations"))
    if (has_suffix(file.path(), ".xml")) files.push_back(file.path());
  return files;
}

// The text of a node without blanks around it.
std::string_view trimmed(const pugi::xml_node& node) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::string_view text = node.text().get();
  const size_t begin = std::min(text.find_first_not_of(kBlank), text.size());
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

std::optional<double> number_in(const pugi::xml_node& node) {
  const std::string_view text = trimmed(node);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [at, failure] = std::from_chars(text.data(), end, value);
  if (text.empty() || failure != std::errc() || at != end || !std::isfinite(value))
    return std::nullopt;
  return value;
}

// Names of annotations in ImageSets/Main/<split>.txt, or nothing when there is no such file. A line
// is `name`, or `name flag` with -1 for pictures that do not count.
std::optional<std::vector<std::string>> split_names(const fs::path& folder,
                                                    const std::string& split) {
  const fs::path path = folder / "ImageSets" / "Main" / (split + ".txt");
  std::error_code failure;
  if (!fs::exists(path, failure)) return std::nullopt;
  std::vector<std::string> names;
  auto text = read_text(path.string(), kMaxListBytes);
  if (!text.ok()) return names;
  for (const std::string_view line : lines_of(*text)) {
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == line.npos) continue;
    const size_t stop = std::min(line.find_first_of(" \t", begin), line.size());
    if (line.find("-1", stop) == line.npos) names.emplace_back(line.substr(begin, stop - begin));
  }
  return names;
}

// The picture of an annotation: by the annotation's name, then by the name written in it.
std::string picture_of(const fs::path& folder, const std::string& stem, const std::string& said) {
  const std::string said_stem = fs::path(said).stem().string();
  for (const std::string& name : {stem, said_stem}) {
    if (name.empty()) continue;
    for (const char* images : {"JPEGImages", "images", "Annotations"}) {
      for (const char* suffix :
           {".jpg", ".jpeg", ".png", ".JPG", ".JPEG", ".PNG", ".bmp", ".webp"}) {
        const fs::path candidate = folder / images / (name + suffix);
        std::error_code failure;
        if (fs::exists(candidate, failure)) return candidate.string();
      }
    }
  }
  return (folder / "JPEGImages" / (stem + ".jpg")).string();
}

}  // namespace

std::vector<std::string> voc_names_in(std::string_view xml) {
  pugi::xml_document document;
  if (!document.load_buffer(xml.data(), xml.size(), kParse)) return {};
  std::vector<std::string> names;
  for (const pugi::xml_node& object : document.child("annotation").children("object")) {
    names.emplace_back(trimmed(object.child("name")));
  }
  return names;
}

std::string read_voc_xml(std::string_view xml, std::string_view where,
                         const std::vector<std::string>& names, Entry& entry) {
  Labels& labels = entry.labels;
  labels.has_file = true;
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(xml.data(), xml.size(), kParse);
  const pugi::xml_node root = document.child("annotation");
  if (!parsed || !root) {
    labels.problems.push_back({Trouble::kBadLabelFile, std::string(where),
                               parsed ? "there is no <annotation>" : parsed.description()});
    return {};
  }
  const auto width = number_in(root.child("size").child("width")).value_or(0);
  const auto height = number_in(root.child("size").child("height")).value_or(0);
  if (width >= 1 && height >= 1 && width <= kMaxSide && height <= kMaxSide) {
    entry.said_width = static_cast<int64_t>(width);
    entry.said_height = static_cast<int64_t>(height);
  }
  int64_t count = 0;
  for (const pugi::xml_node& object : root.children("object")) {
    ++count;
    const auto leave_out = [&](Trouble trouble, std::string why) {
      labels.problems.push_back(
          {trouble, fmt::format("{}: object {}", where, count), std::move(why)});
    };
    const std::string_view name = trimmed(object.child("name"));
    const auto known = std::ranges::find(names, name);
    if (known == names.end()) {
      leave_out(Trouble::kBadRow, fmt::format("class '{}' is not among the classes", name));
      continue;
    }
    const pugi::xml_node box = object.child("bndbox");
    const auto x1 = number_in(box.child("xmin")), y1 = number_in(box.child("ymin"));
    const auto x2 = number_in(box.child("xmax")), y2 = number_in(box.child("ymax"));
    if (!x1 || !y1 || !x2 || !y2) {
      leave_out(Trouble::kBadRow, "<bndbox> does not hold four finite numbers");
      continue;
    }
    if (*x2 < *x1 || *y2 < *y1) {
      leave_out(Trouble::kBadRow, "xmax is below xmin, or ymax below ymin");
      continue;
    }
    Label label{.class_id = static_cast<int32_t>(known - names.begin()),
                .x = (*x1 + *x2) / 2,
                .y = (*y1 + *y2) / 2,
                .width = *x2 - *x1,
                .height = *y2 - *y1};
    label.difficult = object.child("difficult").text().as_int() != 0;
    label.truncated = object.child("truncated").text().as_int() != 0;
    if (entry.said_width > 0) {
      if (auto problem = judge_pixel_box(label, entry.said_width, entry.said_height)) {
        leave_out(problem->trouble, std::move(problem->message));
        continue;
      }
    }
    labels.labels.push_back(std::move(label));
  }
  return std::string(trimmed(root.child("filename")));
}

namespace {

// The classes when nobody named them: of all annotations, so that every split numbers them alike.
std::vector<std::string> find_names(const std::string& folder,
                                    const std::vector<fs::path>& annotations) {
  if (auto text = read_text((fs::path(folder) / "classes.txt").string(), kMaxListBytes);
      text.ok()) {
    const std::vector<std::string_view> lines = lines_of(*text);
    if (!lines.empty()) return {lines.begin(), lines.end()};
  }
  std::set<std::string> found;
  for (const fs::path& file : annotations) {
    auto text = read_text(file.string(), kMaxXmlBytes);
    if (!text.ok()) continue;
    for (std::string& name : voc_names_in(*text)) {
      if (!name.empty()) found.insert(std::move(name));
    }
  }
  return {found.begin(), found.end()};
}

// Stems of what JPEGImages/ holds.
std::set<std::string> pictures_of(const std::string& folder) {
  std::set<std::string> stems;
  for (const fs::directory_entry& file : files_in(fs::path(folder) / "JPEGImages"))
    if (vision::has_picture_suffix(file.path().native())) stems.insert(file.path().stem());
  return stems;
}

}  // namespace

Result<Listing> list_voc(const std::string& folder, const std::string& split,
                         const std::vector<std::string>& names) {
  Listing listing{.format = Format::kVoc, .names = names};
  const std::vector<fs::path> files = annotations_of(folder);
  if (files.empty()) return error(Code::kNotFound, "{}/Annotations holds no .xml", folder);
  const auto wanted = split_names(folder, split);
  if (!wanted && !voc_splits(folder).empty())
    return error(Code::kNotFound, "{}: there is no ImageSets/Main/{}.txt", folder, split);
  if (listing.names.empty()) listing.names = find_names(folder, files);
  // Those that have no annotation are left over.
  std::set<std::string> chosen =
      wanted ? std::set<std::string>(wanted->begin(), wanted->end()) : pictures_of(folder);
  for (const fs::path& file : files) {
    const std::string stem = file.stem().string();
    if (chosen.erase(stem) == 0 && wanted) continue;
    Entry entry;
    std::string said;
    auto text = read_text(file.string(), kMaxXmlBytes);
    if (text.ok()) {
      said = read_voc_xml(*text, file.string(), listing.names, entry);
    } else {
      entry.labels.has_file = true;
      entry.labels.problems.push_back(
          {Trouble::kBadLabelFile, file.string(), text.error().message});
    }
    entry.picture = picture_of(folder, stem, said);
    if (!wanted) chosen.erase(fs::path(entry.picture).stem());
    listing.entries.push_back(std::move(entry));
  }
  for (const std::string& name : chosen)
    listing.entries.push_back({.picture = picture_of(folder, name, "")});
  return listing;
}

std::vector<std::string> voc_splits(const std::string& folder) {
  std::vector<std::string> splits;
  for (const char* split : {"train", "val", "test"}) {
    std::error_code failure;
    if (fs::exists(fs::path(folder) / "ImageSets" / "Main" / fmt::format("{}.txt", split), failure))
      splits.emplace_back(split);
  }
  return splits;
}

}  // namespace ferry::data

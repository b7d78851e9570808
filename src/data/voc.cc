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

namespace ferry::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxXmlBytes = int64_t{16} << 20;
constexpr int64_t kMaxListBytes = int64_t{64} << 20;

// Entities other than XML's five stay as they are written; no document type is followed.
constexpr unsigned kParse = pugi::parse_default;

std::optional<double> number_in(const pugi::xml_node& node) {
  std::string_view text = node.text().get();
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [at, failure] = std::from_chars(text.data(), end, value);
  if (text.empty() || failure != std::errc() || at != end || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::vector<fs::path> annotations_of(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failure;
  for (const auto& file : fs::directory_iterator(folder / "Annotations", failure)) {
    if (file.path().extension() == ".xml") files.push_back(file.path());
  }
  std::ranges::sort(files);
  return files;
}

// The lines of a small text file that are not empty; none when there is no such file.
std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  auto text = read_text(path.string(), kMaxListBytes);
  if (!text.ok()) return lines;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) lines.emplace_back(line);
  }
  return lines;
}

// Names of annotations in ImageSets/Main/<split>.txt, or nothing when there is no such file. A line
// is `name`, or `name flag` with -1 for pictures that do not count.
std::optional<std::vector<std::string>> split_names(const fs::path& folder,
                                                    const std::string& split) {
  const fs::path path = folder / "ImageSets" / "Main" / (split + ".txt");
  std::error_code failure;
  if (!fs::exists(path, failure)) return std::nullopt;
  std::vector<std::string> names;
  for (const std::string& line : lines_of(path)) {
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == line.npos) continue;
    const size_t stop = std::min(line.find_first_of(" \t", begin), line.size());
    if (line.find("-1", stop) == line.npos) names.push_back(line.substr(begin, stop - begin));
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
    names.emplace_back(object.child("name").text().get());
  }
  return names;
}

Labels read_voc_xml(std::string_view xml, std::string_view where,
                    const std::vector<std::string>& names, Entry& entry) {
  Labels labels{.has_file = true};
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(xml.data(), xml.size(), kParse);
  const pugi::xml_node root = document.child("annotation");
  if (!parsed || !root) {
    labels.problems.push_back({Trouble::kBadLabelFile, std::string(where),
                               parsed ? "there is no <annotation>" : parsed.description()});
    return labels;
  }
  const auto width = number_in(root.child("size").child("width")).value_or(0);
  const auto height = number_in(root.child("size").child("height")).value_or(0);
  if (width < 1 || height < 1 || width > 1e6 || height > 1e6) {
    labels.problems.push_back(
        {Trouble::kBadLabelFile, std::string(where), "<size> does not give a width and a height"});
    return labels;
  }
  entry.said_width = static_cast<int64_t>(width);
  entry.said_height = static_cast<int64_t>(height);
  int64_t count = 0;
  for (const pugi::xml_node& object : root.children("object")) {
    ++count;
    const auto leave_out = [&](Trouble trouble, std::string why) {
      labels.problems.push_back(
          {trouble, fmt::format("{}: object {}", where, count), std::move(why)});
    };
    const std::string name = object.child("name").text().get();
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
    if (*x2 <= *x1 || *y2 <= *y1) {
      leave_out(*x2 < *x1 || *y2 < *y1 ? Trouble::kBadRow : Trouble::kZeroArea,
                "the box has no area");
      continue;
    }
    if (*x1 < -1 || *y1 < -1 || *x2 > width + 1 || *y2 > height + 1) {
      leave_out(Trouble::kBadRow, fmt::format("the box {} {} {} {} leaves the picture of {} x {}",
                                              *x1, *y1, *x2, *y2, width, height));
      continue;
    }
    Label label{.class_id = static_cast<int32_t>(known - names.begin()),
                .x = (*x1 + *x2) / 2 / width,
                .y = (*y1 + *y2) / 2 / height,
                .width = (*x2 - *x1) / width,
                .height = (*y2 - *y1) / height};
    label.difficult = object.child("difficult").text().as_int() != 0;
    label.truncated = object.child("truncated").text().as_int() != 0;
    labels.labels.push_back(std::move(label));
  }
  return labels;
}

Result<Listing> list_voc(const std::string& folder, const std::string& split,
                         const std::vector<std::string>& names) {
  Listing listing{.format = Format::kVoc, .names = names};
  const std::vector<fs::path> files = annotations_of(folder);
  if (files.empty()) return error(Code::kNotFound, "{}/Annotations holds no .xml", folder);
  const auto wanted = split_names(folder, split);
  const std::set<std::string> chosen =
      wanted ? std::set<std::string>(wanted->begin(), wanted->end()) : std::set<std::string>();
  if (!wanted && !voc_splits(folder).empty()) {
    return error(Code::kNotFound, "{}: there is no ImageSets/Main/{}.txt", folder, split);
  }
  if (listing.names.empty()) listing.names = lines_of(fs::path(folder) / "classes.txt");
  if (listing.names.empty()) {
    // All of the dataset's, so that every split numbers them alike.
    std::set<std::string> found;
    for (const fs::path& file : files) {
      auto text = read_text(file.string(), kMaxXmlBytes);
      if (!text.ok()) continue;
      for (std::string& name : voc_names_in(*text)) {
        if (!name.empty()) found.insert(std::move(name));
      }
    }
    listing.names.assign(found.begin(), found.end());
  }
  std::set<std::string> seen;
  for (const fs::path& file : files) {
    const std::string stem = file.stem().string();
    if (wanted && !chosen.contains(stem)) continue;
    seen.insert(stem);
    Entry& entry = listing.entries.emplace_back();
    auto text = read_text(file.string(), kMaxXmlBytes);
    if (text.ok()) {
      entry.labels = read_voc_xml(*text, file.string(), listing.names, entry);
    } else {
      entry.labels.has_file = true;
      entry.labels.problems.push_back(
          {Trouble::kBadLabelFile, file.string(), text.error().message});
    }
    pugi::xml_document document;
    std::string said;
    if (text.ok() && document.load_buffer(text->data(), text->size(), kParse))
      said = document.child("annotation").child("filename").text().get();
    entry.picture = picture_of(folder, stem, said);
  }
  // Pictures of the split that nobody annotated.
  for (const std::string& name : chosen) {
    if (!seen.contains(name)) listing.entries.push_back({.picture = picture_of(folder, name, "")});
  }
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

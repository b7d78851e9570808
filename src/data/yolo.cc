// YOLO txt: pictures by folder or list, and for each a label file with the same name (Ultralytics
// YOLOv5 v7.0, utils/dataloaders.py: img2label_paths, LoadImagesAndLabels).
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "base/mapped_file.h"
#include "data/labels.h"
#include "vision/sources.h"

namespace ferry::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxListBytes = int64_t{1} << 30;
constexpr int64_t kMaxLabelBytes = int64_t{64} << 20;

// a/images/b/c.jpg -> a/labels/b/c.txt (the last `images`); without such a folder, a/c.txt.
fs::path label_path(const fs::path& picture) {
  std::vector<fs::path> parts(picture.begin(), picture.end());
  for (size_t i = parts.size() - 1; i-- > 0;) {
    if (parts[i] != "images") continue;
    parts[i] = "labels";
    break;
  }
  fs::path label;
  for (const fs::path& part : parts) label /= part;
  return label.replace_extension(".txt");
}

// Collects the pictures that sources name.
class Collector {
 public:
  Status add(const std::string& source) {
    std::error_code failure;
    if (fs::is_directory(source, failure)) return add_folder(source);
    if (!vision::has_picture_suffix(source)) return add_list(source);
    pictures_.insert(source);
    return {};
  }
  const std::set<std::string>& pictures() const { return pictures_; }

 private:
  // With the folders in it; each is entered once, whatever links lead to it.
  Status add_folder(const std::string& top) {
    std::error_code failure;
    fs::directory_iterator readable(top, failure);
    if (failure) return error(Code::kIo, "cannot read folder {}: {}", top, failure.message());
    std::vector<fs::path> folders{top};
    while (!folders.empty()) {
      const fs::path folder = std::move(folders.back());
      folders.pop_back();
      struct stat status = {};
      if (stat(folder.c_str(), &status) != 0) continue;
      if (!entered_.emplace(status.st_dev, status.st_ino).second) continue;
      for (const fs::directory_entry& entry : files_in(folder)) {
        if (entry.is_directory(failure)) {
          folders.push_back(entry.path());
        } else if (vision::has_picture_suffix(entry.path().native())) {
          pictures_.insert(entry.path().native());
        }
      }
    }
    return {};
  }

  Status add_list(const std::string& list) {
    FERRY_TRY(text, read_text(list, kMaxListBytes));
    if (text.find('\0') != text.npos)
      return error(Code::kInvalid, "{}: not a list of pictures: it holds zero bytes", list);
    const fs::path here = fs::path(list).parent_path();
    for (std::string_view line : lines_of(text)) {
      while (line.ends_with(' ') || line.ends_with('\t')) line.remove_suffix(1);
      if (line.empty() || line.starts_with('#')) continue;
      const fs::path named(line);
      std::error_code failure;
      // Upstream: `./` is the list's folder, all else the working folder's. Ours may be either.
      const bool from_here =
          named.is_absolute() || line.starts_with("./") || !fs::exists(named, failure);
      pictures_.insert(((from_here ? here : fs::path()) / named).lexically_normal().string());
    }
    return {};
  }

  std::set<std::string> pictures_;
  std::set<std::pair<dev_t, ino_t>> entered_;
};

// Label files without a picture, in the folders where labels were looked for.
void find_orphans(const std::map<std::string, std::string>& folders, Listing& listing) {
  for (const auto& [labels, pictures] : folders) {
    std::set<std::string> stems;
    for (const fs::directory_entry& file : files_in(pictures)) {
      if (vision::has_picture_suffix(file.path().native())) stems.insert(file.path().stem());
    }
    // Among pictures any text may stand.
    if (labels == pictures) continue;
    std::vector<std::string> orphans;
    for (const fs::directory_entry& file : files_in(labels)) {
      const fs::path& path = file.path();
      if (path.extension() != ".txt" || path.filename() == "classes.txt") continue;
      if (!stems.contains(path.stem())) orphans.push_back(path.string());
    }
    for (const std::string& path : orphans) {
      listing.problems.push_back({Trouble::kOrphanLabel, path, "there is no picture of this name"});
    }
  }
}

}  // namespace

Result<Listing> list_yolo(const std::vector<std::string>& sources,
                          const std::vector<std::string>& names) {
  Collector collector;
  for (const std::string& source : sources) FERRY_CHECK_OK(collector.add(source));
  Listing listing{.format = Format::kYolo, .names = names};
  std::map<std::string, std::string> folders;
  const int64_t classes = names.empty() ? -1 : static_cast<int64_t>(names.size());
  for (const std::string& picture : collector.pictures()) {
    Entry& entry = listing.entries.emplace_back(Entry{.picture = picture});
    const fs::path label = label_path(picture);
    folders.emplace(label.parent_path().string(), fs::path(picture).parent_path().string());
    auto text = read_text(label.string(), kMaxLabelBytes);
    if (text.ok()) {
      entry.labels = read_yolo_rows(*text, label.string(), classes);
    } else if (text.error().code != Code::kNotFound) {
      entry.labels.has_file = true;
      entry.labels.problems.push_back(
          {Trouble::kBadLabelFile, label.string(), text.error().message});
    }
  }
  find_orphans(folders, listing);
  return listing;
}

}  // namespace ferry::data

// YOLO txt: pictures by folder or list, and for each a label file with the same name (Ultralytics
// YOLOv5 v7.0, utils/dataloaders.py: img2label_paths, LoadImagesAndLabels).
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

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

Status add_folder(const std::string& folder, std::set<std::string>& pictures) {
  std::error_code failure;
  fs::recursive_directory_iterator at(folder,
                                      fs::directory_options::skip_permission_denied |
                                          fs::directory_options::follow_directory_symlink,
                                      failure);
  if (failure) return error(Code::kIo, "cannot read folder {}: {}", folder, failure.message());
  for (; at != fs::recursive_directory_iterator(); at.increment(failure)) {
    if (failure) return error(Code::kIo, "cannot read folder {}: {}", folder, failure.message());
    if (at.depth() > 64) at.disable_recursion_pending();  // a link to a folder above
    const std::string path = at->path().string();
    if (vision::has_picture_suffix(path) && !at->is_directory(failure)) pictures.insert(path);
  }
  return {};
}

Status add_list(const std::string& list, std::set<std::string>& pictures) {
  FERRY_TRY(text, read_text(list, kMaxListBytes));
  std::string_view rest = text;
  if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);
  const fs::path here = fs::path(list).parent_path();
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    const fs::path named(line);
    std::error_code failure;
    // Upstream: `./` is the list's folder, all else the working folder's. Ours may be either.
    const bool from_here =
        named.is_absolute() || line.starts_with("./") || !fs::exists(named, failure);
    pictures.insert(((from_here ? here : fs::path()) / named).lexically_normal().string());
  }
  return {};
}

// Label files without a picture, in the folders where labels were looked for.
void find_orphans(const std::map<std::string, std::string>& folders, Listing& listing) {
  for (const auto& [labels, pictures] : folders) {
    std::set<std::string> stems;
    std::error_code failure;
    for (const auto& file : fs::directory_iterator(pictures, failure)) {
      if (vision::has_picture_suffix(file.path().string())) stems.insert(file.path().stem());
    }
    std::vector<std::string> orphans;
    for (const auto& file : fs::directory_iterator(labels, failure)) {
      const fs::path& path = file.path();
      if (path.extension() != ".txt" || path.filename() == "classes.txt") continue;
      // A list of pictures may stand among them.
      if (labels == pictures && !stems.contains(path.stem())) continue;
      if (!stems.contains(path.stem())) orphans.push_back(path.string());
    }
    std::ranges::sort(orphans);
    for (const std::string& path : orphans) {
      listing.problems.push_back({Trouble::kOrphanLabel, path, "there is no picture of this name"});
    }
  }
}

}  // namespace

Result<Listing> list_yolo(const std::vector<std::string>& sources,
                          const std::vector<std::string>& names) {
  std::set<std::string> pictures;
  for (const std::string& source : sources) {
    std::error_code failure;
    FERRY_CHECK_OK(fs::is_directory(source, failure) ? add_folder(source, pictures)
                                                     : add_list(source, pictures));
  }
  Listing listing{.format = Format::kYolo, .names = names};
  std::map<std::string, std::string> folders;
  const int64_t classes = names.empty() ? -1 : static_cast<int64_t>(names.size());
  for (const std::string& picture : pictures) {
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

// What the three readers have in common: the pictures and raw labels that a dataset's files name,
// before any picture has been looked at. Internal to data.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "data/dataset.h"

namespace ferry::data {

// Boxes and outlines, judged; `problems` has what was left out, and why.
struct Labels {
  std::vector<Label> labels = {};
  std::vector<Problem> problems = {};
  bool has_file = false;      // a label file, or an entry in the annotations
  bool windows_text = false;  // CRLF or a byte order mark
};

struct Entry {
  std::string picture;  // path
  Labels labels = {};
  int64_t image_id = -1;  // COCO's
  // What the annotations say; 0: nothing, and then boxes and outlines are in pixels.
  int64_t said_width = 0, said_height = 0;
};

// What a reader makes of a dataset's files.
struct Listing {
  Format format = Format::kYolo;
  std::vector<std::string> names = {};
  std::vector<int64_t> category_ids = {};  // empty: 0, 1, …
  std::vector<Entry> entries = {};
  std::vector<Problem> problems = {};  // that belong to no picture
};

// Whether `label`, whose class is right, holds a box: its centre in the picture, its size not above
// the picture's. What is beyond by no more than `slack_x` and `slack_y`, parts of the picture, is
// drawn in; else the answer says why this is none (its `where` is for the caller to fill in).
std::optional<Problem> judge_box(Label& label, double slack_x, double slack_y);
// Pixels to parts of the picture, judged; a box in pixels may be beyond by one of them.
std::optional<Problem> judge_pixel_box(Label& label, int64_t width, int64_t height);

// Rows of a YOLO label file: `class x y width height`, or `class x y x y x y …` for an outline, in
// any mixture (Ultralytics YOLOv5 v7.0, utils/dataloaders.py, verify_image_label; there one bad row
// spoils its file). `classes` is how many there are; -1: any number. `where` names the file.
Labels read_yolo_rows(std::string_view text, std::string_view where, int64_t classes);

// One Pascal VOC annotation: labels and size of `entry`. `names` are the classes; a name that is
// not there is a bad row. Returns the <filename>.
std::string read_voc_xml(std::string_view xml, std::string_view where,
                         const std::vector<std::string>& names, Entry& entry);
// The class names in it, each once.
std::vector<std::string> voc_names_in(std::string_view xml);

// What a data.yaml says.
struct DataYaml {
  std::vector<std::string> names;  // empty when it names neither `names` nor `nc`
  // Files and folders of a split, found.
  std::vector<std::string> sources;
};
Result<DataYaml> read_data_yaml(const std::string& path, const std::string& split);
Result<std::vector<std::string>> data_yaml_splits(const std::string& path);

// Readers. `sources` of YOLO are folders, list files or pictures.
Result<Listing> list_yolo(const std::vector<std::string>& sources,
                          const std::vector<std::string>& names);
// `names` (optional) are the classes, in order; categories find theirs by name.
Result<Listing> list_coco(const std::string& json, const std::string& images,
                          const std::vector<std::string>& names);
Result<Listing> parse_coco(std::string_view json, const std::string& path,
                           const std::string& images, const std::vector<std::string>& names);
// The COCO json of a split in a folder, or empty.
std::string find_coco(const std::string& folder, const std::string& split);
Result<Listing> list_voc(const std::string& folder, const std::string& split,
                         const std::vector<std::string>& names);
std::vector<std::string> voc_splits(const std::string& folder);

// What is in a folder, sorted by name; nothing where it cannot be read.
std::vector<std::filesystem::directory_entry> files_in(const std::filesystem::path& folder);
// The lines of a text, without their ends and a byte order mark; empty lines are left out.
std::vector<std::string_view> lines_of(std::string_view text);
// Whether the path ends in `suffix`, ".txt" say, in any case.
bool has_suffix(const std::filesystem::path& path, std::string_view suffix);
// Whole text of a file of at most `max_bytes`.
Result<std::string> read_text(const std::string& path, int64_t max_bytes);

}  // namespace ferry::data

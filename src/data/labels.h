// What the three readers have in common: the pictures and raw labels that a dataset's files name,
// before any picture has been looked at. Internal to data.
#pragma once

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
  int64_t image_id = -1;                    // COCO's
  int64_t said_width = 0, said_height = 0;  // what the annotations say; 0: nothing
};

// What a reader makes of a dataset's files.
struct Listing {
  Format format = Format::kYolo;
  std::vector<std::string> names = {};
  std::vector<int64_t> category_ids = {};  // empty: 0, 1, …
  std::vector<Entry> entries = {};
  std::vector<Problem> problems = {};  // that belong to no picture
};

// Rows of a YOLO label file: `class x y width height`, or `class x y x y x y …` for an outline, in
// any mixture (Ultralytics YOLOv5 v7.0, utils/dataloaders.py, verify_image_label; there one bad row
// spoils its file). `classes` is how many there are; -1: any number. `where` names the file.
Labels read_yolo_rows(std::string_view text, std::string_view where, int64_t classes);

// One Pascal VOC annotation. `names` are the classes; a name that is not there is a bad row.
Labels read_voc_xml(std::string_view xml, std::string_view where,
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

// Readers. `sources` of YOLO are folders, list files or COCO jsons.
Result<Listing> list_yolo(const std::vector<std::string>& sources,
                          const std::vector<std::string>& names);
Result<Listing> list_coco(const std::string& json, const std::string& images);
Result<Listing> list_voc(const std::string& folder, const std::string& split,
                         const std::vector<std::string>& names);
std::vector<std::string> voc_splits(const std::string& folder);

// Whole text of a file of at most `max_bytes`.
Result<std::string> read_text(const std::string& path, int64_t max_bytes);

}  // namespace ferry::data

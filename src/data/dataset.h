// A detection dataset as users have it, in one form: pictures, and the boxes in them.
//
// Three kinds open: YOLO txt with a data.yaml, COCO json, Pascal VOC xml. Rows of labels are judged
// one by one: a bad row is left out and reported with file and line, its picture stays. Pictures
// are decoded once to see whether they are sound; a cache remembers what was seen until they
// change.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ferry::data {

enum class Format : unsigned char { kYolo, kCoco, kVoc };
std::string_view name_of(Format format);  // "yolo", "coco", "voc"

// One box. Centre and size are parts of the picture (0 to 1), the picture being as it is shown:
// after its EXIF orientation.
struct Label {
  int32_t class_id = 0;  // index into Dataset::names
  double x = 0, y = 0, width = 0, height = 0;
  bool crowd = false;      // COCO's iscrowd: a region, not an object; Ultralytics' metric skips it
  bool difficult = false;  // VOC's
  bool truncated = false;  // VOC's
  double area = 0;         // COCO's, of the object's outline in pixels; 0: that of the box
  // (optional) The object's outline: x, y, x, y, … as parts of the picture; the box is its hull.
  // COCO may give several.
  std::vector<std::vector<double>> polygons = {};
};

struct Sample {
  std::string path;               // of the picture
  int64_t width = 0, height = 0;  // pixels, as shown
  int64_t image_id = 0;  // COCO's; else the number that is the file's name, else its place, from 1;
                         // unique in the dataset
  std::vector<Label> labels = {};
};

enum class Trouble : unsigned char {
  kMissingPicture,
  kCorruptPicture,
  kDamagedPicture,  // decoded all the same
  kBadLabelFile,    // unreadable as a whole
  kBadRow,
  kZeroArea,
  kDuplicate,
  kOrphanLabel,  // a label file, or an annotation, without a picture
  kOtherSize,    // the annotations give the picture another size
};
std::string_view name_of(Trouble trouble);  // "bad row", …

struct Problem {
  Trouble trouble = Trouble::kBadRow;
  std::string where;  // "labels/a.txt:3"
  std::string message;
};

struct Summary {
  int64_t pictures = 0;     // named by the dataset
  int64_t sound = 0;        // of these, decoded
  int64_t backgrounds = 0;  // sound, without any box
  int64_t unlabelled = 0;   // sound, without a label file
  int64_t missing = 0, corrupt = 0, damaged = 0;
  int64_t rotated = 0;  // by EXIF
  int64_t boxes = 0;    // kept
  int64_t polygons = 0, crowds = 0;
  int64_t bad_rows = 0, zero_area = 0, duplicates = 0;  // left out
  int64_t bad_label_files = 0, orphans = 0, other_size = 0;
  int64_t windows_text = 0;  // label files with CRLF or a byte order mark
  int64_t remembered = 0;    // pictures that the cache knew
};

struct Dataset {
  Format format = Format::kYolo;
  std::vector<std::string> names;          // one a class
  std::vector<int64_t> category_ids = {};  // one a class: COCO's ids; else 0, 1, …
  std::vector<Sample> samples = {};        // sound pictures, by path
  Summary summary = {};
  std::vector<Problem> problems = {};  // in the order of the files
};

struct OpenOptions {
  std::string split = "val";            // train, val or test
  bool single_class = false;            // every label becomes class 0, "item"
  bool cache = true;                    // in $XDG_CACHE_HOME/ferry or ~/.cache/ferry
  int threads = 1;                      // that decode pictures
  std::string images = {};              // (optional) the folder of a COCO json's pictures
  std::vector<std::string> names = {};  // (optional) the classes, in order; before what files say
  // (optional) Called now and then with pictures seen and in all; false stops with kCancelled.
  std::function<bool(int64_t done, int64_t total)> progress = {};
};

// Opens one split of the dataset that `path` names:
//   data.yaml      `path`, train/val/test: a folder, a list file, a COCO json, or a list of them
//   folder         with a data.yaml; with Annotations/: VOC; with
//   annotations/instances_<split>.json:
//                  COCO; else pictures, their labels beside them or in ../labels
//   .json          COCO instances; pictures are looked for in `images`, beside it and in images/
//   .txt           a list of pictures
// Relative names are looked up from the yaml's `path`, then from its folder. Fails with kNotFound,
// kInvalid or kIo for what makes the whole unusable, and when no sound picture is left.
Result<Dataset> open_dataset(const std::string& path, const OpenOptions& options = {});

// Of train, val and test those that `path` has.
Result<std::vector<std::string>> splits_of(const std::string& path);

}  // namespace ferry::data

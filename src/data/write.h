// Writes a dataset in another form: pictures linked or copied, labels rewritten. What a form cannot
// hold is counted, never dropped in silence.
//
//   yolo   data.yaml, images/<split>/, labels/<split>/*.txt; outlines as rows of points
//   coco   annotations/instances_<split>.json, images/<split>/; outlines as segmentation, VOC's
//          marks as `difficult` and `truncated`, which other readers skip
//   voc    Annotations/*.xml, JPEGImages/, ImageSets/Main/<split>.txt, classes.txt; boxes only
//
// Numbers are written so that there and back gives the same: whole pixels, and pixels to two
// places, come back exactly, and so do parts of up to 14 places; others to 1e-14 of the picture.
// (A part that falls within 1e-8 pixels of such a pixel by chance comes back to 1e-8 pixels.)
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "data/dataset.h"

namespace ferry::data {

enum class Place : unsigned char {
  kLink,     // a hard link, else a copy: takes no space, outlives the original
  kSymlink,  // to the original's absolute path
  kCopy,
};

struct WriteOptions {
  Format format = Format::kYolo;
  std::string folder;  // exists; what stands in the way there is replaced
  Place pictures = Place::kLink;
};

struct Written {
  int64_t pictures = 0, boxes = 0;
  int64_t outlines_lost = 0;   // the form has boxes only, or one outline a box
  int64_t crowds_lost = 0;     // left out: the form has no crowds
  int64_t difficult_lost = 0;  // VOC's marks that the form has not
  int64_t renamed = 0;         // pictures whose name was taken
  int64_t doubled = 0;         // equal boxes in one picture, of which a YOLO reader keeps one
};

struct SplitView {
  std::string split;  // train, val or test
  const Dataset* dataset = nullptr;
};

// All splits of one dataset. Fails with kIo as files do, kInvalid for class names that the form
// cannot hold and for a folder that holds the dataset's own pictures, kCancelled when `keep_going`
// (optional) says so.
Result<Written> write_dataset(std::span<const SplitView> splits, const WriteOptions& options,
                              const std::function<bool()>& keep_going = {});

}  // namespace ferry::data

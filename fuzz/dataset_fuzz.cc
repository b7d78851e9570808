// Any bytes as the labels of a dataset: a VOC annotation, COCO instances, or rows of a YOLO file.
// What is kept is a box in the picture, of a class that there is.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "data/labels.h"

namespace {

void check(const ferry::data::Labels& labels, size_t classes) {
  const auto is_part = [](double v) { return v >= 0 && v <= 1; };
  for (const ferry::data::Label& l : labels.labels) {
    if (l.class_id < 0 || static_cast<size_t>(l.class_id) >= classes) std::abort();
    if (!is_part(l.x) || !is_part(l.y) || !is_part(l.width) || !is_part(l.height)) std::abort();
    if (l.width <= 0 || l.height <= 0) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with('<')) {
    ferry::data::voc_names_in(text);
    ferry::data::Entry entry;
    ferry::data::read_voc_xml(text, "a.xml", {"cat", "dog"}, entry);
    if (entry.said_width > 0) check(entry.labels, 2);  // else in pixels, judged later
  } else if (text.starts_with('{')) {
    const auto listing = ferry::data::parse_coco(text, "a.json", "pictures", {});
    if (!listing.ok()) return 0;
    if (listing->names.size() != listing->category_ids.size()) std::abort();
    for (const ferry::data::Entry& entry : listing->entries)
      if (entry.said_width > 0) check(entry.labels, listing->names.size());
  } else {
    check(ferry::data::read_yolo_rows(text, "a.txt", 3), 3);
  }
  return 0;
}

#include "eval/predictions_json.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iterator>

namespace ferry::eval {
namespace {

double rounded(double value, double steps) { return std::round(value * steps) / steps; }

Error cannot_write(const std::string& path) {
  return error(Code::kIo, "cannot write {}: {}", path, std::strerror(errno));
}

}  // namespace

CocoBox coco_box(const vision::Detection& detection) {
  const vision::Box& b = detection.box;
  const double x = b.x1, y = b.y1;
  return {{rounded(x, 1e3), rounded(y, 1e3), rounded(b.x2 - x, 1e3), rounded(b.y2 - y, 1e3)},
          rounded(detection.confidence, 1e6)};
}

Result<PredictionsJson> PredictionsJson::create(const std::string& path) {
  FERRY_TRY(pending, PendingFile::create(path));
  std::FILE* file = std::fopen(pending.temporary().c_str(), "w");
  if (file == nullptr) return cannot_write(path);
  std::fputs("[", file);
  return PredictionsJson(std::move(pending), file);
}

Status PredictionsJson::add(int64_t image_id, std::span<const vision::Detection> detections,
                            std::span<const int64_t> category_ids) {
  std::string text;
  for (const vision::Detection& detection : detections) {
    const CocoBox coco = coco_box(detection);
    fmt::format_to(std::back_inserter(text),
                   "{}{{\"image_id\": {}, \"category_id\": {}, \"bbox\": [{}, {}, {}, {}], "
                   "\"score\": {}}}",
                   first_ ? "\n" : ",\n", image_id,
                   category_ids[static_cast<size_t>(detection.class_id)], coco.box[0], coco.box[1],
                   coco.box[2], coco.box[3], coco.score);
    first_ = false;
  }
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size()) {
    return cannot_write(pending_.path());
  }
  return {};
}

Status PredictionsJson::close() {
  std::fputs("\n]\n", file_.get());
  const bool failed = std::ferror(file_.get()) != 0;
  if (std::fclose(file_.release()) != 0 || failed) return cannot_write(pending_.path());
  return pending_.commit();
}

}  // namespace ferry::eval

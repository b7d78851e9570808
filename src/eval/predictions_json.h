// predictions.json: detections in COCO's results form, as pycocotools' loadRes reads them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/mapped_file.h"
#include "base/result.h"
#include "vision/boxes.h"

namespace ferry::eval {

// A detection as COCO's metric takes it. Rounded, so that the metric of the file is that of the
// run.
struct CocoBox {
  std::array<double, 4> box = {};  // x, y, width, height; pixels, to 0.001
  double score = 0;                // to 0.000001
};
CocoBox coco_box(const vision::Detection& detection);

// Written as pictures come in; the file appears whole with close().
class PredictionsJson {
 public:
  static Result<PredictionsJson> create(const std::string& path);
  PredictionsJson(PredictionsJson&&) = default;
  ~PredictionsJson() = default;

  // `category_ids` has one a class.
  Status add(int64_t image_id, std::span<const vision::Detection> detections,
             std::span<const int64_t> category_ids);
  Status close();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  PredictionsJson(PendingFile pending, std::FILE* file)
      : pending_(std::move(pending)), file_(file) {}
  PendingFile pending_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  bool first_ = true;
};

}  // namespace ferry::eval

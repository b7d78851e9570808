// What `ferry detect` leaves behind, in the files and forms that Ultralytics' detect.py users know,
// plus JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ferry/ferry.h"
#include "vision/draw.h"
#include "vision/picture.h"

namespace ferry::cli {

struct OutputOptions {
  std::string folder;  // runs/detect/exp
  bool save_pictures = true;
  bool save_txt =
      false;  // labels/<stem>.txt: class x y w h [conf], centre and size as parts of the picture
  bool save_conf = false;
  bool save_crop = false;      // crops/<class>/<stem>.jpg
  bool save_csv = false;       // predictions.csv: Image Name,Prediction,Confidence
  std::string json;            // (optional) a file, or "-" for standard output
  int64_t line_thickness = 0;  // pixels; 0: by the picture's size
  bool hide_labels = false;
  bool hide_conf = false;
};

// Boxes rounded to whole pixels, as upstream does before it writes or draws.
Detections rounded(const Detections& detections);

// "4 persons, 1 bus" with each class once, in order of class; "(no detections)" for none.
std::string summary(const Detections& detections, const std::vector<std::string>& names);

class DetectOutputs {
 public:
  DetectOutputs(OutputOptions options, const std::vector<std::string>& names);
  ~DetectOutputs();

  // One picture, or one frame of a video: `stem` names its label file and crops ("bus",
  // "street_12"). Draws the boxes into `picture` when pictures are saved or `draw` asks for it.
  // Does not save the picture itself.
  Status add(const std::string& path, std::string_view stem, vision::Picture& picture,
             const Detections& detections, int64_t frame = -1);
  Status save_picture(const vision::Picture& picture, const std::string& file_name);
  // Files that hold all pictures: CSV and JSON, whole.
  Status finish();
  // Some label had characters that no font here covers.
  bool missing_glyphs() const { return annotator_.missing_glyphs(); }
  int64_t labels_written() const { return labels_written_; }

 private:
  Status write_labels(std::string_view stem, const vision::Picture& picture,
                      const Detections& detections);
  Status write_crops(std::string_view stem, const vision::Picture& picture,
                     const Detections& detections);
  void draw(vision::Picture& picture, const Detections& detections);

  struct Json;
  OutputOptions options_;
  const std::vector<std::string>& names_;
  vision::Annotator annotator_;
  std::unique_ptr<Json> json_;
  std::string csv_;
  int64_t labels_written_ = 0;
};

}  // namespace ferry::cli

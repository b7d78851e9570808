#include "cli/detect_outputs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/csv.h"
#include "base/mapped_file.h"
#include "cli/label_row.h"
#include "cli/print.h"
#include "cli/run_folder.h"
#include "vision/encode.h"

namespace ferry::cli {

namespace fs = std::filesystem;

namespace {

// The shortest decimal text of a float, as a JSON number (a double would print all its digits).
double json_number(float value) { return std::strtod(fmt::format("{}", value).c_str(), nullptr); }

// A class name as a folder: separators and leading dots of hostile names lose their meaning.
std::string folder_name(std::string name) {
  std::ranges::replace_if(
      name, [](char c) { return c == '/' || c == '\\' || c == '\0'; }, '_');
  if (name.empty() || name[0] == '.') name.insert(0, "_");
  return name;
}

}  // namespace

struct DetectOutputs::Json {
  nlohmann::ordered_json images = nlohmann::ordered_json::array();
};

Detections rounded(const Detections& detections) {
  Detections out = detections;
  for (Detection& d : out) {
    for (float& side : d.box) side = std::nearbyintf(side);  // half to even, as torch
  }
  return out;
}

std::string summary(const Detections& detections, const std::vector<std::string>& names) {
  std::map<int32_t, int> counts;
  for (const Detection& d : detections) ++counts[d.class_id];
  std::string text;
  for (const auto& [id, count] : counts) {
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", count,
                        names[static_cast<size_t>(id)], count > 1 ? "s" : "");
  }
  return text.empty() ? "(no detections)" : text;
}

DetectOutputs::DetectOutputs(OutputOptions options, const std::vector<std::string>& names)
    : options_(std::move(options)),
      names_(names),
      annotator_({.line_width = options_.line_thickness}),
      json_(std::make_unique<Json>()),
      csv_("Image Name,Prediction,Confidence\n") {}
DetectOutputs::~DetectOutputs() = default;

Status DetectOutputs::add(const std::string& path, std::string_view stem, vision::Picture& picture,
                          const Detections& detections, int64_t frame) {
  if (!options_.json.empty()) {
    nlohmann::ordered_json image = {{"image", path}};
    if (frame >= 0) image["frame"] = frame;
    image["width"] = picture.width();
    image["height"] = picture.height();
    image["detections"] = nlohmann::ordered_json::array();
    for (const Detection& d : detections) {
      nlohmann::ordered_json box = nlohmann::ordered_json::array();
      for (const float side : d.box) box.push_back(json_number(side));
      image["detections"].push_back({{"class_id", d.class_id},
                                     {"class_name", names_[static_cast<size_t>(d.class_id)]},
                                     {"confidence", json_number(d.confidence)},
                                     {"box", std::move(box)}});
    }
    json_->images.push_back(std::move(image));
  }
  if (options_.save_csv) {
    // Lowest confidence first, as upstream writes them.
    for (auto d = detections.rbegin(); d != detections.rend(); ++d) {
      csv_ += fmt::format("{},{},{:.2f}\n", csv_field(fs::path(path).filename().string()),
                          csv_field(names_[static_cast<size_t>(d->class_id)]), d->confidence);
    }
  }
  const Detections whole = rounded(detections);
  if (options_.save_txt) FERRY_CHECK_OK(write_labels(stem, picture, whole));
  if (options_.save_crop) FERRY_CHECK_OK(write_crops(stem, picture, whole));
  if (options_.save_pictures) draw(picture, whole);
  return {};
}

// Lowest confidence first, as upstream writes them.
Status DetectOutputs::write_labels(std::string_view stem, const vision::Picture& picture,
                                   const Detections& detections) {
  if (detections.empty()) return {};
  const auto write = options_.save_conf ? WriteConfidence::kYes : WriteConfidence::kNo;
  std::string text;
  for (auto d = detections.rbegin(); d != detections.rend(); ++d) {
    text += label_row(d->class_id, d->box, d->confidence, picture.width(), picture.height(), write);
  }
  const std::string folder = options_.folder + "/labels";
  FERRY_CHECK_OK(make_folder(folder));
  FERRY_CHECK_OK(write_file(fmt::format("{}/{}.txt", folder, stem), text));
  ++labels_written_;
  return {};
}

// The box, 2 % larger and with 10 pixels more on each side (upstream's save_one_box: gain 1.02, pad
// 10).
Status DetectOutputs::write_crops(std::string_view stem, const vision::Picture& picture,
                                  const Detections& detections) {
  std::map<int32_t, int> written;
  for (auto d = detections.rbegin(); d != detections.rend(); ++d) {
    const auto [x1, y1, x2, y2] = d->box;
    const double cx = (x1 + x2) / 2, cy = (y1 + y2) / 2;
    const double half_w = ((x2 - x1) * 1.02 + 10) / 2, half_h = ((y2 - y1) * 1.02 + 10) / 2;
    const auto clamp = [](double v, int64_t high) {
      return std::clamp(static_cast<int64_t>(v), int64_t{0}, high);
    };
    const int64_t left = clamp(cx - half_w, picture.width()),
                  right = clamp(cx + half_w, picture.width());
    const int64_t top = clamp(cy - half_h, picture.height()),
                  bottom = clamp(cy + half_h, picture.height());
    if (right <= left || bottom <= top) continue;
    const vision::PictureView view{picture.row(top) + left * vision::kBytesPerPixel, right - left,
                                   bottom - top, picture.stride(), picture.format()};
    const std::string folder = fmt::format("{}/crops/{}", options_.folder,
                                           folder_name(names_[static_cast<size_t>(d->class_id)]));
    FERRY_CHECK_OK(make_folder(folder));
    const int number = ++written[d->class_id];
    FERRY_CHECK_OK(vision::encode_picture(
        view, fmt::format("{}/{}{}.jpg", folder, stem, number == 1 ? "" : std::to_string(number))));
  }
  return {};
}

void DetectOutputs::draw(vision::Picture& picture, const Detections& detections) {
  std::vector<vision::LabeledBox> boxes;
  for (auto d = detections.rbegin(); d != detections.rend(); ++d) {
    const std::string& name = names_[static_cast<size_t>(d->class_id)];
    boxes.push_back({.x1 = d->box[0],
                     .y1 = d->box[1],
                     .x2 = d->box[2],
                     .y2 = d->box[3],
                     .color = vision::class_color(d->class_id),
                     .label = options_.hide_labels ? ""
                              : options_.hide_conf
                                  ? name
                                  : fmt::format("{} {:.2f}", name, d->confidence)});
  }
  // Without a font the boxes are drawn all the same; the command says so once.
  if (const Status drawn = annotator_.draw(picture, boxes); !drawn.ok()) {
    static bool said = false;
    if (!std::exchange(said, true))
      print(stderr, "ferry detect: warning: {}\n", drawn.error().message);
  }
}

Status DetectOutputs::save_picture(const vision::Picture& picture, const std::string& file_name) {
  // Forms that cannot be written (GIF, TIFF), or not at this size, become PNG beside the name.
  const std::string path = options_.folder + "/" + file_name;
  Status written = vision::format_for(path).ok() ? vision::encode_picture(picture, path)
                                                 : error(Code::kUnsupported, "not written here");
  if (written.ok() || written.error().code == Code::kIo) return written;
  return vision::encode_picture(picture, fs::path(path).replace_extension(".png").string());
}

Status DetectOutputs::finish() {
  if (options_.save_csv) FERRY_CHECK_OK(write_file(options_.folder + "/predictions.csv", csv_));
  if (options_.json.empty()) return {};
  // Names that are not UTF-8 are written with replacement characters instead of failing the whole
  // file.
  const std::string text =
      json_->images.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (options_.json == "-") {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
        std::fflush(stdout) != 0) {
      return error(Code::kIo, "cannot write the JSON to standard output");
    }
    return {};
  }
  return write_file(options_.json, text);
}

}  // namespace ferry::cli

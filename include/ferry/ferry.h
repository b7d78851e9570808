// ferry's C++ API: load a YOLOv5 detector, give it pixels, get boxes.
//
//   auto detector = ferry::Detector::load("yolov5n.pt");
//   if (!detector.ok()) { puts(detector.error().message.c_str()); return 1; }
//   auto detections = (*detector)->detect({pixels, width, height, stride});
//
// examples/detect_picture.cc is a whole program; `find_package(ferry)` gives the target
// ferry::ferry. Everything a file can hold is data: nothing in it is executed. No function throws.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ferry/result.h"

#define FERRY_API __attribute__((visibility("default")))

namespace ferry {

enum class PixelFormat : unsigned char {
  kBgr8,  // blue, green, red; 8 bits each
  kRgb8,  // red, green, blue
};

// Borrowed pixels: pixel (x, y) stands at data + y * stride + x * 3.
struct Image {
  const uint8_t* data = nullptr;
  int64_t width = 0;   // pixels
  int64_t height = 0;  // pixels
  int64_t stride = 0;  // bytes from one row to the next; 0 means width * 3
  PixelFormat format = PixelFormat::kBgr8;
};

// A picture file's pixels, and the view of them that detect() takes.
struct ImageFile {
  Image image;                             // BGR
  std::shared_ptr<const void> owner = {};  // keeps the pixels alive
  std::string warning = {};                // empty when the file was sound
};

// Reads JPEG, PNG, WebP, TIFF, BMP and the first frame of a GIF, told apart by content, as OpenCV's
// imread does: EXIF orientation applied, alpha dropped, 16 bits made 8. Refuses more than 2^26
// pixels.
FERRY_API Result<ImageFile> read_image(const std::string& path);

struct Detection {
  int32_t class_id = 0;           // index into Detector::class_names()
  float confidence = 0;           // objectness times class score, 0 to 1
  std::array<float, 4> box = {};  // x1, y1, x2, y2 in pixels of the image, inside it; not rounded
};
using Detections = std::vector<Detection>;  // by falling confidence

enum class Fit : unsigned char {
  kRect,    // the smallest input that holds the scaled image; sides are multiples of the stride
            // (YOLOv5's default)
  kSquare,  // always the whole input size, with a gray border
};

struct LoadOptions {
  std::string device = "cpu";
  int threads = 0;           // for one run; 0: the processors this process may use
  int64_t input_height = 0;  // pixels, rounded up to a multiple of the largest stride; 0: what the
                             // model says, else 640
  int64_t input_width = 0;
  Fit fit = Fit::kRect;
  bool fixed_shape = false;  // every image runs alone at the input size above, with a border as for
                             // kSquare: the model's unpacked weights are then given back
  std::string cfg = {};      // (optional) model yaml, for checkpoints that hold weights only
  bool tune = false;  // time candidate kernels on this machine while loading: faster, but not the
                      // same bits every time
  std::vector<std::string> disable_passes =
      {};  // names, for debugging; `ferry detect --disable-pass help` lists them
  std::vector<std::string> dump_passes =
      {};  // print the graph before and after these, to standard error
};

struct DetectOptions {
  double conf_threshold = 0.25;  // 0 to 1
  double iou_threshold = 0.45;   // 0 to 1
  int64_t max_detections = 1000;
  std::vector<int32_t> classes = {};  // only these; empty: all
  bool agnostic_nms = false;          // boxes of different classes suppress each other
  bool multi_label = false;           // a box may get several classes (as in validation)
  bool augment = false;  // Ultralytics' test-time augmentation: three scales, one of them mirrored
};

// Milliseconds that the last detect() took, of all its images together.
struct Timing {
  double preprocess_ms = 0;                   // letterbox
  double inference_ms = 0;                    // the network
  double postprocess_ms = 0;                  // head decode and NMS
  int64_t input_height = 0, input_width = 0;  // of the last image
};

// Bytes that the input size used last takes.
struct Memory {
  int64_t weights = 0;      // packed for the device; shared by all that share() gave
  int64_t activations = 0;  // this detector's own
  int64_t peak = 0;  // of these, what lives at one time at most: no memory plan can need less
};

// A loaded detector. One thread at a time; for more threads, `share()`.
class FERRY_API Detector {
 public:
  // Reads a YOLOv5 checkpoint (.pt), an ONNX model or a model yaml (random weights), whatever its
  // name ends in.
  static Result<std::unique_ptr<Detector>> load(const std::string& path,
                                                const LoadOptions& options = {});
  ~Detector();
  Detector(const Detector&) = delete;
  Detector& operator=(const Detector&) = delete;

  // Another detector of the same model: shares weights and threads, adds its own activations.
  Result<std::unique_ptr<Detector>> share() const;

  Result<Detections> detect(const Image& image, const DetectOptions& options = {});
  // Several images; those that come to the same input size run as batches of up to `batch` images.
  // Results in order.
  Result<std::vector<Detections>> detect(std::span<const Image> images,
                                         const DetectOptions& options, int64_t batch = 1);

  const std::vector<std::string>& class_names() const;
  int64_t input_height() const;  // what images are fitted into
  int64_t input_width() const;
  const Timing& timing() const;
  Memory memory() const;
  std::string device() const;                        // for people: "cpu: avx512, 2 threads"
  const std::string& description() const;            // one line: format, layers, parameters, GFLOPs
  const std::vector<std::string>& warnings() const;  // whole sentences about the file; empty mostly

 private:
  struct Impl;
  explicit Detector(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The version of the library, "0.1.0".
FERRY_API const char* version();

}  // namespace ferry

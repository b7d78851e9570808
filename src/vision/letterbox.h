// Letterbox: a picture scaled to fit the network's input and centred on a border, as Ultralytics
// YOLOv5 v7.0 does it (utils/augmentations.py, `letterbox`), in one pass from the 8-bit picture to
// the input tensor.
//
// The scaled pixels equal cv2.resize(..., INTER_LINEAR) to the bit: OpenCV's 11-bit weights and its
// two roundings are reproduced (letterbox_kernels.h). No scaled picture is stored, only two rows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/thread_pool.h"
#include "vision/picture.h"
#include "vision/simd.h"

namespace ferry::vision {

enum class LetterboxMode : unsigned char {
  kRect,     // upstream's auto=True: the smallest rectangle whose sides keep the stride's remainder
  kSquare,   // auto=False: exactly options.width x options.height
  kStretch,  // scaleFill: no border, the aspect ratio is not kept
};

struct LetterboxOptions {
  int64_t width = 640;  // of the input that is aimed at, pixels
  int64_t height = 640;
  LetterboxMode mode = LetterboxMode::kRect;
  bool scale_up = true;  // false: small pictures keep their size (upstream's validation)
  int64_t stride = 32;   // kRect: the border is the remainder by this
};

// Where the picture lands in the input. All in pixels; `ratio` is new / old.
struct LetterboxPlan {
  int64_t picture_width = 0, picture_height = 0;
  int64_t input_width = 0, input_height = 0;    // the tensor's sides
  int64_t scaled_width = 0, scaled_height = 0;  // the picture inside it
  int64_t pad_left = 0, pad_top = 0;
  double ratio_x = 1, ratio_y = 1;

  bool resizes() const { return scaled_width != picture_width || scaled_height != picture_height; }
  bool operator==(const LetterboxPlan&) const = default;
};

// Fails with kInvalid for sides or a stride below 1, or above kMaxPictureSide. Rounds as Python
// does (half to even). One thing differs from upstream: a side that would round to 0 (1 x 4000 into
// 640) becomes 1, where cv2.resize raises.
Result<LetterboxPlan> plan_letterbox(int64_t picture_width, int64_t picture_height,
                                     const LetterboxOptions& options);

// `--imgsz` made fit for the network: each side rounded up to a multiple of the largest stride.
struct InputSize {
  int64_t height = 0;
  int64_t width = 0;
  std::string warning;  // upstream's sentence when a side changed, else empty
};

// Fails with kInvalid for sides or a stride below 1, or sides above kMaxPictureSide.
Result<InputSize> check_input_size(int64_t height, int64_t width, int64_t stride);

enum class TensorLayout : unsigned char {
  kNhwc,  // [height, width, 3]
  kNchw,  // [3, height, width]
};

inline constexpr uint8_t kBorderGray = 114;

// Writes pictures of one size into input tensors: keeps the tables of its plan and the rows it
// works in, so a video pays for them once. Calls of one object must not overlap.
class Letterbox {
 public:
  explicit Letterbox(const LetterboxPlan& plan, Simd simd = best_simd());
  ~Letterbox();
  Letterbox(Letterbox&&) noexcept;
  Letterbox& operator=(Letterbox&&) noexcept;

  const LetterboxPlan& plan() const { return plan_; }

  // Writes all 3 * input_height * input_width elements of `output` (one image of the batch), red
  // first: value / 255, correctly rounded, as upstream's `im /= 255`; the border is 114 / 255.
  // `pool` (optional) shares the rows; the result is the same. Fails with kInvalid when the picture
  // is not of the plan's size or breaks check_view.
  Status to_float(const PictureView& picture, TensorLayout layout, float* output,
                  ThreadPool* pool = nullptr);
  // The same before the division, for engines whose first layer reads bytes.
  Status to_bytes(const PictureView& picture, TensorLayout layout, uint8_t* output,
                  ThreadPool* pool = nullptr);

 private:
  struct Tables;
  template <class T>
  Status run(const PictureView& picture, TensorLayout layout, T* output, ThreadPool* pool);

  LetterboxPlan plan_;
  std::unique_ptr<Tables> tables_;
};

}  // namespace ferry::vision

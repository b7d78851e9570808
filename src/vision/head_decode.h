// From what the network says to boxes: YOLOv5's Detect head (releases 6 and 7) and the first half
// of `non_max_suppression`; nms.h is the second half.
//
// A cell's values are x, y, w, h, objectness, class scores, all logits. With s = sigmoid:
//   centre = (2 s(x, y) - 0.5 + cell) * stride      size = (2 s(w, h))^2 * anchor      in pixels
//   confidence = s(objectness) * s(class)
// Most cells fail on objectness. They are rejected by comparing the logit with that of the
// confidence threshold, before any exponential; what passes is computed and compared in fp32 as
// upstream does, so the answer is upstream's. A candidate with a NaN or infinite corner or
// confidence is dropped (upstream would return it); a NaN objectness or class score fails as it
// does upstream.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "vision/nms.h"
#include "vision/simd.h"

namespace ferry::vision {

struct Anchor {
  float width = 0, height = 0;  // input pixels
};

// The raw logits of one scale for one image: [height, width, anchors, 5 + classes], or with its
// axes in another order: value v of anchor a at (x, y) is
//   data[y * row_stride + x * pixel_stride + (a * (5 + classes) + v) * channel_stride].
struct HeadMap {
  const float* data = nullptr;
  int64_t width = 0, height = 0;                                 // cells
  int64_t row_stride = 0, pixel_stride = 0, channel_stride = 0;  // in elements
  float stride = 0;                                              // input pixels a cell
  std::span<const Anchor> anchors;                               // borrowed

  // A pixel's channels are contiguous; pixels stand `pixel_stride` >= channels apart.
  static HeadMap nhwc(const float* data, int64_t width, int64_t height, int64_t pixel_stride,
                      float stride, std::span<const Anchor> anchors);
  // [channels, height, width], dense.
  static HeadMap nchw(const float* data, int64_t width, int64_t height, float stride,
                      std::span<const Anchor> anchors);
};

// All scales, smallest stride first: the order of upstream's rows, which decides between equals.
struct RawHead {
  std::span<const HeadMap> maps;
  int64_t classes = 0;

  // Of the decoded tensor: a row for each scale, anchor, y and x, in this order.
  int64_t rows() const;
  int64_t columns() const { return 5 + classes; }
};

// Candidates of one image. `pool` (optional) shares the cells; the result is the same.
// With more than a few times max_candidates only the best max_candidates come back, so memory is
// bounded. Fails with kInvalid: options outside their ranges, no classes, no anchors, null data.
Result<Candidates> find_candidates(const RawHead& head, const NmsOptions& options,
                                   ThreadPool* pool = nullptr, Simd simd = best_simd());

enum class RowType : unsigned char { kF32, kF16, kBf16, kF64 };

// An already decoded head, as plain ONNX exports answer: [rows, 5 + classes] of one image, with
// centre x, y, width, height in input pixels, objectness and class scores 0 to 1.
struct DecodedRows {
  const void* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;     // 5 + classes
  int64_t row_stride = 0;  // in elements, >= columns
  RowType type = RowType::kF32;
};

// As above. Every value is made fp32 before it is looked at.
Result<Candidates> find_candidates(const DecodedRows& rows, const NmsOptions& options,
                                   ThreadPool* pool = nullptr, Simd simd = best_simd());

// find_candidates and suppress: the detections of one image, in input pixels.
Result<std::vector<Detection>> detect(const RawHead& head, const NmsOptions& options,
                                      ThreadPool* pool = nullptr, Simd simd = best_simd());
Result<std::vector<Detection>> detect(const DecodedRows& rows, const NmsOptions& options,
                                      ThreadPool* pool = nullptr, Simd simd = best_simd());

// The whole head decoded: writes head.rows() * head.columns() floats, upstream's inference output.
// Fails with kInvalid as find_candidates does.
Status decode_rows(const RawHead& head, float* output, ThreadPool* pool = nullptr);

}  // namespace ferry::vision

// A line of the label files that `--save-txt` writes, in Ultralytics' form.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>

namespace ferry::cli {

enum class WriteConfidence : unsigned char { kNo, kYes };

// "class x y width height [confidence]\n": centre and size as parts of a picture of `width` x
// `height` pixels. `box` is x1, y1, x2, y2 in pixels.
inline std::string label_row(int32_t class_id, const std::array<float, 4>& box, float confidence,
                             int64_t width, int64_t height, WriteConfidence write) {
  const auto w = static_cast<double>(width), h = static_cast<double>(height);
  const auto [x1, y1, x2, y2] = box;
  std::string row = fmt::format("{} {:g} {:g} {:g} {:g}", class_id, (x1 + x2) / 2.0 / w,
                                (y1 + y2) / 2.0 / h, (x2 - x1) / w, (y2 - y1) / h);
  if (write == WriteConfidence::kYes) row += fmt::format(" {:g}", confidence);
  return row + "\n";
}

}  // namespace ferry::cli

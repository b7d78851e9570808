// INTER_AREA has three ways, as in OpenCV, since they round differently: ratios of exactly 2 x 2
// (half goes up), other whole ratios (an integer sum, scaled in fp32, half to even), and the rest
// (weights and sums in fp32).
#include "vision/resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "vision/letterbox.h"

namespace ferry::vision {
namespace {

// Of a source position that an output position covers, the part of the output it makes up.
struct Part {
  int64_t from = 0, to = 0;
  float weight = 0;
};

// All parts of one axis, in order of output, then of source.
std::vector<Part> parts_of(int64_t source, int64_t output) {
  constexpr double kNothing = 1e-3;  // of a source pixel; less is left out
  const double scale = static_cast<double>(source) / static_cast<double>(output);
  std::vector<Part> parts;
  for (int64_t to = 0; to < output; ++to) {
    const double begin = static_cast<double>(to) * scale, end = begin + scale;
    const double width = std::min(scale, static_cast<double>(source) - begin);
    const int64_t last = std::min(static_cast<int64_t>(std::floor(end)), source - 1);
    const int64_t first = std::min(static_cast<int64_t>(std::ceil(begin)), last);
    if (static_cast<double>(first) - begin > kNothing) {
      parts.push_back(
          {first - 1, to, static_cast<float>((static_cast<double>(first) - begin) / width)});
    }
    for (int64_t from = first; from < last; ++from) {
      parts.push_back({from, to, static_cast<float>(1.0 / width)});
    }
    const double rest = end - static_cast<double>(last);
    if (rest > kNothing) {
      parts.push_back({last, to, static_cast<float>(std::min({rest, 1.0, width}) / width)});
    }
  }
  return parts;
}

uint8_t to_byte(float value) {
  return static_cast<uint8_t>(std::clamp<long>(std::lrint(value), 0, 255));
}

void shrink_whole(const PictureView& picture, int64_t ratio_x, int64_t ratio_y, Picture& out) {
  const bool halves = ratio_x == 2 && ratio_y == 2;
  const float scale = 1.0f / static_cast<float>(ratio_x * ratio_y);
  std::vector<int64_t> sums(static_cast<size_t>(out.width() * 3));
  for (int64_t y = 0; y < out.height(); ++y) {
    std::ranges::fill(sums, 0);
    for (int64_t dy = 0; dy < ratio_y; ++dy) {
      const uint8_t* row = picture.row(y * ratio_y + dy);
      for (int64_t x = 0; x < out.width(); ++x) {
        for (int64_t dx = 0; dx < ratio_x; ++dx, row += 3) {
          for (int64_t c = 0; c < 3; ++c) sums[x * 3 + c] += row[c];
        }
      }
    }
    uint8_t* to = out.row(y);
    for (size_t i = 0; i < sums.size(); ++i) {
      to[i] = halves ? static_cast<uint8_t>((sums[i] + 2) >> 2)
                     : to_byte(static_cast<float>(sums[i]) * scale);
    }
  }
}

void shrink_parts(const PictureView& picture, Picture& out) {
  const std::vector<Part> across = parts_of(picture.width, out.width());
  const std::vector<Part> down = parts_of(picture.height, out.height());
  const auto samples = static_cast<size_t>(out.width() * 3);
  std::vector<float> line(samples), sums(samples);
  for (size_t i = 0; i < down.size(); ++i) {
    std::ranges::fill(line, 0.0f);
    const uint8_t* row = picture.row(down[i].from);
    for (const Part& part : across) {
      const uint8_t* from = row + part.from * 3;
      float* to = &line[static_cast<size_t>(part.to * 3)];
      for (int c = 0; c < 3; ++c) to[c] += static_cast<float>(from[c]) * part.weight;
    }
    const bool begins = i == 0 || down[i - 1].to != down[i].to;
    const float weight = down[i].weight;
    for (size_t s = 0; s < samples; ++s) sums[s] = (begins ? 0.0f : sums[s]) + weight * line[s];
    if (i + 1 < down.size() && down[i + 1].to == down[i].to) continue;
    uint8_t* to = out.row(down[i].to);
    for (size_t s = 0; s < samples; ++s) to[s] = to_byte(sums[s]);
  }
}

}  // namespace

Result<Picture> shrink(const PictureView& picture, int64_t width, int64_t height) {
  FERRY_CHECK_OK(check_view(picture));
  if (width < 1 || height < 1 || width > picture.width || height > picture.height) {
    return error(Code::kInvalid, "shrink: a picture of {} x {} cannot become {} x {}",
                 picture.width, picture.height, width, height);
  }
  if (width == picture.width && height == picture.height) return Picture::copy_of(picture);
  FERRY_TRY(out, Picture::create(width, height, picture.format));
  if (picture.width % width == 0 && picture.height % height == 0) {
    shrink_whole(picture, picture.width / width, picture.height / height, out);
  } else {
    shrink_parts(picture, out);
  }
  return out;
}

Result<Picture> resize_linear(const PictureView& picture, int64_t width, int64_t height) {
  FERRY_CHECK_OK(check_view(picture));
  FERRY_TRY(plan,
            plan_letterbox(picture.width, picture.height,
                           {.width = width, .height = height, .mode = LetterboxMode::kStretch}));
  FERRY_TRY(out, Picture::create(width, height, picture.format));
  // Letterbox gives red first; told that red is first already, it keeps the order there is.
  PictureView as_it_is = picture;
  as_it_is.format = PixelFormat::kRgb8;
  std::vector<uint8_t> dense(static_cast<size_t>(width * height * kBytesPerPixel));
  FERRY_CHECK_OK(Letterbox(plan).to_bytes(as_it_is, TensorLayout::kNhwc, dense.data()));
  for (int64_t y = 0; y < height; ++y) {
    std::copy_n(&dense[static_cast<size_t>(y * width * 3)], width * 3, out.row(y));
  }
  return out;
}

}  // namespace ferry::vision

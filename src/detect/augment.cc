#include "detect/augment.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace ferry::detect {
namespace {

constexpr float kBorder = 0.447f;  // upstream's scale_img: the ImageNet mean

struct Variant {
  double scale;
  bool mirrored;
};
constexpr Variant kVariants[] = {{1, false}, {0.83, true}, {0.67, false}};

// Bilinear as torch's interpolate(align_corners=False), into the top left corner of a picture of
// border colour.
void scale_into(std::span<const float> input, int64_t height, int64_t width, const Variant& variant,
                int64_t out_height, int64_t out_width, float* output) {
  const auto scaled_h = static_cast<int64_t>(static_cast<double>(height) * variant.scale);
  const auto scaled_w = static_cast<int64_t>(static_cast<double>(width) * variant.scale);
  std::fill_n(output, out_height * out_width * 3, kBorder);
  const float ratio_y = static_cast<float>(height) / static_cast<float>(scaled_h);
  const float ratio_x = static_cast<float>(width) / static_cast<float>(scaled_w);
  for (int64_t y = 0; y < scaled_h; ++y) {
    const float place_y = std::max((static_cast<float>(y) + 0.5f) * ratio_y - 0.5f, 0.0f);
    const auto y0 = static_cast<int64_t>(place_y);
    const int64_t y1 = std::min(y0 + 1, height - 1);
    const float wy = place_y - static_cast<float>(y0);
    for (int64_t x = 0; x < scaled_w; ++x) {
      const float place_x = std::max((static_cast<float>(x) + 0.5f) * ratio_x - 0.5f, 0.0f);
      const auto x0 = static_cast<int64_t>(place_x);
      const int64_t x1 = std::min(x0 + 1, width - 1);
      const float wx = place_x - static_cast<float>(x0);
      for (int64_t c = 0; c < 3; ++c) {
        const auto at = [&](int64_t row, int64_t column) {
          return input[static_cast<size_t>(
              (row * width + (variant.mirrored ? width - 1 - column : column)) * 3 + c)];
        };
        output[(y * out_width + x) * 3 + c] = (1 - wy) * ((1 - wx) * at(y0, x0) + wx * at(y0, x1)) +
                                              wy * ((1 - wx) * at(y1, x0) + wx * at(y1, x1));
      }
    }
  }
}

int64_t round_up(double pixels, int64_t stride) {
  return static_cast<int64_t>(std::ceil(pixels / static_cast<double>(stride))) * stride;
}

}  // namespace

Result<std::vector<vision::Detection>> detect_augmented(Lane& lane, std::span<const float> input,
                                                        int64_t height, int64_t width,
                                                        const vision::NmsOptions& options,
                                                        double& preprocess_ms,
                                                        double& inference_ms) {
  const Network& network = lane.network();
  if (!network.raw_heads() || !network.any_size()) {
    return error(Code::kUnsupported,
                 "--augment runs the network at three sizes, which this {} does not allow",
                 network.source().format);
  }
  const int64_t columns = 5 + network.info().nc;
  std::vector<float> rows;
  for (size_t v = 0; v < std::size(kVariants); ++v) {
    const Variant& variant = kVariants[v];
    InputShape shape{1, height, width};
    if (variant.scale != 1) {
      shape.height = round_up(static_cast<double>(height) * variant.scale, network.stride());
      shape.width = round_up(static_cast<double>(width) * variant.scale, network.stride());
    }
    FERRY_TRY(context, lane.context(shape));
    const ferry_io io = context->input(0);
    const auto begin = std::chrono::steady_clock::now();
    std::vector<float> scaled(static_cast<size_t>(shape.height * shape.width * 3));
    scale_into(input, height, width, variant, shape.height, shape.width, scaled.data());
    FERRY_CHECK_OK(runtime::write_picture(io, 0, scaled.data()));
    const auto start = std::chrono::steady_clock::now();
    preprocess_ms += std::chrono::duration<double, std::milli>(start - begin).count();
    FERRY_CHECK_OK(context->run());
    inference_ms +=
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();

    const std::vector<vision::HeadMap> maps = network.head_maps(*context, 0);
    const vision::RawHead head{maps, network.info().nc};
    std::vector<float> decoded(static_cast<size_t>(head.rows() * columns));
    FERRY_CHECK_OK(vision::decode_rows(head, decoded.data()));
    for (int64_t row = 0; row < head.rows(); ++row) {
      float* box = decoded.data() + row * columns;
      for (int k = 0; k < 4; ++k) box[k] /= static_cast<float>(variant.scale);
      if (variant.mirrored) box[0] = static_cast<float>(width) - box[0];
    }
    // upstream's _clip_augmented: cells per level fall by four, so the last level has rows / (1 + 4
    // + 16) of them.
    int64_t unit = 0, levels = 0;
    for (int64_t power = 1; levels < static_cast<int64_t>(maps.size()); ++levels, power *= 4)
      unit += power;
    const int64_t share = head.rows() / unit;
    int64_t first = 0, last = head.rows();
    if (v == 0) last -= share;
    if (v + 1 == std::size(kVariants)) first += share << (2 * (levels - 1));
    rows.insert(rows.end(), decoded.begin() + first * columns, decoded.begin() + last * columns);
  }
  return vision::detect(vision::DecodedRows{.data = rows.data(),
                                            .rows = static_cast<int64_t>(rows.size()) / columns,
                                            .columns = columns,
                                            .row_stride = columns},
                        options);
}

}  // namespace ferry::detect

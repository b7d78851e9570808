// The letterbox's plan, and the pass over the output rows that carries it out; the arithmetic of a
// row is in letterbox_kernels.cc.
#include "vision/letterbox.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "vision/letterbox_kernels.h"

namespace ferry::vision {
namespace {

// Python's round(): halves go to the even neighbour.
int64_t python_round(double value) { return std::llrint(value); }

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// What one worker needs between two rows.
struct Scratch {
  AlignedVector<int16_t> rows[2];     // resized across
  int64_t held[2] = {-1, -1};         // the picture's row in each
  AlignedVector<uint8_t> pixels;      // one finished row, red first, interleaved
  AlignedVector<uint8_t> channel[3];  // and its planes
};

// A rectangle's rows in the output: writes a finished row, or border, as T in the layout asked for.
template <class T>
struct Target {
  T* output;
  int64_t width, height;
  TensorLayout layout;
  const RowKernels& kernels;

  static T border() {
    if constexpr (std::is_same_v<T, float>) return static_cast<float>(kBorderGray) / 255.0f;
    return kBorderGray;
  }

  // Border from x to `end` of row y.
  void fill(int64_t y, int64_t x, int64_t end) const {
    if (layout == TensorLayout::kNhwc) {
      std::fill(output + (y * width + x) * 3, output + (y * width + end) * 3, border());
      return;
    }
    for (int64_t channel = 0; channel < 3; ++channel) {
      T* row = output + (channel * height + y) * width;
      std::fill(row + x, row + end, border());
    }
  }

  void convert(const uint8_t* from, int64_t n, T* to) const {
    if constexpr (std::is_same_v<T, float>) {
      kernels.to_float(from, n, to);
    } else {
      std::copy_n(from, n, to);
    }
  }

  void write(int64_t y, int64_t x, int64_t pixels, const uint8_t* row, Scratch& scratch) const {
    if (layout == TensorLayout::kNhwc) {
      convert(row, pixels * 3, output + (y * width + x) * 3);
      return;
    }
    auto& channel = scratch.channel;
    kernels.planes(row, pixels, channel[0].data(), channel[1].data(), channel[2].data());
    for (int64_t c = 0; c < 3; ++c) {
      convert(channel[c].data(), pixels, output + (c * height + y) * width + x);
    }
  }
};

// The rows of the scaled picture, red first: resized as the plan says, or only put in order.
struct ScaledRows {
  const PictureView& picture;
  const RowPlan* across;  // null: the picture keeps its size
  const Taps& down;
  const RowKernels& kernels;

  // Valid until the next call with this scratch.
  const uint8_t* row(int64_t y, Scratch& scratch) const {
    uint8_t* out = scratch.pixels.data();
    if (across) {
      resize(y, scratch, out);
      return out;
    }
    if (picture.format == PixelFormat::kRgb8) return picture.row(y);
    kernels.swap(picture.row(y), picture.width, out);
    return out;
  }

 private:
  void resize(int64_t y, Scratch& scratch, uint8_t* out) const {
    // A row of weight 0 need not be resized: an exact ratio of 3 takes one row of three.
    const int64_t first = down.weight0[y] != 0 ? down.first[y] : down.second[y];
    const int64_t second = down.weight1[y] != 0 ? down.second[y] : first;
    // What is there already must not be overwritten by the other.
    const int16_t* row1 = held(second, scratch);
    const int16_t* row0 = resized_across(first, scratch, row1);
    if (!row1) row1 = resized_across(second, scratch, row0);
    kernels.down(row0, row1, down.weight0[y], down.weight1[y], across->pixels * 3, out);
  }

  static const int16_t* held(int64_t y, const Scratch& scratch) {
    for (int slot = 0; slot < 2; ++slot) {
      if (scratch.held[slot] == y) return scratch.rows[slot].data();
    }
    return nullptr;
  }

  // Takes a slot other than `keep`'s (null: any).
  const int16_t* resized_across(int64_t y, Scratch& scratch, const int16_t* keep) const {
    if (const int16_t* row = held(y, scratch)) return row;
    const int slot = scratch.rows[0].data() == keep ? 1 : 0;
    kernels.across(*across, picture.row(y), scratch.rows[slot].data());
    scratch.held[slot] = y;
    return scratch.rows[slot].data();
  }
};

}  // namespace

Result<LetterboxPlan> plan_letterbox(int64_t picture_width, int64_t picture_height,
                                     const LetterboxOptions& options) {
  const auto bad_side = [](int64_t side) { return side < 1 || side > kMaxPictureSide; };
  if (bad_side(picture_width) || bad_side(picture_height)) {
    return error(Code::kInvalid, "letterbox: the picture is {} x {}, sides must be 1 to {}",
                 picture_width, picture_height, kMaxPictureSide);
  }
  if (bad_side(options.width) || bad_side(options.height) || bad_side(options.stride)) {
    return error(Code::kInvalid, "letterbox: input {} x {} with stride {}, each must be 1 to {}",
                 options.width, options.height, options.stride, kMaxPictureSide);
  }
  const double width = static_cast<double>(picture_width);
  const double height = static_cast<double>(picture_height);
  const double fit_x = static_cast<double>(options.width) / width;
  const double fit_y = static_cast<double>(options.height) / height;
  double ratio = std::min(fit_x, fit_y);
  if (!options.scale_up) ratio = std::min(ratio, 1.0);

  LetterboxPlan plan;
  plan.picture_width = picture_width;
  plan.picture_height = picture_height;
  plan.ratio_x = plan.ratio_y = ratio;
  plan.scaled_width = std::max<int64_t>(1, python_round(width * ratio));
  plan.scaled_height = std::max<int64_t>(1, python_round(height * ratio));
  int64_t pad_x = options.width - plan.scaled_width;
  int64_t pad_y = options.height - plan.scaled_height;
  if (options.mode == LetterboxMode::kRect) {
    pad_x %= options.stride;
    pad_y %= options.stride;
  } else if (options.mode == LetterboxMode::kStretch) {
    pad_x = pad_y = 0;
    plan.scaled_width = options.width;
    plan.scaled_height = options.height;
    plan.ratio_x = fit_x;
    plan.ratio_y = fit_y;
  }
  // An odd border has its larger half right and below.
  const double half_x = static_cast<double>(pad_x) / 2;
  const double half_y = static_cast<double>(pad_y) / 2;
  plan.pad_left = python_round(half_x - 0.1);
  plan.pad_top = python_round(half_y - 0.1);
  plan.input_width = plan.scaled_width + plan.pad_left + python_round(half_x + 0.1);
  plan.input_height = plan.scaled_height + plan.pad_top + python_round(half_y + 0.1);
  return plan;
}

Result<InputSize> check_input_size(int64_t height, int64_t width, int64_t stride) {
  const auto bad = [](int64_t side) { return side < 1 || side > kMaxPictureSide; };
  if (bad(height) || bad(width) || bad(stride)) {
    return error(Code::kInvalid, "image size {} x {} with stride {}, each must be 1 to {}", height,
                 width, stride, kMaxPictureSide);
  }
  InputSize size = {round_up(height, stride), round_up(width, stride), ""};
  if (size.height != height || size.width != width) {
    size.warning = fmt::format(
        "--img-size [{}, {}] must be multiple of max stride {}, updating to "
        "[{}, {}]",
        height, width, stride, size.height, size.width);
  }
  return size;
}

struct Letterbox::Tables {
  RowKernels kernels;
  Taps down;
  std::optional<RowPlan> across[2];  // by PixelFormat; made at first use
  std::vector<Scratch> scratch;      // a worker each
};

Letterbox::Letterbox(const LetterboxPlan& plan, Simd simd)
    : plan_(plan), tables_(std::make_unique<Tables>()) {
  tables_->kernels = row_kernels(simd);
  if (plan_.resizes()) tables_->down = vertical_taps(plan_.picture_height, plan_.scaled_height);
}

Letterbox::~Letterbox() = default;
Letterbox::Letterbox(Letterbox&&) noexcept = default;
Letterbox& Letterbox::operator=(Letterbox&&) noexcept = default;

template <class T>
Status Letterbox::run(const PictureView& picture, TensorLayout layout, T* output,
                      ThreadPool* pool) {
  FERRY_CHECK_OK(check_view(picture).within("letterbox"));
  if (picture.width != plan_.picture_width || picture.height != plan_.picture_height) {
    return error(Code::kInvalid, "letterbox: the picture is {} x {}, the plan is for {} x {}",
                 picture.width, picture.height, plan_.picture_width, plan_.picture_height);
  }
  const bool swap = picture.format == PixelFormat::kBgr8;
  const RowPlan* across = nullptr;
  if (plan_.resizes()) {
    std::optional<RowPlan>& row_plan = tables_->across[swap];
    if (!row_plan) {
      row_plan = plan_row(horizontal_taps(picture.width, plan_.scaled_width), picture.width, swap);
    }
    across = &*row_plan;
  }
  const int64_t samples = plan_.scaled_width * 3;
  const int workers = pool ? pool->threads() : 1;
  auto& scratches = tables_->scratch;
  if (static_cast<int>(scratches.size()) < workers) scratches.resize(workers);
  for (Scratch& scratch : scratches) {
    for (auto& row : scratch.rows) row.resize(across ? samples + kRowSlack : 0);
    for (auto& plane : scratch.channel) plane.resize(plan_.scaled_width + kRowSlack);
    scratch.pixels.resize(samples + kRowSlack);
    scratch.held[0] = scratch.held[1] = -1;
  }

  const RowKernels& kernels = tables_->kernels;
  const Target<T> target = {output, plan_.input_width, plan_.input_height, layout, kernels};

  const ScaledRows scaled = {picture, across, tables_->down, kernels};
  const int64_t left = plan_.pad_left;
  const int64_t right = left + plan_.scaled_width;
  const auto rows = [&](int64_t begin, int64_t end, int worker) {
    Scratch& scratch = scratches[worker];
    for (int64_t y = begin; y < end; ++y) {
      const int64_t inner = y - plan_.pad_top;
      if (inner < 0 || inner >= plan_.scaled_height) {
        target.fill(y, 0, plan_.input_width);
        continue;
      }
      target.fill(y, 0, left);
      target.write(y, left, plan_.scaled_width, scaled.row(inner, scratch), scratch);
      target.fill(y, right, plan_.input_width);
    }
  };
  if (pool) {
    pool->parallel_ranges(plan_.input_height, rows);
  } else {
    rows(0, plan_.input_height, 0);
  }
  return {};
}

Status Letterbox::to_float(const PictureView& picture, TensorLayout layout, float* output,
                           ThreadPool* pool) {
  return run(picture, layout, output, pool);
}

Status Letterbox::to_bytes(const PictureView& picture, TensorLayout layout, uint8_t* output,
                           ThreadPool* pool) {
  return run(picture, layout, output, pool);
}

}  // namespace ferry::vision

#include "detect/engine.h"

#include <chrono>
#include <map>
#include <utility>

#include "detect/augment.h"

namespace ferry::detect {
namespace {

using Clock = std::chrono::steady_clock;

// Adds the milliseconds of its life to a counter.
class Stopwatch {
 public:
  explicit Stopwatch(double& ms) : ms_(ms) {}
  ~Stopwatch() { ms_ += std::chrono::duration<double, std::milli>(Clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& ms_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

vision::LetterboxOptions letterbox_options(const Network& network, Fit fit) {
  return {.width = network.nominal().width,
          .height = network.nominal().height,
          .mode = fit == Fit::kRect && network.any_size() ? vision::LetterboxMode::kRect
                                                          : vision::LetterboxMode::kSquare,
          .stride = network.stride()};
}

Result<std::vector<std::vector<vision::Detection>>> Engine::run(
    std::span<const vision::PictureView> pictures, std::span<const vision::LetterboxPlan> plans,
    const vision::NmsOptions& nms, const RunOptions& options) {
  timing_ = {};
  std::vector<Found> results(pictures.size());
  if (!plans.empty()) {
    timing_.input_height = plans.back().input_height;
    timing_.input_width = plans.back().input_width;
  }
  if (options.augment) {
    for (size_t i = 0; i < pictures.size(); ++i) {
      FERRY_CHECK_OK(run_augmented(pictures[i], plans[i], nms, results[i]));
    }
    return results;
  }
  const size_t room =
      static_cast<size_t>(network().any_size() ? options.batch : network().nominal().batch);
  std::map<std::pair<int64_t, int64_t>, std::vector<size_t>> waiting;  // pictures by input size
  for (size_t i = 0; i < pictures.size(); ++i) {
    std::vector<size_t>& group = waiting[{plans[i].input_height, plans[i].input_width}];
    group.push_back(i);
    if (group.size() < room) continue;
    FERRY_CHECK_OK(run_batch(pictures, plans, group, nms, results));
    group.clear();
  }
  for (const auto& [size, group] : waiting) {
    if (!group.empty()) FERRY_CHECK_OK(run_batch(pictures, plans, group, nms, results));
  }
  return results;
}

vision::Letterbox& Engine::letterbox(const vision::LetterboxPlan& plan) {
  if (!letterbox_ || letterbox_->plan() != plan) letterbox_.emplace(plan);
  return *letterbox_;
}

// Image `image` of an input buffer. A quantized network takes the picture's own bytes.
Status Engine::fill(const vision::PictureView& picture, const vision::LetterboxPlan& plan,
                    int64_t image, const ferry_io& io) {
  const auto layout =
      io.layout == FERRY_NHWC ? vision::TensorLayout::kNhwc : vision::TensorLayout::kNchw;
  const int64_t elements = 3 * plan.input_height * plan.input_width;
  if (io.dtype == FERRY_F32) {
    return letterbox(plan).to_float(picture, layout,
                                    static_cast<float*>(io.data) + image * elements);
  }
  if (io.dtype == FERRY_U8 && io.scale == 1.0f / 255 && io.zero_point == 0) {
    return letterbox(plan).to_bytes(picture, layout,
                                    static_cast<uint8_t*>(io.data) + image * elements);
  }
  pixels_.resize(static_cast<size_t>(elements));
  FERRY_CHECK_OK(letterbox(plan).to_float(picture, vision::TensorLayout::kNhwc, pixels_.data()));
  return runtime::write_picture(io, image, pixels_.data());
}

// Pictures of one input size.
Status Engine::run_batch(std::span<const vision::PictureView> pictures,
                         std::span<const vision::LetterboxPlan> plans,
                         std::span<const size_t> batch, const vision::NmsOptions& nms,
                         std::vector<Found>& results) {
  const vision::LetterboxPlan& first = plans[batch[0]];
  const auto count = static_cast<int64_t>(batch.size());
  const InputShape shape = network().any_size()
                               ? InputShape{count, first.input_height, first.input_width}
                               : network().nominal();
  FERRY_TRY(context, lane_.context(shape));
  {
    const Stopwatch watch(timing_.preprocess_ms);
    const ferry_io io = context->input(0);
    for (size_t i = 0; i < batch.size(); ++i) {
      FERRY_CHECK_OK(fill(pictures[batch[i]], plans[batch[i]], static_cast<int64_t>(i), io));
    }
  }
  {
    const Stopwatch watch(timing_.inference_ms);
    FERRY_CHECK_OK(context->run());
  }
  const Stopwatch watch(timing_.postprocess_ms);
  for (size_t i = 0; i < batch.size(); ++i) {
    FERRY_TRY(found, decode(*context, static_cast<int64_t>(i), nms));
    results[batch[i]] = std::move(found);
  }
  return {};
}

Result<Engine::Found> Engine::decode(const runtime::Context& context, int64_t image,
                                     const vision::NmsOptions& nms) const {
  const Network& net = lane_.network();
  if (net.raw_heads()) {
    const std::vector<vision::HeadMap> maps = net.head_maps(context, image);
    return vision::detect(vision::RawHead{maps, net.info().nc}, nms);
  }
  const ferry_io io = context.output(0);  // [batch, rows, 5 + nc]
  const int64_t rows = io.dims[1], columns = io.dims[2];
  return vision::detect(
      vision::DecodedRows{.data = static_cast<const float*>(io.data) + image * rows * columns,
                          .rows = rows,
                          .columns = columns,
                          .row_stride = columns},
      nms);
}

Status Engine::run_augmented(const vision::PictureView& picture, const vision::LetterboxPlan& plan,
                             const vision::NmsOptions& nms, Found& result) {
  pixels_.resize(static_cast<size_t>(3 * plan.input_height * plan.input_width));
  {
    const Stopwatch watch(timing_.preprocess_ms);
    FERRY_CHECK_OK(letterbox(plan).to_float(picture, vision::TensorLayout::kNhwc, pixels_.data()));
  }
  double all_ms = 0;
  const double before = timing_.preprocess_ms + timing_.inference_ms;
  {
    const Stopwatch watch(all_ms);
    FERRY_TRY(found, detect_augmented(lane_, pixels_, plan.input_height, plan.input_width, nms,
                                      timing_.preprocess_ms, timing_.inference_ms));
    result = std::move(found);
  }
  timing_.postprocess_ms += all_ms - (timing_.preprocess_ms + timing_.inference_ms - before);
  return {};
}

}  // namespace ferry::detect

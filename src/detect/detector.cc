// The public API (ferry/ferry.h): letterbox -> network -> head decode and NMS -> boxes in the
// image's pixels.
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "detect/augment.h"
#include "detect/network.h"
#include "ferry/ferry.h"
#include "vision/boxes.h"
#include "vision/decode.h"
#include "vision/letterbox.h"

#ifndef FERRY_VERSION
#error "FERRY_VERSION comes from CMake"
#endif

namespace ferry {
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

vision::PictureView view_of(const Image& image) {
  return {
      image.data, image.width, image.height, image.stride == 0 ? image.width * 3 : image.stride,
      image.format == PixelFormat::kBgr8 ? vision::PixelFormat::kBgr8 : vision::PixelFormat::kRgb8};
}

}  // namespace

struct Detector::Impl {
  Impl(std::shared_ptr<detect::Network> network, const vision::LetterboxOptions& options)
      : lane(std::move(network)), letterbox_options(options) {}

  detect::Lane lane;
  vision::LetterboxOptions letterbox_options;
  Timing timing;
  std::optional<vision::Letterbox>
      letterbox;  // of the last image's plan: a video pays for its tables once
  std::vector<float> augmented_input;

  Status fill(const Image& image, const vision::LetterboxPlan& plan, vision::TensorLayout layout,
              float* to) {
    if (!letterbox || letterbox->plan() != plan) letterbox.emplace(plan);
    return letterbox->to_float(view_of(image), layout, to);
  }

  // One batch of images that have the same input size.
  Status run_batch(std::span<const Image> images, std::span<const vision::LetterboxPlan> plans,
                   std::span<const size_t> batch, const vision::NmsOptions& nms,
                   std::vector<Detections>& results) {
    const detect::Network& network = lane.network();
    const vision::LetterboxPlan& first = plans[batch[0]];
    const auto count = static_cast<int64_t>(batch.size());
    const detect::InputShape shape =
        network.any_size() ? detect::InputShape{count, first.input_height, first.input_width}
                           : network.nominal();
    FERRY_TRY(context, lane.context(shape));
    {
      const Stopwatch watch(timing.preprocess_ms);
      const ferry_io io = context->input(0);
      const auto layout =
          io.layout == FERRY_NHWC ? vision::TensorLayout::kNhwc : vision::TensorLayout::kNchw;
      for (size_t i = 0; i < batch.size(); ++i) {
        float* to =
            static_cast<float*>(io.data) + static_cast<int64_t>(i) * 3 * shape.height * shape.width;
        FERRY_CHECK_OK(fill(images[batch[i]], plans[batch[i]], layout, to));
      }
    }
    {
      const Stopwatch watch(timing.inference_ms);
      FERRY_CHECK_OK(context->run());
    }
    const Stopwatch watch(timing.postprocess_ms);
    for (size_t i = 0; i < batch.size(); ++i) {
      FERRY_TRY(detections, decode(*context, static_cast<int64_t>(i), nms));
      results[batch[i]] = to_image(std::move(detections), plans[batch[i]]);
    }
    return {};
  }

  Result<std::vector<vision::Detection>> decode(const runtime::Context& context, int64_t image,
                                                const vision::NmsOptions& nms) const {
    const detect::Network& network = lane.network();
    if (network.raw_heads()) {
      const std::vector<vision::HeadMap> maps = network.head_maps(context, image);
      return vision::detect(vision::RawHead{maps, network.info().nc}, nms);
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

  static Detections to_image(std::vector<vision::Detection> detections,
                             const vision::LetterboxPlan& plan) {
    vision::scale_boxes(vision::box_scale(plan), detections);
    Detections out;
    for (const vision::Detection& d : detections) {
      out.push_back({d.class_id, d.confidence, {d.box.x1, d.box.y1, d.box.x2, d.box.y2}});
    }
    return out;
  }

  Status run_augmented(const Image& image, const vision::LetterboxPlan& plan,
                       const vision::NmsOptions& nms, Detections& result) {
    augmented_input.resize(static_cast<size_t>(3 * plan.input_height * plan.input_width));
    {
      const Stopwatch watch(timing.preprocess_ms);
      FERRY_CHECK_OK(fill(image, plan, vision::TensorLayout::kNhwc, augmented_input.data()));
    }
    double all_ms = 0;
    const double before = timing.preprocess_ms + timing.inference_ms;
    {
      const Stopwatch watch(all_ms);
      FERRY_TRY(detections,
                detect::detect_augmented(lane, augmented_input, plan.input_height, plan.input_width,
                                         nms, timing.preprocess_ms, timing.inference_ms));
      result = to_image(std::move(detections), plan);
    }
    timing.postprocess_ms += all_ms - (timing.preprocess_ms + timing.inference_ms - before);
    return {};
  }
};

Detector::Detector(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Detector::~Detector() = default;

Result<std::unique_ptr<Detector>> Detector::load(const std::string& path,
                                                 const LoadOptions& options) {
  FERRY_TRY(network, detect::Network::load(path, options));
  const vision::LetterboxOptions letterbox{
      .width = network->nominal().width,
      .height = network->nominal().height,
      // A model with a fixed input takes the whole of it, as upstream's auto=False for exported
      // models.
      .mode = options.fit == Fit::kRect && network->any_size() ? vision::LetterboxMode::kRect
                                                               : vision::LetterboxMode::kSquare,
      .stride = network->stride(),
  };
  return std::unique_ptr<Detector>(
      new Detector(std::make_unique<Impl>(std::move(network), letterbox)));
}

Result<std::unique_ptr<Detector>> Detector::share() const {
  return std::unique_ptr<Detector>(
      new Detector(std::make_unique<Impl>(impl_->lane.shared_network(), impl_->letterbox_options)));
}

Result<Detections> Detector::detect(const Image& image, const DetectOptions& options) {
  FERRY_TRY(results, detect(std::span(&image, 1), options));
  return std::move(results[0]);
}

Result<std::vector<Detections>> Detector::detect(std::span<const Image> images,
                                                 const DetectOptions& options, int64_t batch) {
  if (batch < 1) return error(Code::kInvalid, "a batch of {} images: needs at least 1", batch);
  const vision::NmsOptions nms{.conf_threshold = options.conf_threshold,
                               .iou_threshold = options.iou_threshold,
                               .multi_label = options.multi_label,
                               .agnostic = options.agnostic_nms,
                               .classes = options.classes,
                               .max_detections = options.max_detections};
  FERRY_CHECK_OK(vision::check_options(nms));
  impl_->timing = {};
  std::vector<vision::LetterboxPlan> plans;
  for (const Image& image : images) {
    FERRY_CHECK_OK(vision::check_view(view_of(image)));
    FERRY_TRY(plan, vision::plan_letterbox(image.width, image.height, impl_->letterbox_options));
    impl_->timing.input_height = plan.input_height;
    impl_->timing.input_width = plan.input_width;
    plans.push_back(plan);
  }
  std::vector<Detections> results(images.size());
  if (options.augment) {
    for (size_t i = 0; i < images.size(); ++i) {
      FERRY_CHECK_OK(impl_->run_augmented(images[i], plans[i], nms, results[i]));
    }
    return results;
  }
  const detect::Network& network = impl_->lane.network();
  const size_t room = static_cast<size_t>(network.any_size() ? batch : network.nominal().batch);
  std::map<std::pair<int64_t, int64_t>, std::vector<size_t>> waiting;  // images by input size
  for (size_t i = 0; i < images.size(); ++i) {
    std::vector<size_t>& group = waiting[{plans[i].input_height, plans[i].input_width}];
    group.push_back(i);
    if (group.size() < room) continue;
    FERRY_CHECK_OK(impl_->run_batch(images, plans, group, nms, results));
    group.clear();
  }
  for (const auto& [size, group] : waiting) {
    if (!group.empty()) FERRY_CHECK_OK(impl_->run_batch(images, plans, group, nms, results));
  }
  return results;
}

const std::vector<std::string>& Detector::class_names() const {
  return impl_->lane.network().info().names;
}
int64_t Detector::input_height() const { return impl_->letterbox_options.height; }
int64_t Detector::input_width() const { return impl_->letterbox_options.width; }
const Timing& Detector::timing() const { return impl_->timing; }
Memory Detector::memory() const {
  const runtime::Context* context = impl_->lane.last_context();
  if (context == nullptr) return {};
  const ferry_plan_info info = context->plan().info();
  return {info.weight_bytes, info.context_bytes, info.peak_bytes};
}
std::string Detector::device() const { return impl_->lane.network().device_text(); }
const std::string& Detector::description() const { return impl_->lane.network().description(); }
const std::vector<std::string>& Detector::warnings() const {
  return impl_->lane.network().source().warnings;
}

Result<ImageFile> read_image(const std::string& path) {
  FERRY_TRY(decoded, vision::decode_picture(path));
  auto owner = std::make_shared<const vision::Picture>(std::move(decoded.picture));
  const Image image{owner->data(), owner->width(), owner->height(), owner->stride(),
                    PixelFormat::kBgr8};
  return ImageFile{image, std::move(owner), std::move(decoded.warning)};
}

const char* version() { return FERRY_VERSION; }

}  // namespace ferry

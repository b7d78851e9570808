// The public API (ferry/ferry.h): letterbox plans, the engine, and boxes in the image's pixels.
#include "ferry/ferry.h"

#include "detect/engine.h"
#include "vision/boxes.h"
#include "vision/decode.h"
#include "vision/letterbox.h"

#ifndef FERRY_VERSION
#error "FERRY_VERSION comes from CMake"
#endif

namespace ferry {
namespace {

vision::PictureView view_of(const Image& image) {
  return {
      image.data, image.width, image.height, image.stride == 0 ? image.width * 3 : image.stride,
      image.format == PixelFormat::kBgr8 ? vision::PixelFormat::kBgr8 : vision::PixelFormat::kRgb8};
}

Detections to_image(std::vector<vision::Detection> detections, const vision::LetterboxPlan& plan) {
  vision::scale_boxes(vision::box_scale(plan), detections);
  Detections out;
  for (const vision::Detection& d : detections) {
    out.push_back({d.class_id, d.confidence, {d.box.x1, d.box.y1, d.box.x2, d.box.y2}});
  }
  return out;
}

}  // namespace

struct Detector::Impl {
  Impl(std::shared_ptr<detect::Network> network, const vision::LetterboxOptions& options)
      : engine(std::move(network)), letterbox_options(options) {}

  detect::Engine engine;
  vision::LetterboxOptions letterbox_options;
};

Detector::Detector(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Detector::~Detector() = default;

Result<std::unique_ptr<Detector>> Detector::load(const std::string& path,
                                                 const LoadOptions& options) {
  FERRY_TRY(network, detect::Network::load(path, options));
  const vision::LetterboxOptions letterbox = detect::letterbox_options(*network, options.fit);
  return std::unique_ptr<Detector>(
      new Detector(std::make_unique<Impl>(std::move(network), letterbox)));
}

Result<std::unique_ptr<Detector>> Detector::share() const {
  return std::unique_ptr<Detector>(new Detector(
      std::make_unique<Impl>(impl_->engine.shared_network(), impl_->letterbox_options)));
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
  std::vector<vision::PictureView> views;
  std::vector<vision::LetterboxPlan> plans;
  for (const Image& image : images) {
    const vision::PictureView view = view_of(image);
    FERRY_CHECK_OK(vision::check_view(view));
    FERRY_TRY(plan, vision::plan_letterbox(image.width, image.height, impl_->letterbox_options));
    views.push_back(view);
    plans.push_back(plan);
  }
  FERRY_TRY(found,
            impl_->engine.run(views, plans, nms, {.batch = batch, .augment = options.augment}));
  std::vector<Detections> results;
  for (size_t i = 0; i < found.size(); ++i) {
    results.push_back(to_image(std::move(found[i]), plans[i]));
  }
  return results;
}

const std::vector<std::string>& Detector::class_names() const {
  return impl_->engine.network().info().names;
}
int64_t Detector::input_height() const { return impl_->letterbox_options.height; }
int64_t Detector::input_width() const { return impl_->letterbox_options.width; }
const Timing& Detector::timing() const { return impl_->engine.timing(); }
Memory Detector::memory() const {
  const runtime::Context* context = impl_->engine.last_context();
  if (context == nullptr) return {};
  const ferry_plan_info info = context->plan().info();
  return {info.weight_bytes, info.context_bytes, info.peak_bytes};
}
std::string Detector::device() const { return impl_->engine.network().device_text(); }
const std::string& Detector::description() const { return impl_->engine.network().description(); }
const std::vector<std::string>& Detector::warnings() const {
  return impl_->engine.network().source().warnings;
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

#include "eval/predict.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "base/thread_pool.h"
#include "eval/numpy_order.h"
#include "vision/boxes.h"
#include "vision/decode.h"
#include "vision/letterbox.h"
#include "vision/resize.h"

namespace ferry::eval {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// A picture decoded and brought to the input size.
struct Loaded {
  size_t sample = 0, place = 0;
  int64_t full_width = 0, full_height = 0;  // as decoded
  vision::Picture picture = {};
};

Result<Loaded> load(const std::string& path, int64_t width, int64_t height) {
  FERRY_TRY(decoded, vision::decode_picture(path));
  const vision::Picture& full = decoded.picture;
  const auto full_width = static_cast<double>(full.width());
  const auto full_height = static_cast<double>(full.height());
  const double ratio =
      std::min(static_cast<double>(width) / full_width, static_cast<double>(height) / full_height);
  Loaded loaded{.full_width = full.width(), .full_height = full.height()};
  const auto scaled = [&](double side) {
    return std::max<int64_t>(1, static_cast<int64_t>(side * ratio));
  };
  const int64_t scaled_width = scaled(full_width), scaled_height = scaled(full_height);
  if (ratio == 1) {
    loaded.picture = std::move(decoded.picture);
  } else if (ratio < 1) {
    FERRY_TRY(small, vision::shrink(full, scaled_width, scaled_height));
    loaded.picture = std::move(small);
  } else {
    FERRY_TRY(large, vision::resize_linear(full, scaled_width, scaled_height));
    loaded.picture = std::move(large);
  }
  return loaded;
}

// Input pixels to the whole picture's. The border is not rounded here, as upstream's is not.
vision::BoxScale scale_of(const Loaded& loaded, const vision::LetterboxPlan& plan) {
  return {
      .gain_x = static_cast<double>(plan.scaled_width) / static_cast<double>(loaded.full_width),
      .gain_y = static_cast<double>(plan.scaled_height) / static_cast<double>(loaded.full_height),
      .pad_x = static_cast<double>(plan.input_width - plan.scaled_width) / 2,
      .pad_y = static_cast<double>(plan.input_height - plan.scaled_height) / 2,
      .picture_width = loaded.full_width,
      .picture_height = loaded.full_height};
}

// The smallest rectangle, in parts of the input's longer side, that holds pictures of these aspect
// ratios (height / width).
std::pair<double, double> shared_rectangle(double flattest, double tallest) {
  if (tallest < 1) return {1, tallest};
  if (flattest > 1) return {1 / flattest, 1};
  return {1, 1};
}

}  // namespace

std::vector<Place> plan_batches(const data::Dataset& dataset, int64_t width, int64_t height,
                                int64_t stride, const PredictOptions& options) {
  std::vector<Place> places;
  if (!options.rect) {
    for (size_t i = 0; i < dataset.samples.size(); ++i) places.push_back({i, width, height});
    return places;
  }
  std::vector<double> aspects;  // height / width
  for (const data::Sample& s : dataset.samples)
    aspects.push_back(static_cast<double>(s.height) / static_cast<double>(s.width));
  const std::vector<size_t> order = numpy_argsort(aspects);
  const auto size = static_cast<double>(std::max(width, height));
  const auto side = [&](double part) {
    return static_cast<int64_t>(
               std::ceil(part * size / static_cast<double>(stride) + options.pad)) *
           stride;
  };
  const auto batch = static_cast<size_t>(options.batch);
  for (size_t begin = 0; begin < order.size(); begin += batch) {
    const size_t end = std::min(begin + batch, order.size());
    const auto [part_x, part_y] = shared_rectangle(aspects[order[begin]], aspects[order[end - 1]]);
    for (size_t i = begin; i < end; ++i) places.push_back({order[i], side(part_x), side(part_y)});
  }
  return places;
}

Result<PredictTotals> predict(detect::Engine& engine, const data::Dataset& dataset,
                              const PredictOptions& options,
                              const std::function<Status(const Prediction&)>& each) {
  FERRY_CHECK_OK(vision::check_options(options.nms));
  const detect::Network& network = engine.network();
  const int64_t width = network.nominal().width, height = network.nominal().height;
  PredictOptions planned = options;
  planned.rect = options.rect && network.any_size();
  const std::vector<Place> places = plan_batches(dataset, width, height, network.stride(), planned);
  ThreadPool pool(options.threads);
  PredictTotals totals;
  const auto batch = static_cast<size_t>(options.batch);
  for (size_t begin = 0; begin < places.size(); begin += batch) {
    const size_t end = std::min(begin + batch, places.size());
    const auto start = Clock::now();
    std::vector<std::optional<Result<Loaded>>> results(end - begin);
    pool.parallel_for(static_cast<int64_t>(results.size()), [&](int64_t i, int) {
      const size_t sample = places[begin + static_cast<size_t>(i)].sample;
      results[static_cast<size_t>(i)].emplace(load(dataset.samples[sample].path, width, height));
    });
    std::vector<Loaded> loaded;
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i]->ok()) {
        totals.unread.push_back(results[i]->error().message);
        continue;
      }
      loaded.push_back(*std::move(*results[i]));
      loaded.back().sample = places[begin + i].sample;
      loaded.back().place = i;
    }
    totals.decode_ms += milliseconds_since(start);

    std::vector<vision::PictureView> views;
    std::vector<vision::LetterboxPlan> plans;
    for (const Loaded& l : loaded) {
      FERRY_TRY(plan, vision::plan_letterbox(l.picture.width(), l.picture.height(),
                                             {.width = places[begin].input_width,
                                              .height = places[begin].input_height,
                                              .mode = vision::LetterboxMode::kSquare,
                                              .scale_up = false}));
      views.push_back(l.picture.view());
      plans.push_back(plan);
    }
    // One at a time where the network lets us: on processors a batch takes more memory and is no
    // faster.
    const auto together = static_cast<size_t>(network.any_size() ? 1 : network.nominal().batch);
    for (size_t first = 0; first < loaded.size(); first += together) {
      const size_t count = std::min(together, loaded.size() - first);
      FERRY_TRY(found,
                engine.run({&views[first], count}, {&plans[first], count}, options.nms,
                           {.batch = static_cast<int64_t>(count), .augment = options.augment}));
      totals.preprocess_ms += engine.timing().preprocess_ms;
      totals.inference_ms += engine.timing().inference_ms;
      totals.postprocess_ms += engine.timing().postprocess_ms;
      for (size_t k = 0; k < count; ++k) {
        const size_t i = first + k;
        vision::scale_boxes(scale_of(loaded[i], plans[i]), found[k]);
        ++totals.pictures;
        FERRY_CHECK_OK(each({.sample = loaded[i].sample,
                             .batch = begin / batch,
                             .place = loaded[i].place,
                             .picture = views[i],
                             .input_width = plans[i].input_width,
                             .input_height = plans[i].input_height,
                             .detections = found[k]}));
      }
    }
  }
  return totals;
}

}  // namespace ferry::eval

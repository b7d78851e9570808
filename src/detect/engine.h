// Letterboxed pictures through the network to boxes: fill -> run -> head decode and NMS. What the
// public Detector and the evaluation of datasets share.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "detect/network.h"
#include "ferry/ferry.h"
#include "vision/letterbox.h"
#include "vision/nms.h"

namespace ferry::detect {

// How pictures are fitted into this network's input. A model with a fixed input takes the whole of
// it, as upstream's auto=False for exported models.
vision::LetterboxOptions letterbox_options(const Network& network, Fit fit);

struct RunOptions {
  int64_t batch = 1;     // pictures of one input size that run together, at most
  bool augment = false;  // three scales, one mirrored (augment.h); each picture alone
};

// One thread at a time; engines of one network share its weights and threads.
class Engine {
 public:
  explicit Engine(std::shared_ptr<Network> network) : lane_(std::move(network)) {}

  // The detections of each picture, in order, boxes in input pixels. Pictures that come to the same
  // input size run as batches. REQUIRES: plans[i] is of pictures[i], whose view is sound, and
  // check_options(nms) passes
  Result<std::vector<std::vector<vision::Detection>>> run(
      std::span<const vision::PictureView> pictures, std::span<const vision::LetterboxPlan> plans,
      const vision::NmsOptions& nms, const RunOptions& options);

  // Of the last run().
  const Timing& timing() const { return timing_; }
  Network& network() const { return lane_.network(); }
  const std::shared_ptr<Network>& shared_network() const { return lane_.shared_network(); }
  // (optional)
  const runtime::Context* last_context() const { return lane_.last_context(); }

 private:
  using Found = std::vector<vision::Detection>;

  vision::Letterbox& letterbox(const vision::LetterboxPlan& plan);
  Status fill(const vision::PictureView& picture, const vision::LetterboxPlan& plan, int64_t image,
              const ferry_io& io);
  Status run_batch(std::span<const vision::PictureView> pictures,
                   std::span<const vision::LetterboxPlan> plans, std::span<const size_t> batch,
                   const vision::NmsOptions& nms, std::vector<Found>& results);
  Status run_augmented(const vision::PictureView& picture, const vision::LetterboxPlan& plan,
                       const vision::NmsOptions& nms, Found& result);
  Result<Found> decode(const runtime::Context& context, int64_t image,
                       const vision::NmsOptions& nms) const;

  Lane lane_;
  Timing timing_;
  // Of the last picture's plan: a video pays for its tables once.
  std::optional<vision::Letterbox> letterbox_;
  std::vector<float> pixels_;  // of one picture, where the buffer does not take floats
};

}  // namespace ferry::detect

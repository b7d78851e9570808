// Measures a profile: pictures go through all stages one after another, as `ferry detect` does it,
// and the network runs in turns as always and with a clock read around each of its steps, so that
// the sum of the steps can be held against what a run takes without.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "perf/profile.h"

namespace ferry::perf {

struct ProfileOptions {
  std::string weights = {}, cfg = {}, device = "cpu";
  int threads = 0;                // 0: the processors this process may use
  int64_t height = 0, width = 0;  // pixels; 0: what the model says
  int64_t batch = 1;
  std::string source = {};  // empty: a made-up picture
  bool rect = true;         // the smallest input that holds the source's first picture
  bool tune = false;
  std::vector<std::string> disable_passes = {};

  int64_t runs = 0;           // of each kind; 0: as many as fit into the duration
  double duration_s = 5;      // at least kLeastRuns all the same
  int64_t warmup = 3;         // runs before that
  double peak_seconds = 0.8;  // for the machine's peak; 0: not measured, no roofs
  int64_t trace_runs = 10;    // runs with steps that go into the trace

  double conf_threshold = 0.25, iou_threshold = 0.45;
  int64_t max_detections = 1000;

  std::function<bool()> cancelled = {};                        // (optional)
  std::function<void(const std::string& what)> progress = {};  // (optional)
};

inline constexpr int64_t kLeastRuns = 5;

Result<Profile> measure_profile(const ProfileOptions& options);

}  // namespace ferry::perf

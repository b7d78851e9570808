// ferry's own side of a comparison: a process that answers the requests of peer.h on its standard
// input, as bench/peers/run_peer.py does for the other engines.
#pragma once

#include <cstdint>
#include <cstdio>
#include <iosfwd>
#include <string>
#include <vector>

#include "base/result.h"

namespace ferry::perf {

struct WorkerOptions {
  std::string weights, cfg;
  int64_t height = 0, width = 0;  // pixels; 0: what the model says
  int64_t batch = 1;
  int threads = 1;
  int streams = 1;  // contexts that run at the same time, with the same weights and threads
  bool tune = false;
  bool raw = false;                         // without the decoding of the head
  std::vector<std::string> disable_passes;  // for debugging
  // (optional) A picture: a run is then letterbox, network, decoding and NMS of `batch` copies.
  std::string source;
};

// Loads, then answers until the end of `requests` or "quit". A failure is also answered, once, as
// {"error": ..}, to the first request.
Status serve_bench(const WorkerOptions& options, std::istream& requests, std::FILE* answers);

// Element i of the input that every engine of a comparison is given: a hash of i in [0, 1), simple
// enough to be written in any language (run_peer.py, test_input).
inline float test_input(uint32_t i) {
  uint32_t h = i * 2654435761U;
  h = (h ^ (h >> 15)) * 2246822519U;
  h ^= h >> 13;
  return static_cast<float>(h >> 8) * 0x1p-24F;
}

}  // namespace ferry::perf

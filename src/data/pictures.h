// Looks at a dataset's pictures: whether each decodes, and its size. Remembers what it saw, so that
// the next run only looks at files that changed. Internal to data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/dataset.h"

namespace ferry::data {

enum class Seen : unsigned char { kSound, kDamaged, kCorrupt, kMissing };

struct PictureFacts {
  Seen seen = Seen::kMissing;
  int64_t width = 0, height = 0;  // as shown
  int orientation = 1;            // EXIF
  std::string message = {};       // what is wrong with it
  bool remembered = false;
};

// One a path, in order. `key` names the dataset in the cache. Fails with kCancelled only.
Result<std::vector<PictureFacts>> look_at(std::span<const std::string> paths,
                                          const std::string& key, const OpenOptions& options);

}  // namespace ferry::data

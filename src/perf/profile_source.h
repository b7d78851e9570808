// Pictures for a profile, one after another without end: a picture file again and again, a folder
// round and round, a video that begins anew. Every one is decoded anew, since that is a stage.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "vision/picture.h"
#include "vision/sources.h"
#include "vision/video_reader.h"

namespace ferry::perf {

class ProfileSource {
 public:
  // `source` as `ferry detect --source`: a file, a folder, a pattern, a list. Live streams are
  // refused: their clock, not this machine, says when a picture comes.
  static Result<ProfileSource> open(const std::string& source);
  // One picture of this size, made up: nothing is decoded.
  static Result<ProfileSource> made_up(int64_t width, int64_t height);

  // The next one. Files that cannot be decoded are left out, with a warning; fails when none can.
  Status next(vision::Picture& picture);

  bool is_made_up() const { return !pattern_.empty(); }
  const std::string& text() const { return text_; }  // for people: "12 pictures in images/"
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  ProfileSource() = default;
  Status next_frame(vision::Picture& picture);

  std::vector<vision::Source> sources_;
  size_t position_ = 0;
  std::optional<vision::VideoReader> video_;
  int64_t frames_ = 0;  // of this passage through the video
  vision::Picture pattern_;
  std::string text_;
  std::vector<std::string> warnings_;
};

}  // namespace ferry::perf

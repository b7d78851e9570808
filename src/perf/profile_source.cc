#include "perf/profile_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "vision/decode.h"

namespace ferry::perf {

Result<ProfileSource> ProfileSource::open(const std::string& source) {
  FERRY_TRY(sources, vision::find_sources(source));
  for (const vision::Source& s : sources) {
    if (s.kind == vision::SourceKind::kStream) {
      return error(Code::kUnsupported,
                   "{}: a live stream comes at its own pace; profile a recording of it", s.path);
    }
  }
  if (sources.empty()) return error(Code::kNotFound, "{}: no pictures or videos", source);
  ProfileSource out;
  out.text_ =
      sources.size() == 1 ? sources[0].path : fmt::format("{} files, {}", sources.size(), source);
  out.sources_ = std::move(sources);
  return out;
}

// Smooth colours with some noise, so that no row is like another.
Result<ProfileSource> ProfileSource::made_up(int64_t width, int64_t height) {
  FERRY_TRY(picture, vision::Picture::create(width, height));
  uint32_t noise = 1;
  for (int64_t y = 0; y < height; ++y) {
    uint8_t* row = picture.row(y);
    for (int64_t x = 0; x < width; ++x) {
      noise = noise * 1664525U + 1013904223U;
      row[3 * x] = static_cast<uint8_t>(255 * x / width);
      row[3 * x + 1] = static_cast<uint8_t>(255 * y / height);
      row[3 * x + 2] = static_cast<uint8_t>(noise >> 24);
    }
  }
  ProfileSource out;
  out.text_ = fmt::format("a made-up picture, {}x{}", width, height);
  out.pattern_ = std::move(picture);
  return out;
}

Status ProfileSource::next(vision::Picture& picture) {
  if (is_made_up()) {
    if (picture.width() != pattern_.width() || picture.height() != pattern_.height()) {
      FERRY_TRY(copy, pattern_.clone());
      picture = std::move(copy);
      return {};
    }
    std::memcpy(picture.data(), pattern_.data(),
                static_cast<size_t>(pattern_.stride() * pattern_.height()));
    return {};
  }
  while (!sources_.empty()) {
    position_ %= sources_.size();
    const vision::Source& source = sources_[position_];
    Status status;
    if (source.kind == vision::SourceKind::kVideo) {
      status = next_frame(picture);
      if (status.ok() && !video_) {  // it ended
        ++position_;
        continue;
      }
    } else {
      auto decoded = vision::decode_picture(source.path);
      if (decoded.ok()) {
        picture = std::move(decoded->picture);
        ++position_;
      } else {
        status = std::move(decoded).error();
      }
    }
    if (status.ok()) return {};
    warnings_.push_back(status.error().message);
    video_.reset();
    sources_.erase(sources_.begin() + static_cast<std::ptrdiff_t>(position_));
  }
  return error(Code::kInvalid, "{}: nothing could be decoded: {}", text_,
               warnings_.empty() ? "it is empty" : warnings_.back());
}

// Of the video at position_; closes it at its end.
Status ProfileSource::next_frame(vision::Picture& picture) {
  if (!video_) {
    FERRY_TRY(opened, vision::VideoReader::open(sources_[position_].path));
    video_.emplace(std::move(opened));
    frames_ = 0;
  }
  FERRY_TRY(frame, video_->next(std::move(picture)));
  if (frame) {
    ++frames_;
    picture = std::move(frame->picture);
    return {};
  }
  video_.reset();
  if (frames_ == 0) {
    return error(Code::kInvalid, "{}: no frame could be decoded", sources_[position_].path);
  }
  return {};
}

}  // namespace ferry::perf

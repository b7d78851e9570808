// Frames of a video file or network stream, by FFmpeg's libav*: whatever container and codec it
// knows.
//
// Colours are converted as OpenCV's VideoCapture does it (bicubic chroma, BT.601 coefficients
// whatever the stream declares, its range obeyed), so that detections equal upstream's. A display
// matrix (a phone held upright) is applied. Damaged streams give what can be decoded: packets that
// cannot are skipped and counted. Not here: reconnecting, dropping frames to keep up, cameras as
// devices.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "vision/picture.h"

namespace ferry::vision {

struct VideoOptions {
  // Of every `stride` frames the last is delivered, as upstream's --vid-stride does; the others are
  // decoded (later ones refer to them) but not converted.
  int64_t stride = 1;
  int threads = 0;  // of the decoder; 0: one a core
  bool low_latency =
      false;  // for live sources: no frame threads (each holds a frame back), no input buffer
  double open_timeout = 15;            // seconds; network sources only
  double read_timeout = 15;            // seconds without a frame; network sources only
  std::string rtsp_transport = "tcp";  // "tcp" or "udp"
  int64_t max_pixels = int64_t{1} << 26;
  std::stop_token stop = {};  // when requested, a blocked open or read ends with kCancelled
};

struct VideoInfo {
  int64_t width = 0;   // upright
  int64_t height = 0;  // upright
  double fps = 0;      // average; 0 when the file does not say
  int64_t frames = 0;  // about how many frames the source has, not divided by stride; 0 when
                       // unknown, as for streams
  double seconds = 0;  // about how long; 0 when unknown
  std::string codec;   // FFmpeg's name: "h264"
};

struct VideoFrame {
  Picture picture;       // BGR, upright
  int64_t index = 0;     // in the source, from 0, skipped ones counted
  double seconds = 0;    // since the first frame; never goes back. From the stream, so a variable
                         // rate shows; made from the frame rate where the stream has no times.
  bool damaged = false;  // decoded from data with errors
};

struct VideoCounters {
  int64_t frames = 0;           // decoded, delivered or not
  int64_t damaged_frames = 0;   // of them with errors
  int64_t skipped_packets = 0;  // that could not be decoded at all
};

// One thread at a time.
class VideoReader {
 public:
  // `source` is a path or a URL (rtsp://, http://, ...). Errors: kNotFound, kIo (also timeouts),
  // kInvalid for what is no video or cut before its index, kUnsupported for a codec that this
  // libavcodec lacks, kCancelled.
  static Result<VideoReader> open(const std::string& source, const VideoOptions& options = {});
  ~VideoReader();
  VideoReader(VideoReader&&) noexcept;
  VideoReader& operator=(VideoReader&&) noexcept;

  const VideoInfo& info() const;
  const VideoCounters& counters() const;

  // The next frame, or nothing at the end. An error (kIo, kCancelled) comes after all frames that
  // could be decoded before it, and again at each further call. `reuse` may give an earlier frame's
  // picture back: its memory is used again when it fits.
  Result<std::optional<VideoFrame>> next(Picture reuse = {});

 private:
  struct State;
  explicit VideoReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ferry::vision

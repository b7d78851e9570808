// Writes frames as a video file: H.264 by libx264 where this libav has it, else MPEG-4 part 2, in
// 4:2:0.
//
// Colours use BT.601 without saying so, as OpenCV's VideoWriter does: what VideoReader took apart
// with the same coefficients comes back as it was. Players want even sides: a last odd row or
// column is doubled. The file is written aside and appears under its name when `close` succeeds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "vision/picture.h"

namespace ferry::vision {

enum class VideoCodec : unsigned char {
  kBest,  // H.264 if there is an encoder, else MPEG-4
  kH264,
  kMpeg4,
};

struct VideoWriterOptions {
  double fps =
      25;  // what the source has on average: rate control and the last frame's length go by it
  int quality = 23;  // H.264's CRF: 0 (no loss) to 51; smaller is finer
  int threads = 0;   // of the encoder; 0: one a core
  VideoCodec codec = VideoCodec::kBest;
};

// One thread at a time.
class VideoWriter {
 public:
  // The container goes by the extension: mp4, m4v, mov, mkv. kUnsupported for others or a
  // codec that is not there, kNotFound or kIo when nothing can be written beside `path`.
  static Result<VideoWriter> create(const std::string& path,
                                    const VideoWriterOptions& options = {});
  ~VideoWriter();  // not closed: nothing is left, an older file stays
  VideoWriter(VideoWriter&&) noexcept;
  VideoWriter& operator=(VideoWriter&&) noexcept;

  // The first frame sets the size; later ones of another size are scaled to it (cameras do change).
  // `seconds` is the frame's time on any clock: the file begins at the first frame, and a variable
  // rate is kept to 1/60000 s; a time that does not advance is moved behind the one before. Fails
  // with kIo when the disk is full, after that always.
  Status write(const PictureView& picture, double seconds);

  int64_t frames() const;     // written so far
  std::string codec() const;  // "libx264" or "mpeg4"

  // Writes what the encoder still holds and the index, syncs, renames. kInvalid when there was no
  // frame.
  Status close();

 private:
  struct State;
  explicit VideoWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ferry::vision

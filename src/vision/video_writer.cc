#include "vision/video_writer.h"

extern "C" {
#include <libavutil/opt.h>
}

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "base/mapped_file.h"
#include "vision/libav.h"

namespace ferry::vision {
namespace {

// Holds 24, 25, 30, 50 and 60 frames and milliseconds without rest; MPEG-4 allows no more than
// 65535.
constexpr int kTicks = 60000;
constexpr int kMpeg4Quantizer = 3;  // 2 (fine) to 31

struct CloseOutput {
  void operator()(AVFormatContext* format) const {
    avio_closep(&format->pb);
    avformat_free_context(format);
  }
};
using Output = std::unique_ptr<AVFormatContext, CloseOutput>;

Error io_error(int status) { return error(Code::kIo, "cannot write: {}", libav::words_of(status)); }

const AVCodec* find_codec(VideoCodec wanted) {
  const AVCodec* found = nullptr;
  if (wanted != VideoCodec::kMpeg4) found = avcodec_find_encoder_by_name("libx264");
  if (found == nullptr && wanted != VideoCodec::kH264)
    found = avcodec_find_encoder(AV_CODEC_ID_MPEG4);
  return found;
}

bool known_container(const std::string& path) {
  for (const char* extension : {".mp4", ".m4v", ".mov", ".mkv"})
    if (path.ends_with(extension)) return true;
  return false;
}

int even(int64_t side) { return static_cast<int>(side + side % 2); }

}  // namespace

struct VideoWriter::State {
  VideoWriterOptions options;
  std::optional<PendingFile> file;
  const AVCodec* found = nullptr;
  Output output;
  AVStream* stream = nullptr;
  libav::Codec codec;
  libav::Packet packet{av_packet_alloc()};
  libav::Frame frame{av_frame_alloc()};
  libav::Scaler scaler;
  Picture padded;     // for odd sides
  int64_t width = 0;  // of the first picture
  int64_t height = 0;
  double first_seconds = 0;
  int64_t last_tick = -1;
  int64_t frames = 0;
  std::optional<Error> failure;

  Status start(const PictureView& picture);
  Status open_encoder();
  Status convert(const PictureView& picture);
  Status encode(AVFrame* input);
  Status write(const PictureView& picture, double seconds);
  Status finish();
};

// The first frame: now the size is known.
Status VideoWriter::State::start(const PictureView& picture) {
  width = picture.width;
  height = picture.height;
  if (even(width) > 16384 || even(height) > 16384)
    return error(Code::kUnsupported, "video sides go up to 16384, the picture is {} x {}", width,
                 height);
  AVFormatContext* format = nullptr;
  int status = avformat_alloc_output_context2(&format, nullptr, nullptr, file->temporary().c_str());
  if (status < 0) return io_error(status);
  output.reset(format);
  FERRY_CHECK_OK(open_encoder());
  stream = avformat_new_stream(format, nullptr);
  if (stream == nullptr || avcodec_parameters_from_context(stream->codecpar, codec.get()) < 0)
    return error(Code::kNoMemory, "no memory");
  stream->time_base = codec->time_base;
  stream->avg_frame_rate = codec->framerate;
  status = avio_open(&format->pb, ("file:" + file->temporary()).c_str(), AVIO_FLAG_WRITE);
  if (status < 0) return io_error(status);
  status = avformat_write_header(format, nullptr);
  return status < 0 ? Status(io_error(status)) : Status();
}

Status VideoWriter::State::open_encoder() {
  codec.reset(avcodec_alloc_context3(found));
  if (!codec) return error(Code::kNoMemory, "no memory");
  codec->width = even(width);
  codec->height = even(height);
  codec->pix_fmt = AV_PIX_FMT_YUV420P;
  codec->time_base = {1, kTicks};
  codec->framerate = av_d2q(std::clamp(options.fps, 0.01, 1000.0), 60000);
  codec->thread_count = std::clamp(options.threads, 0, 64);
  if ((output->oformat->flags & AVFMT_GLOBALHEADER) != 0)
    codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  if (found->id == AV_CODEC_ID_H264) {
    av_opt_set(codec->priv_data, "preset", "veryfast", 0);
    av_opt_set_int(codec->priv_data, "crf", std::clamp(options.quality, 0, 51), 0);
  } else {
    codec->flags |= AV_CODEC_FLAG_QSCALE;
    codec->global_quality = kMpeg4Quantizer * FF_QP2LAMBDA;
  }
  const int status = avcodec_open2(codec.get(), found, nullptr);
  if (status < 0)
    return error(Code::kUnsupported, "the encoder {} does not take {} x {} frames: {}", found->name,
                 width, height, libav::words_of(status));
  frame->format = codec->pix_fmt;
  frame->width = codec->width;
  frame->height = codec->height;
  return av_frame_get_buffer(frame.get(), 0) < 0 ? Status(error(Code::kNoMemory, "no memory"))
                                                 : Status();
}

// A copy with even sides, the last row and column doubled.
Result<PictureView> with_even_sides(const PictureView& picture, Picture& room) {
  const int64_t width = even(picture.width);
  const int64_t height = even(picture.height);
  if (room.width() != width || room.height() != height || room.format() != picture.format) {
    FERRY_TRY(made, Picture::create(width, height, picture.format));
    room = std::move(made);
  }
  for (int64_t y = 0; y < height; ++y) {
    uint8_t* row = room.row(y);
    std::memcpy(row, picture.row(std::min(y, picture.height - 1)),
                static_cast<size_t>(picture.width * kBytesPerPixel));
    if (width > picture.width)
      std::memcpy(row + picture.width * kBytesPerPixel, row + (picture.width - 1) * kBytesPerPixel,
                  kBytesPerPixel);
  }
  return room.view();
}

Status VideoWriter::State::convert(const PictureView& picture) {
  PictureView source = picture;
  if (picture.width % 2 != 0 || picture.height % 2 != 0) {
    FERRY_TRY(even_sided, with_even_sides(picture, padded));
    source = even_sided;
  }
  if (av_frame_make_writable(frame.get()) < 0) return error(Code::kNoMemory, "no memory");
  const auto format = picture.format == PixelFormat::kBgr8 ? AV_PIX_FMT_BGR24 : AV_PIX_FMT_RGB24;
  scaler.reset(sws_getCachedContext(
      scaler.release(), static_cast<int>(source.width), static_cast<int>(source.height), format,
      frame->width, frame->height, AV_PIX_FMT_YUV420P, SWS_BICUBIC, nullptr, nullptr, nullptr));
  if (!scaler) return error(Code::kNoMemory, "no memory to convert a frame");
  const uint8_t* const data[4] = {source.data};
  const int stride[4] = {static_cast<int>(source.stride)};
  sws_scale(scaler.get(), data, stride, 0, static_cast<int>(source.height), frame->data,
            frame->linesize);
  return {};
}

// One frame, or null to get the rest out.
Status VideoWriter::State::encode(AVFrame* input) {
  int status = avcodec_send_frame(codec.get(), input);
  while (status >= 0) {
    status = avcodec_receive_packet(codec.get(), packet.get());
    if (status == AVERROR(EAGAIN) || status == AVERROR_EOF) return {};
    if (status < 0) break;
    av_packet_rescale_ts(packet.get(), codec->time_base, stream->time_base);
    packet->stream_index = stream->index;
    status = av_interleaved_write_frame(output.get(), packet.get());  // takes the packet
    if (status >= 0) status = output->pb->error;                      // writing is buffered
    if (status < 0) return io_error(status);
  }
  return error(Code::kInvalid, "the encoder {} failed: {}", found->name, libav::words_of(status));
}

Status VideoWriter::State::write(const PictureView& picture, double seconds) {
  FERRY_CHECK_OK(check_view(picture));
  if (frames == 0) {
    FERRY_CHECK_OK(start(picture));
    first_seconds = std::isfinite(seconds) ? seconds : 0;
  }
  FERRY_CHECK_OK(convert(picture));
  const double tick = (seconds - first_seconds) * kTicks;
  const bool usable = std::isfinite(tick) && tick < 1e15;
  last_tick = std::max<int64_t>(usable ? std::llround(std::max(tick, 0.0)) : 0, last_tick + 1);
  frame->pts = last_tick;
  FERRY_CHECK_OK(encode(frame.get()));
  ++frames;
  return {};
}

Status VideoWriter::State::finish() {
  if (frames == 0) return error(Code::kInvalid, "a video needs at least one frame");
  FERRY_CHECK_OK(encode(nullptr));
  int status = av_write_trailer(output.get());
  if (status >= 0) status = output->pb->error;
  const int closed = avio_closep(&output->pb);
  if (status >= 0) status = closed;
  if (status < 0) return io_error(status);
  return file->commit();
}

VideoWriter::VideoWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
VideoWriter::~VideoWriter() = default;
VideoWriter::VideoWriter(VideoWriter&&) noexcept = default;
VideoWriter& VideoWriter::operator=(VideoWriter&&) noexcept = default;

Result<VideoWriter> VideoWriter::create(const std::string& path,
                                        const VideoWriterOptions& options) {
  libav::quiet();
  auto state = std::make_unique<State>();
  state->options = options;
  if (!state->packet || !state->frame) return error(Code::kNoMemory, "no memory");
  if (!known_container(path))
    return error(Code::kUnsupported,
                 "video '{}': cannot write this kind of file; use .mp4, .m4v, .mov or .mkv", path);
  state->found = find_codec(options.codec);
  if (state->found == nullptr)
    return error(Code::kUnsupported, "video '{}': this libavcodec has no encoder for it", path);
  FERRY_TRY(file, PendingFile::create(path));
  state->file = std::move(file);
  return VideoWriter(std::move(state));
}

int64_t VideoWriter::frames() const { return state_->frames; }
std::string VideoWriter::codec() const { return state_->found->name; }

Status VideoWriter::write(const PictureView& picture, double seconds) {
  State& state = *state_;
  if (state.failure) return *state.failure;
  Status status = state.write(picture, seconds);
  if (!status.ok()) {
    state.failure = std::move(status).error().within(fmt::format("video '{}'", state.file->path()));
    return *state.failure;
  }
  return {};
}

Status VideoWriter::close() {
  State& state = *state_;
  if (state.failure) return *state.failure;
  const std::string path = state.file->path();
  Status status = state.finish().within(fmt::format("video '{}'", path));
  state.failure =
      status.ok() ? error(Code::kInvalid, "video '{}' is closed", path) : status.error();
  state.output.reset();
  state.file.reset();  // removes what was not committed
  return status;
}

}  // namespace ferry::vision

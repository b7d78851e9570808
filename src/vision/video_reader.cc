#include "vision/video_reader.h"

extern "C" {
#include <libavutil/display.h>
}

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "vision/libav.h"
#include "vision/picture_orient.h"

namespace ferry::vision {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kFallbackFps = 25;         // for times in streams that have none
constexpr int kMaxBrokenReads = 1000;       // in a row: then there is nothing more to find
constexpr int kMaxDecodeFailures = 100000;  // likewise

struct CloseInput {
  void operator()(AVFormatContext* format) const { avformat_close_input(&format); }
};
using Input = std::unique_ptr<AVFormatContext, CloseInput>;

// Ends blocking calls of libav: asked by it every now and then. Stands still in memory.
struct Watchdog {
  std::stop_token stop;
  bool timed = false;
  Clock::time_point deadline;

  void start(double seconds) {
    deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e6)));
  }
  bool expired() const { return timed && Clock::now() > deadline; }
  static int ask(void* self) {
    const auto& watchdog = *static_cast<const Watchdog*>(self);
    return watchdog.stop.stop_requested() || watchdog.expired() ? 1 : 0;
  }
};

// Formats that name other files, which libav would open: a video that somebody sent does not say
// what else is read on this machine.
constexpr std::string_view kPlaylists[] = {"hls", "applehttp",         "concat", "dash", "imf",
                                           "sdp", "webm_dash_manifest"};

// "mov,mp4,m4a" -> its parts.
std::vector<std::string_view> libav_names(std::string_view list) {
  std::vector<std::string_view> names;
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    names.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return names;
}

Status refuse_playlist(const std::string& address) {
  AVIOContext* bytes = nullptr;
  if (avio_open(&bytes, address.c_str(), AVIO_FLAG_READ) < 0) return {};  // said when it is opened
  const AVInputFormat* format = nullptr;
  const int status = av_probe_input_buffer2(bytes, &format, address.c_str(), nullptr, 0, 0);
  avio_closep(&bytes);
  if (status < 0 || format == nullptr) return {};
  for (const std::string_view name : libav_names(format->name)) {
    if (std::ranges::find(kPlaylists, name) != std::end(kPlaylists)) {
      return error(Code::kUnsupported,
                   "this is a playlist ({}), which names other files; give those instead", name);
    }
  }
  return {};
}

bool is_url(const std::string& source) { return source.find("://") != std::string::npos; }

Error error_for(int status, const Watchdog& watchdog, std::string_view doing, double timeout) {
  if (watchdog.stop.stop_requested()) return error(Code::kCancelled, "{} was stopped", doing);
  if (watchdog.expired())
    return error(Code::kIo, "{} timed out after {} s; is the source reachable?", doing, timeout);
  switch (status) {
    case AVERROR(ENOENT):
    case AVERROR_HTTP_NOT_FOUND:
      return error(Code::kNotFound, "not found");
    case AVERROR(ENOMEM):
      return error(Code::kNoMemory, "no memory");
    case AVERROR_INVALIDDATA:
    case AVERROR_STREAM_NOT_FOUND:
      return error(Code::kInvalid, "this is not a video, or it is cut before its index: {}",
                   libav::words_of(status));
    case AVERROR_DECODER_NOT_FOUND:
    case AVERROR_PROTOCOL_NOT_FOUND:
      return error(Code::kUnsupported, "{}", libav::words_of(status));
    default:
      return error(Code::kIo, "{} failed: {}", doing, libav::words_of(status));
  }
}

// The EXIF orientation that shows the stored picture as the matrix says. The matrix takes the
// stored (p, q) to (a p + c q, b p + d q); anything but quarter turns and mirrors counts as none.
int orientation_of(const AVStream& stream) {
  size_t size = 0;
  const auto* matrix = reinterpret_cast<const int32_t*>(
      av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, &size));
  if (matrix == nullptr || size < 9 * sizeof(int32_t)) return 1;
  const int32_t a = matrix[0];
  const int32_t b = matrix[1];
  const int32_t c = matrix[3];
  const int32_t d = matrix[4];
  if (b == 0 && c == 0 && a != 0 && d != 0) return a > 0 ? (d > 0 ? 1 : 4) : (d > 0 ? 2 : 3);
  if (a == 0 && d == 0 && b != 0 && c != 0) return b > 0 ? (c > 0 ? 5 : 6) : (c > 0 ? 8 : 7);
  return 1;
}

double rate_of(const AVStream& stream) {
  for (const AVRational rate : {stream.avg_frame_rate, stream.r_frame_rate})
    if (rate.num > 0 && rate.den > 0) return av_q2d(rate);
  return 0;
}

VideoInfo info_of(const AVFormatContext& format, const AVStream& stream, bool sides_swapped) {
  VideoInfo info;
  info.width = stream.codecpar->width;
  info.height = stream.codecpar->height;
  if (sides_swapped) std::swap(info.width, info.height);
  info.fps = rate_of(stream);
  if (stream.duration > 0)
    info.seconds = static_cast<double>(stream.duration) * av_q2d(stream.time_base);
  else if (format.duration > 0)
    info.seconds = static_cast<double>(format.duration) / AV_TIME_BASE;
  info.frames = stream.nb_frames > 0 ? stream.nb_frames : std::llround(info.seconds * info.fps);
  info.codec = avcodec_get_name(stream.codecpar->codec_id);
  return info;
}

}  // namespace

struct VideoReader::State {
  std::string source;
  VideoOptions options;
  Watchdog watchdog;  // before `input`, which asks it until it is closed
  Input input;
  AVStream* stream = nullptr;
  libav::Codec codec;
  libav::Packet packet{av_packet_alloc()};
  libav::Frame frame{av_frame_alloc()};
  libav::Scaler scaler;
  int orientation = 1;
  VideoInfo info;
  VideoCounters counters;
  double first_seconds = std::nan("");
  double last_seconds = 0;
  bool drained = false;          // the decoder has been told that no more packets come
  std::optional<Error> failure;  // to report once the decoder is empty

  Status open();
  Status open_decoder();
  Status read_packet();
  Result<bool> decode_frame();
  double time_of_frame();
  Result<Picture> convert_frame(Picture reuse);
};

Status VideoReader::State::open() {
  libav::quiet();
  const bool url = is_url(source);
  if (!url) {
    std::error_code ignored;
    if (!std::filesystem::exists(source, ignored)) return error(Code::kNotFound, "no such file");
    if (std::filesystem::is_directory(source, ignored))
      return error(Code::kIo, "this is a folder, not a video");
  }
  // "file:" keeps a colon in a path from being taken for a protocol.
  const std::string address = url ? source : "file:" + source;
  if (!url) FERRY_CHECK_OK(refuse_playlist(address));
  watchdog.stop = options.stop;
  watchdog.timed = url;
  watchdog.start(options.open_timeout);
  AVFormatContext* format = avformat_alloc_context();
  if (format == nullptr || !packet || !frame) return error(Code::kNoMemory, "no memory");
  format->interrupt_callback = {Watchdog::ask, &watchdog};
  if (options.low_latency) format->flags |= AVFMT_FLAG_NOBUFFER;
  AVDictionary* settings = nullptr;
  if (source.starts_with("rtsp"))
    av_dict_set(&settings, "rtsp_transport", options.rtsp_transport.c_str(), 0);
  int status =
      avformat_open_input(&format, address.c_str(), nullptr, &settings);  // frees on failure
  av_dict_free(&settings);
  if (status < 0) return error_for(status, watchdog, "opening", options.open_timeout);
  input.reset(format);
  status = avformat_find_stream_info(format, nullptr);
  if (status < 0 || watchdog.expired())
    return error_for(status, watchdog, "opening", options.open_timeout);
  const int index = av_find_best_stream(format, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  if (index < 0) return error(Code::kInvalid, "there is no video in this file");
  stream = format->streams[index];
  for (unsigned i = 0; i < format->nb_streams; ++i)
    if (format->streams[i] != stream) format->streams[i]->discard = AVDISCARD_ALL;
  orientation = orientation_of(*stream);
  info = info_of(*format, *stream, orientation >= 5);
  return open_decoder();
}

Status VideoReader::State::open_decoder() {
  const AVCodec* found = avcodec_find_decoder(stream->codecpar->codec_id);
  if (found == nullptr)
    return error(Code::kUnsupported, "this libavcodec has no decoder for {}", info.codec);
  codec.reset(avcodec_alloc_context3(found));
  if (!codec || avcodec_parameters_to_context(codec.get(), stream->codecpar) < 0)
    return error(Code::kNoMemory, "no memory");
  codec->pkt_timebase = stream->time_base;
  codec->thread_count = std::clamp(options.threads, 0, 64);
  codec->thread_type = options.low_latency ? FF_THREAD_SLICE : FF_THREAD_FRAME | FF_THREAD_SLICE;
  if (options.low_latency) codec->flags |= AV_CODEC_FLAG_LOW_DELAY;
  codec->max_pixels = options.max_pixels;
  const int status = avcodec_open2(codec.get(), found, nullptr);
  if (status < 0)
    return error(Code::kUnsupported, "the {} decoder does not open: {}", info.codec,
                 libav::words_of(status));
  return {};
}

// Gives the decoder one more packet of the video, or tells it that there are no more.
Status VideoReader::State::read_packet() {
  int status = 0;
  for (int broken = 0; broken < kMaxBrokenReads; ++broken) {
    av_packet_unref(packet.get());
    status = av_read_frame(input.get(), packet.get());
    if (status >= 0 && packet->stream_index != stream->index) {
      broken = 0;
      continue;
    }
    if (status != AVERROR(EAGAIN) && status != AVERROR_INVALIDDATA) break;
    if (status == AVERROR_INVALIDDATA) ++counters.skipped_packets;
  }
  if (status < 0) {
    if (status != AVERROR_EOF && status != AVERROR_INVALIDDATA)
      failure = error_for(status, watchdog, "reading", options.read_timeout);
    drained = true;
    avcodec_send_packet(codec.get(), nullptr);
    return {};
  }
  status = avcodec_send_packet(codec.get(), packet.get());
  av_packet_unref(packet.get());
  if (status == AVERROR(ENOMEM)) return error(Code::kNoMemory, "no memory to decode a frame");
  if (status < 0) ++counters.skipped_packets;
  return {};
}

// The next decoded frame into `frame`; false at the end.
Result<bool> VideoReader::State::decode_frame() {
  for (int failures = 0; failures < kMaxDecodeFailures;) {
    const int status = avcodec_receive_frame(codec.get(), frame.get());
    if (status >= 0) {
      ++counters.frames;
      return true;
    }
    if (status == AVERROR_EOF) return false;
    if (status == AVERROR(ENOMEM)) return error(Code::kNoMemory, "no memory to decode a frame");
    if (status == AVERROR(EAGAIN)) {
      if (drained) return false;
      const int64_t skipped = counters.skipped_packets;
      FERRY_CHECK_OK(read_packet());
      failures = counters.skipped_packets > skipped ? failures + 1 : 0;
    } else {
      ++counters.skipped_packets;
      ++failures;
    }
  }
  return false;
}

double VideoReader::State::time_of_frame() {
  const double period = 1 / (info.fps > 0 ? info.fps : kFallbackFps);
  const auto made_up = static_cast<double>(counters.frames - 1) * period;
  double seconds = made_up;
  if (frame->best_effort_timestamp != AV_NOPTS_VALUE) {
    seconds = static_cast<double>(frame->best_effort_timestamp) * av_q2d(stream->time_base);
    if (std::isnan(first_seconds)) first_seconds = seconds - made_up;
    seconds -= first_seconds;
  }
  if (counters.frames > 1 && seconds <= last_seconds) seconds = last_seconds + period;
  last_seconds = seconds;
  return seconds;
}

Result<Picture> VideoReader::State::convert_frame(Picture reuse) {
  const int width = frame->width;
  const int height = frame->height;
  Picture picture = std::move(reuse);
  const bool fits = picture.width() == width && picture.height() == height &&
                    picture.format() == PixelFormat::kBgr8;
  if (!fits) {
    FERRY_TRY(made, Picture::create(width, height));
    picture = std::move(made);
  }
  const auto format = static_cast<AVPixelFormat>(frame->format);
  scaler.reset(sws_getCachedContext(scaler.release(), width, height, format, width, height,
                                    AV_PIX_FMT_BGR24, SWS_BICUBIC, nullptr, nullptr, nullptr));
  if (!scaler)
    return error(Code::kUnsupported, "frames of pixel format {} cannot be converted",
                 frame->format);
  uint8_t* const data[4] = {picture.data()};
  const int stride[4] = {static_cast<int>(picture.stride())};
  sws_scale(scaler.get(), frame->data, frame->linesize, 0, height, data, stride);
  return orient(std::move(picture), orientation);
}

VideoReader::VideoReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
VideoReader::~VideoReader() = default;
VideoReader::VideoReader(VideoReader&&) noexcept = default;
VideoReader& VideoReader::operator=(VideoReader&&) noexcept = default;

Result<VideoReader> VideoReader::open(const std::string& source, const VideoOptions& options) {
  if (options.stride < 1)
    return error(Code::kInvalid, "video stride is {}, needs at least 1", options.stride);
  auto state = std::make_unique<State>();
  state->source = source;
  state->options = options;
  FERRY_CHECK_OK(state->open().within(fmt::format("video '{}'", source)));
  return VideoReader(std::move(state));
}

const VideoInfo& VideoReader::info() const { return state_->info; }
const VideoCounters& VideoReader::counters() const { return state_->counters; }

Result<std::optional<VideoFrame>> VideoReader::next(Picture reuse) {
  State& state = *state_;
  state.watchdog.start(state.options.read_timeout);
  const auto named = [&](Error why) {
    return std::move(why).within(fmt::format("video '{}'", state.source));
  };
  VideoFrame result;
  for (int64_t i = 0; i < state.options.stride; ++i) {
    auto got = state.decode_frame();
    if (!got.ok()) return named(std::move(got).error());
    if (!*got) {
      if (state.failure) return named(*state.failure);
      return std::optional<VideoFrame>();
    }
    result.seconds = state.time_of_frame();
    const bool damaged =
        state.frame->decode_error_flags != 0 || (state.frame->flags & AV_FRAME_FLAG_CORRUPT) != 0;
    state.counters.damaged_frames += damaged ? 1 : 0;
    result.damaged = damaged;
  }
  result.index = state.counters.frames - 1;
  auto picture = state.convert_frame(std::move(reuse));
  if (!picture.ok()) return named(std::move(picture).error());
  result.picture = *std::move(picture);
  return std::optional<VideoFrame>(std::move(result));
}

}  // namespace ferry::vision

// BMP (1 to 32 bits, RLE4, RLE8) and the first frame of a GIF by libavcodec's decoders, turned to
// BGR by libswscale. Both take the whole file as one packet. The size is read here first, so that
// the limit holds before libav works.
#include <cstring>

#include "vision/decode_formats.h"
#include "vision/libav.h"

namespace ferry::vision {
namespace {

uint32_t little16(Bytes bytes, size_t at) {
  return static_cast<uint32_t>(bytes[at]) | static_cast<uint32_t>(bytes[at + 1]) << 8;
}
uint32_t little32(Bytes bytes, size_t at) {
  return little16(bytes, at) | little16(bytes, at + 2) << 16;
}

Result<libav::Codec> open_codec(AVCodecID id, int64_t max_pixels) {
  libav::quiet();
  const AVCodec* found = avcodec_find_decoder(id);
  if (found == nullptr) return error(Code::kUnsupported, "this libavcodec has no such decoder");
  libav::Codec codec(avcodec_alloc_context3(found));
  if (!codec) return error(Code::kNoMemory, "no memory for a decoder");
  codec->thread_count = 1;
  codec->max_pixels = max_pixels;
  const int status = avcodec_open2(codec.get(), found, nullptr);
  if (status < 0) return error(Code::kInvalid, "{}", libav::words_of(status));
  return codec;
}

// 16-bit pixels as OpenCV expands them: the missing low bits are zero.
void expand_16bit(const AVFrame& frame, int green_bits, Picture& picture) {
  for (int64_t y = 0; y < picture.height(); ++y) {
    const uint8_t* in = frame.data[0] + y * frame.linesize[0];
    uint8_t* out = picture.row(y);
    for (int64_t x = 0; x < picture.width(); ++x, in += 2, out += 3) {
      const int pixel = in[0] | in[1] << 8;
      out[0] = static_cast<uint8_t>(pixel << 3);
      out[1] = static_cast<uint8_t>(pixel >> 5 << (8 - green_bits));
      out[2] = static_cast<uint8_t>(pixel >> (5 + green_bits) << 3);
    }
  }
}

Result<Picture> to_bgr(const AVFrame& frame) {
  FERRY_TRY(picture, Picture::create(frame.width, frame.height));
  if (frame.format == AV_PIX_FMT_RGB555LE || frame.format == AV_PIX_FMT_RGB565LE) {
    expand_16bit(frame, frame.format == AV_PIX_FMT_RGB565LE ? 6 : 5, picture);
    return picture;
  }
  const libav::Scaler scaler(sws_getContext(
      frame.width, frame.height, static_cast<AVPixelFormat>(frame.format), frame.width,
      frame.height, AV_PIX_FMT_BGR24, SWS_POINT, nullptr, nullptr, nullptr));
  if (!scaler) return error(Code::kUnsupported, "no conversion from pixel format {}", frame.format);
  uint8_t* const data[4] = {picture.data()};
  const int stride[4] = {static_cast<int>(picture.stride())};
  sws_scale(scaler.get(), frame.data, frame.linesize, 0, frame.height, data, stride);
  return picture;
}

Result<Decoded> decode_one_packet(AVCodecID id, Bytes bytes, const DecodeOptions& options) {
  FERRY_TRY(codec, open_codec(id, options.max_pixels));
  const libav::Packet packet(av_packet_alloc());
  const libav::Frame frame(av_frame_alloc());
  if (!packet || !frame || bytes.size() > INT32_MAX - AV_INPUT_BUFFER_PADDING_SIZE ||
      av_new_packet(packet.get(), static_cast<int>(bytes.size())) < 0)
    return error(Code::kNoMemory, "no memory for a file of {} bytes", bytes.size());
  std::memcpy(packet->data, bytes.data(), bytes.size());  // libav reads past the end of a packet
  int status = avcodec_send_packet(codec.get(), packet.get());
  if (status >= 0) status = avcodec_send_packet(codec.get(), nullptr);
  if (status >= 0) status = avcodec_receive_frame(codec.get(), frame.get());
  if (status < 0) return error(Code::kInvalid, "{}", libav::words_of(status));
  FERRY_CHECK_OK(check_size(frame->width, frame->height, options));
  FERRY_TRY(picture, to_bgr(*frame));
  return Decoded{std::move(picture), 1, ""};
}

}  // namespace

Result<Decoded> decode_bmp(Bytes bytes, const DecodeOptions& options) {
  if (bytes.size() < 26) return error(Code::kInvalid, "the file ends within its header");
  int64_t width = static_cast<int32_t>(little32(bytes, 18));
  int64_t height = static_cast<int32_t>(little32(bytes, 22));
  if (little32(bytes, 14) == 12) {  // OS/2's header has 16-bit sides
    width = little16(bytes, 18);
    height = little16(bytes, 20);
  }
  FERRY_CHECK_OK(check_size(width, height < 0 ? -height : height, options));  // < 0: top row first
  return decode_one_packet(AV_CODEC_ID_BMP, bytes, options);
}

Result<Decoded> decode_gif(Bytes bytes, const DecodeOptions& options) {
  if (bytes.size() < 13) return error(Code::kInvalid, "the file ends within its header");
  FERRY_CHECK_OK(check_size(little16(bytes, 6), little16(bytes, 8), options));
  return decode_one_packet(AV_CODEC_ID_GIF, bytes, options);
}

}  // namespace ferry::vision

// WebP by libwebp: lossy and lossless; alpha is dropped; an animation gives its first frame on the
// canvas.
#include <cstring>
#include <memory>

#include <webp/decode.h>
#include <webp/demux.h>

#include "vision/decode_exif.h"
#include "vision/decode_formats.h"

namespace ferry::vision {
namespace {

const uint8_t* data_of(Bytes bytes) { return reinterpret_cast<const uint8_t*>(bytes.data()); }

const char* name_of(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OK:
      return "no error";
    case VP8_STATUS_OUT_OF_MEMORY:
      return "out of memory";
    case VP8_STATUS_INVALID_PARAM:
      return "invalid parameter";
    case VP8_STATUS_BITSTREAM_ERROR:
      return "broken bitstream";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "unsupported feature";
    case VP8_STATUS_SUSPENDED:
      return "suspended";
    case VP8_STATUS_USER_ABORT:
      return "aborted";
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return "the file ends too early";
  }
  return "unknown error";
}

struct DeleteDemuxer {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};
struct DeleteAnimation {
  void operator()(WebPAnimDecoder* decoder) const { WebPAnimDecoderDelete(decoder); }
};

int orientation_of(Bytes bytes) {
  const WebPData data{data_of(bytes), bytes.size()};
  const std::unique_ptr<WebPDemuxer, DeleteDemuxer> demuxer(WebPDemux(&data));
  if (!demuxer || (WebPDemuxGetI(demuxer.get(), WEBP_FF_FORMAT_FLAGS) & EXIF_FLAG) == 0) return 1;
  WebPChunkIterator chunk;
  if (WebPDemuxGetChunk(demuxer.get(), "EXIF", 1, &chunk) == 0) return 1;
  Bytes exif{reinterpret_cast<const std::byte*>(chunk.chunk.bytes), chunk.chunk.size};
  if (exif.size() > 6 && std::memcmp(exif.data(), "Exif\0", 6) == 0) exif = exif.subspan(6);
  const int orientation = exif_orientation(exif);
  WebPDemuxReleaseChunkIterator(&chunk);
  return orientation;
}

Status read_still(Bytes bytes, Picture& picture) {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0)
    return error(Code::kBug, "libwebp is of another version");
  config.output.colorspace = MODE_BGR;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = picture.data();
  config.output.u.RGBA.stride = static_cast<int>(picture.stride());
  config.output.u.RGBA.size = static_cast<size_t>(picture.stride() * picture.height());
  const VP8StatusCode status = WebPDecode(data_of(bytes), bytes.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (status == VP8_STATUS_OK) return {};
  const Code code = status == VP8_STATUS_OUT_OF_MEMORY ? Code::kNoMemory : Code::kInvalid;
  return error(code, "{}", name_of(status));
}

Status read_first_frame(Bytes bytes, Picture& picture) {
  WebPAnimDecoderOptions options;
  if (WebPAnimDecoderOptionsInit(&options) == 0)
    return error(Code::kBug, "libwebp is of another version");
  options.color_mode = MODE_BGRA;
  const WebPData data{data_of(bytes), bytes.size()};
  const std::unique_ptr<WebPAnimDecoder, DeleteAnimation> decoder(
      WebPAnimDecoderNew(&data, &options));
  WebPAnimInfo info;
  uint8_t* canvas = nullptr;
  int time_ms = 0;
  if (!decoder || WebPAnimDecoderGetInfo(decoder.get(), &info) == 0 ||
      info.canvas_width != picture.width() || info.canvas_height != picture.height() ||
      WebPAnimDecoderGetNext(decoder.get(), &canvas, &time_ms) == 0)
    return error(Code::kInvalid, "the first frame of the animation cannot be read");
  for (int64_t y = 0; y < picture.height(); ++y) {
    uint8_t* out = picture.row(y);
    for (int64_t x = 0; x < picture.width(); ++x, canvas += 4, out += 3)
      std::memcpy(out, canvas, 3);
  }
  return {};
}

}  // namespace

Result<Decoded> decode_webp(Bytes bytes, const DecodeOptions& options) {
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(data_of(bytes), bytes.size(), &features);
  if (status != VP8_STATUS_OK) return error(Code::kInvalid, "{}", name_of(status));
  FERRY_CHECK_OK(check_size(features.width, features.height, options));
  FERRY_TRY(picture, Picture::create(features.width, features.height));
  FERRY_CHECK_OK(features.has_animation != 0 ? read_first_frame(bytes, picture)
                                             : read_still(bytes, picture));
  return Decoded{std::move(picture), orientation_of(bytes), ""};
}

}  // namespace ferry::vision

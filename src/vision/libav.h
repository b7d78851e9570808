// Small owners and helpers around FFmpeg's libav* for vision's still and video files. Internal to
// vision.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/frame.h>
#include <libswscale/swscale.h>
}

#include <memory>
#include <string>

#include "vision/picture.h"

namespace ferry::vision::libav {

struct FreeFrame {
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
};
struct FreePacket {
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
};
struct FreeCodec {
  void operator()(AVCodecContext* codec) const { avcodec_free_context(&codec); }
};
struct FreeScaler {
  void operator()(SwsContext* scaler) const { sws_freeContext(scaler); }
};
using Frame = std::unique_ptr<AVFrame, FreeFrame>;
using Packet = std::unique_ptr<AVPacket, FreePacket>;
using Codec = std::unique_ptr<AVCodecContext, FreeCodec>;
using Scaler = std::unique_ptr<SwsContext, FreeScaler>;

// FFmpeg's own words for an error number.
std::string words_of(int error_number);

// libav prints to standard error by default, from any thread; ferry reports through Result instead.
// Called by everything here that opens a file; keeps a level that somebody has set on purpose.
void quiet();

}  // namespace ferry::vision::libav

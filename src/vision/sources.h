// What a `--source` argument means: the pictures, videos and streams that it names, in the order
// they are read.
//
// Kinds go by suffix, as Ultralytics' dataloaders do (IMG_FORMATS, VID_FORMATS); whether a file
// holds what its name says is found out when it is opened.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ferry::vision {

enum class SourceKind : uint8_t {
  kPicture,
  kVideo,   // a file
  kStream,  // a URL (rtsp, rtmp, http, https, tcp, udp, srt) or a camera's number
};

struct Source {
  std::string path;  // or URL, or the camera's number as given
  SourceKind kind = SourceKind::kPicture;
  bool operator==(const Source&) const = default;
};

// One of:
//   a file            a picture or a video by its suffix; other suffixes are taken for pictures, so
//   that the reader's
//                     message says what is wrong with them
//   a folder          its pictures and videos, sorted by name; not the folders in it
//   a glob            `*`, `?`, `[…]` inside one path component, `**` for any folders; sorted. A
//   file that is literally
//                     called so is preferred.
//   a list (.txt, .streams)   one source a line, blank lines and `#` comments left out; relative
//   names are looked up
//                     from the working folder, then from the list's. What is not there stays in, as
//                     a file that cannot be opened.
//   `-`               such a list on `input` (standard input)
//   a URL or a number a stream
// Errors: kNotFound for what is not there or matches nothing, kInvalid for an empty list, kIo.
Result<std::vector<Source>> find_sources(const std::string& source);
Result<std::vector<Source>> find_sources(const std::string& source, std::istream& input);

bool has_picture_suffix(std::string_view path);
bool has_video_suffix(std::string_view path);

}  // namespace ferry::vision

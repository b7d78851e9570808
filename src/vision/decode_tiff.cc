// TIFF by libtiff's RGBA reader, the way OpenCV reads 8-bit colour: first directory, any
// compression this libtiff knows, 16-bit samples scaled to 8, alpha that is not premultiplied gets
// multiplied in by libtiff. A file that is cut short is an error. Float samples are not supported.
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <tiffio.h>

#include "vision/decode_formats.h"

namespace ferry::vision {
namespace {

// The file in memory as libtiff's handle; keeps the first complaint.
struct Source {
  Bytes bytes;
  uint64_t at = 0;
  char message[256] = "";
};

Source& source_of(thandle_t handle) { return *static_cast<Source*>(handle); }

tmsize_t read_bytes(thandle_t handle, void* to, tmsize_t count) {
  Source& source = source_of(handle);
  if (count < 0 || source.at >= source.bytes.size()) return 0;
  const uint64_t left = source.bytes.size() - source.at;
  const uint64_t taken = std::min<uint64_t>(left, static_cast<uint64_t>(count));
  std::memcpy(to, source.bytes.data() + source.at, taken);
  source.at += taken;
  return static_cast<tmsize_t>(taken);
}

tmsize_t write_nothing(thandle_t, void*, tmsize_t) { return 0; }

toff_t seek(thandle_t handle, toff_t offset, int whence) {
  Source& source = source_of(handle);
  const uint64_t base = whence == SEEK_CUR   ? source.at
                        : whence == SEEK_END ? source.bytes.size()
                                             : 0;
  source.at = base + offset;
  return source.at;
}

int close_nothing(thandle_t) { return 0; }
toff_t size_of(thandle_t handle) { return source_of(handle).bytes.size(); }

// Offers the bytes as if mapped, so libtiff reads in place.
int map_bytes(thandle_t handle, void** base, toff_t* size) {
  Bytes bytes = source_of(handle).bytes;
  *base = const_cast<std::byte*>(bytes.data());
  *size = bytes.size();
  return 1;
}
void unmap_nothing(thandle_t, void*, toff_t) {}

int keep_message(TIFF*, void* user, const char*, const char* format, va_list arguments) {
  auto& source = *static_cast<Source*>(user);
  if (source.message[0] == '\0')
    std::vsnprintf(source.message, sizeof(source.message), format, arguments);
  return 1;  // no global handler after this one
}

int ignore(TIFF*, void*, const char*, const char*, va_list) { return 1; }

struct Close {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
struct FreeOptions {
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
};
using TiffFile = std::unique_ptr<TIFF, Close>;

TiffFile open(Source& source, int64_t max_bytes) {
  const std::unique_ptr<TIFFOpenOptions, FreeOptions> options(TIFFOpenOptionsAlloc());
  if (!options) return nullptr;
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), max_bytes);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), keep_message, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), ignore, &source);
  return TiffFile(TIFFClientOpenExt("", "rm", &source, read_bytes, write_nothing, seek,
                                    close_nothing, size_of, map_bytes, unmap_nothing,
                                    options.get()));
}

struct FreeRaster {
  void operator()(uint32_t* raster) const { std::free(raster); }
};

Error error_of(const Source& source, const char* otherwise) {
  return error(Code::kInvalid, "{}", source.message[0] ? source.message : otherwise);
}

// Ends the RGBA reader with the scope.
struct RgbaReader {
  TIFFRGBAImage image{};
  bool begun = false;
  ~RgbaReader() {
    if (begun) TIFFRGBAImageEnd(&image);
  }
};

Status read_pixels(TIFF* tiff, const Source& source, uint16_t orientation, Picture& picture) {
  char why[1024] = "";
  if (TIFFRGBAImageOK(tiff, why) == 0) return error(Code::kUnsupported, "{}", why);
  RgbaReader reader;
  reader.begun = TIFFRGBAImageBegin(&reader.image, tiff, /*stop=*/1, why) != 0;
  if (!reader.begun) return error(Code::kInvalid, "{}", why);
  reader.image.req_orientation = orientation;  // as stored; decode_picture turns it

  const auto width = static_cast<uint32_t>(picture.width());
  const auto height = static_cast<uint32_t>(picture.height());
  const std::unique_ptr<uint32_t, FreeRaster> raster(
      static_cast<uint32_t*>(std::calloc(size_t{width} * height, sizeof(uint32_t))));
  if (!raster) return error(Code::kNoMemory, "no memory for {} x {} pixels", width, height);
  if (TIFFRGBAImageGet(&reader.image, raster.get(), width, height) == 0)
    return error_of(source, "the pixels cannot be read");
  const uint32_t* in = raster.get();
  for (int64_t y = 0; y < picture.height(); ++y) {
    uint8_t* out = picture.row(y);
    for (int64_t x = 0; x < picture.width(); ++x, ++in, out += 3) {
      out[0] = static_cast<uint8_t>(TIFFGetB(*in));
      out[1] = static_cast<uint8_t>(TIFFGetG(*in));
      out[2] = static_cast<uint8_t>(TIFFGetR(*in));
    }
  }
  return {};
}

}  // namespace

Result<Decoded> decode_tiff(Bytes bytes, const DecodeOptions& options) {
  Source source{.bytes = bytes};
  const TiffFile tiff = open(source, (int64_t{16} << 20) + 8 * options.max_pixels);
  if (!tiff) return error_of(source, "the directory cannot be read");
  uint32_t width = 0;
  uint32_t height = 0;
  if (TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width) == 0 ||
      TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height) == 0)
    return error(Code::kInvalid, "the first directory names no size");
  FERRY_CHECK_OK(check_size(width, height, options));
  uint16_t orientation = ORIENTATION_TOPLEFT;
  TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_ORIENTATION, &orientation);
  if (orientation < 1 || orientation > 8) orientation = ORIENTATION_TOPLEFT;

  FERRY_TRY(picture, Picture::create(width, height));
  FERRY_CHECK_OK(read_pixels(tiff.get(), source, orientation, picture));
  return Decoded{std::move(picture), orientation, ""};
}

}  // namespace ferry::vision

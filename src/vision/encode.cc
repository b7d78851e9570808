#include "vision/encode.h"

#include <jpeglib.h>
#include <png.h>
#include <webp/encode.h>

#include <algorithm>
#include <cctype>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "base/mapped_file.h"

namespace ferry::vision {
namespace {

using Buffer = std::vector<std::byte>;

Status check_sides(const PictureView& picture, int64_t limit, std::string_view format) {
  if (picture.width <= limit && picture.height <= limit) return {};
  return error(Code::kInvalid, "a {} file holds at most {} x {} pixels, the picture is {} x {}",
               format, limit, limit, picture.width, picture.height);
}

// ---- JPEG

struct JpegErrors {
  jpeg_error_mgr base;  // first: libjpeg hands out a pointer to it
  std::jmp_buf on_error;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void jpeg_fail(j_common_ptr info) {
  auto& errors = *reinterpret_cast<JpegErrors*>(info->err);
  errors.base.format_message(info, errors.message);
  std::longjmp(errors.on_error, 1);
}

void jpeg_ignore(j_common_ptr, int) {}

// What must outlive a longjmp; the function that calls libjpeg holds no C++ objects of its own.
struct JpegEncoder {
  jpeg_compress_struct info{};
  JpegErrors errors{};
  unsigned char* data = nullptr;
  unsigned long size = 0;

  JpegEncoder() {
    info.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = jpeg_fail;
    errors.base.emit_message = jpeg_ignore;
  }
  ~JpegEncoder() {
    jpeg_destroy_compress(&info);
    std::free(data);
  }
  JpegEncoder(const JpegEncoder&) = delete;
  JpegEncoder& operator=(const JpegEncoder&) = delete;
};

bool write_jpeg(JpegEncoder& encoder, const PictureView& picture, int quality) {
  if (setjmp(encoder.errors.on_error) != 0) return false;
  jpeg_compress_struct& info = encoder.info;
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, &encoder.data, &encoder.size);
  info.image_width = static_cast<JDIMENSION>(picture.width);
  info.image_height = static_cast<JDIMENSION>(picture.height);
  info.input_components = kBytesPerPixel;
  info.in_color_space = picture.format == PixelFormat::kBgr8 ? JCS_EXT_BGR : JCS_EXT_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<JSAMPROW>(picture.row(info.next_scanline));  // libjpeg only reads it
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  return true;
}

Result<Buffer> encode_jpeg(const PictureView& picture, const EncodeOptions& options) {
  FERRY_CHECK_OK(check_sides(picture, JPEG_MAX_DIMENSION, "JPEG"));
  JpegEncoder encoder;
  if (!write_jpeg(encoder, picture, options.quality))
    return error(Code::kInvalid, "{}", encoder.errors.message);
  const auto* data = reinterpret_cast<const std::byte*>(encoder.data);
  return Buffer(data, data + encoder.size);
}

// ---- PNG

struct PngEncoder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  Buffer file;
  char message[256] = "";

  ~PngEncoder() { png_destroy_write_struct(&png, &info); }
};

[[noreturn]] void png_fail(png_structp png, png_const_charp text) {
  auto& encoder = *static_cast<PngEncoder*>(png_get_error_ptr(png));
  std::snprintf(encoder.message, sizeof(encoder.message), "%s", text);
  png_longjmp(png, 1);
}

void png_ignore(png_structp, png_const_charp) {}

void png_append(png_structp png, png_bytep data, size_t size) {
  auto& encoder = *static_cast<PngEncoder*>(png_get_io_ptr(png));
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  encoder.file.insert(encoder.file.end(), bytes, bytes + size);
}

bool write_png(PngEncoder& encoder, const PictureView& picture) {
  encoder.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &encoder, png_fail, png_ignore);
  if (encoder.png == nullptr) return false;
  if (setjmp(png_jmpbuf(encoder.png)) != 0) return false;
  png_structp png = encoder.png;
  encoder.info = png_create_info_struct(png);
  if (encoder.info == nullptr) return false;
  png_set_user_limits(png, kMaxPictureSide, kMaxPictureSide);
  png_set_write_fn(png, &encoder, png_append, nullptr);
  // Fast settings, OpenCV's: photographs hardly get smaller with more work.
  png_set_compression_level(png, 1);
  png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_SUB);
  png_set_IHDR(png, encoder.info, static_cast<png_uint_32>(picture.width),
               static_cast<png_uint_32>(picture.height), 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, encoder.info);
  if (picture.format == PixelFormat::kBgr8) png_set_bgr(png);
  for (int64_t y = 0; y < picture.height; ++y) png_write_row(png, picture.row(y));
  png_write_end(png, encoder.info);
  return true;
}

Result<Buffer> encode_png(const PictureView& picture, const EncodeOptions&) {
  PngEncoder encoder;
  if (!write_png(encoder, picture))
    return error(Code::kInvalid, "{}",
                 encoder.message[0] ? encoder.message : "libpng cannot start");
  return std::move(encoder.file);
}

// ---- WebP

struct FreeWebp {
  void operator()(uint8_t* data) const { WebPFree(data); }
};

Result<Buffer> encode_webp(const PictureView& picture, const EncodeOptions& options) {
  FERRY_CHECK_OK(check_sides(picture, WEBP_MAX_DIMENSION, "WebP"));
  const auto width = static_cast<int>(picture.width);
  const auto height = static_cast<int>(picture.height);
  const auto stride = static_cast<int>(picture.stride);
  const auto quality = static_cast<float>(options.quality);
  const bool bgr = picture.format == PixelFormat::kBgr8;
  uint8_t* data = nullptr;
  size_t size = 0;
  if (options.quality == 100) {
    size = (bgr ? WebPEncodeLosslessBGR : WebPEncodeLosslessRGB)(picture.data, width, height,
                                                                 stride, &data);
  } else {
    size =
        (bgr ? WebPEncodeBGR : WebPEncodeRGB)(picture.data, width, height, stride, quality, &data);
  }
  const std::unique_ptr<uint8_t, FreeWebp> owner(data);
  if (size == 0) return error(Code::kNoMemory, "libwebp cannot encode {} x {}", width, height);
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  return Buffer(bytes, bytes + size);
}

// ---- BMP: 24 bits, rows from bottom to top, each padded to four bytes.

void put_little(Buffer& file, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) file.push_back(static_cast<std::byte>(value >> (8 * i)));
}

Result<Buffer> encode_bmp(const PictureView& picture, const EncodeOptions&) {
  constexpr int64_t kHeader = 14 + 40;
  const int64_t row_bytes = (picture.width * kBytesPerPixel + 3) / 4 * 4;
  const int64_t size = kHeader + row_bytes * picture.height;
  if (size > INT32_MAX) return error(Code::kInvalid, "a BMP file holds at most 2 GiB");
  Buffer file;
  file.reserve(static_cast<size_t>(size));
  put_little(file, 'B' | 'M' << 8, 2);
  put_little(file, static_cast<uint64_t>(size), 4);
  put_little(file, 0, 4);
  put_little(file, kHeader, 4);
  put_little(file, 40, 4);
  put_little(file, static_cast<uint64_t>(picture.width), 4);
  put_little(file, static_cast<uint64_t>(picture.height), 4);
  put_little(file, 1, 2);
  put_little(file, 24, 2);
  put_little(file, 0, 4);  // not compressed
  put_little(file, static_cast<uint64_t>(size - kHeader), 4);
  put_little(file, 0, 8);  // pixels a metre
  put_little(file, 0, 8);  // colours of a palette
  const bool bgr = picture.format == PixelFormat::kBgr8;
  for (int64_t y = picture.height - 1; y >= 0; --y) {
    const auto* row = reinterpret_cast<const std::byte*>(picture.row(y));
    const size_t start = file.size();
    file.insert(file.end(), row, row + picture.width * kBytesPerPixel);
    if (!bgr)
      for (size_t at = start; at < file.size(); at += 3) std::swap(file[at], file[at + 2]);
    file.resize(start + static_cast<size_t>(row_bytes));
  }
  return file;
}

std::string extension_of(std::string_view path) {
  const size_t dot = path.find_last_of("./");
  if (dot == std::string_view::npos || path[dot] == '/') return "";
  std::string extension(path.substr(dot + 1));
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

}  // namespace

Result<PictureFormat> format_for(std::string_view path) {
  const std::string extension = extension_of(path);
  if (extension == "jpg" || extension == "jpeg" || extension == "jpe") return PictureFormat::kJpeg;
  if (extension == "png") return PictureFormat::kPng;
  if (extension == "webp") return PictureFormat::kWebp;
  if (extension == "bmp") return PictureFormat::kBmp;
  return error(Code::kUnsupported,
               "'{}': cannot write '{}' pictures; use .jpg, .png, .webp or .bmp", path, extension);
}

Result<Buffer> encode_picture(const PictureView& picture, PictureFormat format,
                              const EncodeOptions& options) {
  FERRY_CHECK_OK(check_view(picture));
  if (options.quality < 1 || options.quality > 100)
    return error(Code::kInvalid, "quality is {}, must be 1 to 100", options.quality);
  switch (format) {
    case PictureFormat::kJpeg:
      return encode_jpeg(picture, options);
    case PictureFormat::kPng:
      return encode_png(picture, options);
    case PictureFormat::kWebp:
      return encode_webp(picture, options);
    case PictureFormat::kBmp:
      return encode_bmp(picture, options);
    case PictureFormat::kTiff:
    case PictureFormat::kGif:
      break;
  }
  return error(Code::kUnsupported, "cannot write {} pictures; use JPEG, PNG, WebP or BMP",
               name_of(format));
}

Status encode_picture(const PictureView& picture, const std::string& path,
                      const EncodeOptions& options) {
  FERRY_TRY(format, format_for(path));
  FERRY_TRY(file, encode_picture(picture, format, options).within(path));
  return write_file(path, file);
}

}  // namespace ferry::vision

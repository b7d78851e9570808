// PNG by libpng: every colour type and depth, interlaced or not, turned to BGR 8 bits by libpng's
// own transforms. An animated PNG gives its default picture. A file that ends before its last row
// is an error, as in OpenCV.
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

#include <png.h>

#include "vision/decode_exif.h"
#include "vision/decode_formats.h"

namespace ferry::vision {
namespace {

// Everything that must outlive a longjmp. Functions that call libpng hold no C++ objects of their
// own.
struct Decoder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  png_infop end_info = nullptr;
  Bytes rest;
  char message[256] = "";
  bool rows_done = false;

  ~Decoder() { png_destroy_read_struct(&png, &info, &end_info); }
};

[[noreturn]] void fail(png_structp png, png_const_charp text) {
  auto& decoder = *static_cast<Decoder*>(png_get_error_ptr(png));
  std::snprintf(decoder.message, sizeof(decoder.message), "%s", text);
  png_longjmp(png, 1);
}

void ignore(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep to, size_t count) {
  auto& decoder = *static_cast<Decoder*>(png_get_io_ptr(png));
  if (count > decoder.rest.size()) png_error(png, "the file ends too early");
  std::memcpy(to, decoder.rest.data(), count);
  decoder.rest = decoder.rest.subspan(count);
}

bool read_header(Decoder& decoder) {
  decoder.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &decoder, fail, ignore);
  if (decoder.png == nullptr) return false;
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  decoder.info = png_create_info_struct(decoder.png);
  decoder.end_info = png_create_info_struct(decoder.png);
  if (decoder.info == nullptr || decoder.end_info == nullptr) return false;
  png_set_user_limits(decoder.png, kMaxPictureSide, kMaxPictureSide);
  png_set_chunk_malloc_max(decoder.png, 8 << 20);  // a text chunk can unfold to gigabytes
  png_set_chunk_cache_max(decoder.png, 128);
  png_set_read_fn(decoder.png, &decoder, read_bytes);
  png_read_info(decoder.png, decoder.info);
  return true;
}

void ask_for_bgr(Decoder& decoder) {
  png_structp png = decoder.png;
  const int color = png_get_color_type(png, decoder.info);
  const int depth = png_get_bit_depth(png, decoder.info);
  if (depth == 16) png_set_strip_16(png);  // the high byte
  png_set_strip_alpha(png);
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if ((color & PNG_COLOR_MASK_COLOR) != 0) {
    png_set_bgr(png);
  } else {
    if (depth < 8) png_set_expand_gray_1_2_4_to_8(png);
    png_set_gray_to_rgb(png);
  }
  png_set_interlace_handling(png);
  png_read_update_info(png, decoder.info);
}

bool read_pixels(Decoder& decoder, const Picture& picture, png_bytepp rows) {
  if (setjmp(png_jmpbuf(decoder.png)) != 0) return false;
  ask_for_bgr(decoder);
  if (png_get_rowbytes(decoder.png, decoder.info) !=
      static_cast<size_t>(picture.width() * kBytesPerPixel))
    png_error(decoder.png, "unexpected row size");
  png_read_image(decoder.png, rows);
  decoder.rows_done = true;
  png_read_end(decoder.png, decoder.end_info);
  return true;
}

// The eXIf chunk may stand before or behind the pixels.
int orientation_of(const Decoder& decoder) {
  png_uint_32 size = 0;
  png_bytep exif = nullptr;
  if (png_get_eXIf_1(decoder.png, decoder.info, &size, &exif) == 0 &&
      png_get_eXIf_1(decoder.png, decoder.end_info, &size, &exif) == 0)
    return 1;
  return exif_orientation({reinterpret_cast<const std::byte*>(exif), size});
}

Error error_of(const Decoder& decoder) {
  return error(Code::kInvalid, "{}", decoder.message[0] ? decoder.message : "libpng cannot start");
}

}  // namespace

Result<Decoded> decode_png(Bytes bytes, const DecodeOptions& options) {
  Decoder decoder{.rest = bytes};
  if (!read_header(decoder)) return error_of(decoder);
  const int64_t width = png_get_image_width(decoder.png, decoder.info);
  const int64_t height = png_get_image_height(decoder.png, decoder.info);
  FERRY_CHECK_OK(check_size(width, height, options));

  FERRY_TRY(picture, Picture::create(width, height));
  std::vector<png_bytep> rows(static_cast<size_t>(height));
  for (int64_t y = 0; y < height; ++y) rows[static_cast<size_t>(y)] = picture.row(y);
  Decoded decoded;
  if (!read_pixels(decoder, picture, rows.data())) {
    if (!decoder.rows_done) return error_of(decoder);
    decoded.warning = decoder.message;  // all pixels are there, what follows them is broken
  }
  decoded.orientation = orientation_of(decoder);
  decoded.picture = std::move(picture);
  return decoded;
}

}  // namespace ferry::vision

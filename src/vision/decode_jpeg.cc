// JPEG by libjpeg-turbo: baseline, progressive, any sampling, gray, RGB, YCbCr, CMYK and YCCK.
// A file that ends early gives what was read, the rest gray, and a warning: as OpenCV's imread
// does.
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

#include <jpeglib.h>

#include "vision/decode_exif.h"
#include "vision/decode_formats.h"

namespace ferry::vision {
namespace {

// Encoders write about ten scans; a hostile file can ask for thousands of passes over the whole
// picture.
constexpr int kMaxScans = 64;

struct ErrorManager {
  jpeg_error_mgr base;  // first: libjpeg hands out a pointer to it
  std::jmp_buf on_error;
  char message[JMSG_LENGTH_MAX] = "";
  char warning[JMSG_LENGTH_MAX] = "";
};

ErrorManager& manager_of(j_common_ptr info) { return *reinterpret_cast<ErrorManager*>(info->err); }

[[noreturn]] void fail(j_common_ptr info) {
  ErrorManager& manager = manager_of(info);
  manager.base.format_message(info, manager.message);
  std::longjmp(manager.on_error, 1);
}

void note(j_common_ptr info, int level) {
  if (level >= 0) return;  // traces
  ErrorManager& manager = manager_of(info);
  if (manager.base.num_warnings++ == 0) manager.base.format_message(info, manager.warning);
}

void limit_scans(j_common_ptr info) {
  const auto* decoder = reinterpret_cast<j_decompress_ptr>(info);
  if (decoder->input_scan_number <= kMaxScans) return;
  ErrorManager& manager = manager_of(info);
  std::snprintf(manager.message, sizeof(manager.message), "more than %d scans", kMaxScans);
  std::longjmp(manager.on_error, 1);
}

// Everything that must outlive a longjmp. Functions that call libjpeg hold no C++ objects of their
// own.
struct Decoder {
  jpeg_decompress_struct info{};
  ErrorManager errors{};
  jpeg_progress_mgr progress{};

  Decoder() {
    info.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = fail;
    errors.base.emit_message = note;
    progress.progress_monitor = limit_scans;
  }
  ~Decoder() { jpeg_destroy_decompress(&info); }  // fine before jpeg_create_decompress too
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
};

bool read_header(Decoder& decoder, Bytes bytes, int64_t max_memory) {
  if (setjmp(decoder.errors.on_error) != 0) return false;
  jpeg_create_decompress(&decoder.info);
  decoder.info.mem->max_memory_to_use = static_cast<long>(max_memory);
  decoder.info.progress = &decoder.progress;
  jpeg_mem_src(&decoder.info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_save_markers(&decoder.info, JPEG_APP0 + 1, 0xffff);
  jpeg_read_header(&decoder.info, TRUE);
  return true;
}

int orientation_of(const jpeg_decompress_struct& info) {
  constexpr char kExif[] = "Exif\0";  // and the terminating zero: six bytes
  for (const jpeg_marker_struct* m = info.marker_list; m != nullptr; m = m->next)
    if (m->marker == JPEG_APP0 + 1 && m->data_length > sizeof(kExif) &&
        std::memcmp(m->data, kExif, sizeof(kExif)) == 0)
      return exif_orientation({reinterpret_cast<const std::byte*>(m->data) + sizeof(kExif),
                               m->data_length - sizeof(kExif)});
  return 1;
}

// OpenCV's formula, which takes CMYK as Adobe writes it (inverted) whatever the file says.
void cmyk_to_bgr(const uint8_t* cmyk, uint8_t* bgr, int64_t width) {
  for (int64_t x = 0; x < width; ++x, cmyk += 4, bgr += 3) {
    const int k = cmyk[3];
    for (int c = 0; c < 3; ++c) bgr[2 - c] = static_cast<uint8_t>(k - (((255 - cmyk[c]) * k) >> 8));
  }
}

// `line` is scratch for one CMYK row, empty otherwise.
bool read_pixels(Decoder& decoder, Picture& picture, std::vector<uint8_t>& line) {
  if (setjmp(decoder.errors.on_error) != 0) return false;
  jpeg_decompress_struct& info = decoder.info;
  info.out_color_space = info.num_components == 4 ? JCS_CMYK : JCS_EXT_BGR;
  jpeg_start_decompress(&info);
  while (info.output_scanline < info.output_height) {
    uint8_t* const row = picture.row(info.output_scanline);
    JSAMPROW target = line.empty() ? row : line.data();
    if (jpeg_read_scanlines(&info, &target, 1) != 1) return false;
    if (!line.empty()) cmyk_to_bgr(line.data(), row, picture.width());
  }
  return true;
}

Error error_of(const Decoder& decoder) {
  return error(Code::kInvalid, "{}", decoder.errors.message);
}

}  // namespace

Result<Decoded> decode_jpeg(Bytes bytes, const DecodeOptions& options) {
  Decoder decoder;
  const int64_t max_memory = (int64_t{64} << 20) + 16 * options.max_pixels;
  if (!read_header(decoder, bytes, max_memory)) return error_of(decoder);
  const jpeg_decompress_struct& info = decoder.info;
  FERRY_CHECK_OK(check_size(info.image_width, info.image_height, options));

  Decoded decoded;
  decoded.orientation = orientation_of(info);
  FERRY_TRY(picture, Picture::create(info.image_width, info.image_height));
  std::vector<uint8_t> line;
  if (info.num_components == 4) line.resize(size_t{info.image_width} * 4);
  if (!read_pixels(decoder, picture, line)) return error_of(decoder);
  decoded.picture = std::move(picture);
  if (decoder.errors.base.num_warnings > 0) decoded.warning = decoder.errors.warning;
  return decoded;
}

}  // namespace ferry::vision

#include "vision/draw_label.h"

#include <pango/pangocairo.h>

#include <algorithm>
#include <cstring>
#include <utility>

#ifdef __SANITIZE_ADDRESS__
// fontconfig keeps its configuration until the process ends, and Pango's worker thread holds some
// of it out of sight of the leak checker: the same few kilobytes however many labels are drawn.
extern "C" const char* __lsan_default_suppressions() { return "leak:libfontconfig\n"; }
#endif

namespace ferry::vision {
namespace {

constexpr size_t kKeptLabels = 512;
constexpr glong kMaxCharacters = 200;
constexpr int kMaxMaskSide = 16384;

struct Unref {
  void operator()(void* object) const { g_object_unref(object); }
};
struct FreeFont {
  void operator()(PangoFontDescription* font) const { pango_font_description_free(font); }
};
struct FreeText {
  void operator()(char* text) const { g_free(text); }
};
struct DestroySurface {
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
};
struct DestroyCairo {
  void operator()(cairo_t* cairo) const { cairo_destroy(cairo); }
};

using Layout = std::unique_ptr<PangoLayout, Unref>;
using Surface = std::unique_ptr<cairo_surface_t, DestroySurface>;
using Cairo = std::unique_ptr<cairo_t, DestroyCairo>;

// Valid UTF-8 of at most kMaxCharacters.
std::string shown_text(const std::string& text) {
  const std::unique_ptr<char, FreeText> valid(
      g_utf8_make_valid(text.data(), static_cast<gssize>(std::min<size_t>(text.size(), 4096))));
  if (g_utf8_strlen(valid.get(), -1) <= kMaxCharacters) return valid.get();
  const char* end = g_utf8_offset_to_pointer(valid.get(), kMaxCharacters);
  return std::string(static_cast<const char*>(valid.get()), end) + "…";
}

bool any_font(PangoContext* context, const PangoFontDescription* font) {
  const std::unique_ptr<PangoFont, Unref> found(pango_context_load_font(context, font));
  return found != nullptr;
}

}  // namespace

struct LabelMaker::Pango {
  std::unique_ptr<PangoFontMap, Unref> map;
  std::unique_ptr<PangoContext, Unref> context;
  std::unique_ptr<PangoFontDescription, FreeFont> font;
};

LabelMaker::LabelMaker(std::unique_ptr<Pango> pango) : pango_(std::move(pango)) {}
LabelMaker::~LabelMaker() = default;
LabelMaker::LabelMaker(LabelMaker&&) noexcept = default;
LabelMaker& LabelMaker::operator=(LabelMaker&&) noexcept = default;

Result<LabelMaker> LabelMaker::create(const std::string& font) {
  auto pango = std::make_unique<Pango>();
  pango->map.reset(pango_cairo_font_map_new());
  pango->context.reset(pango_font_map_create_context(pango->map.get()));
  pango->font.reset(pango_font_description_from_string(font.c_str()));
  if (!any_font(pango->context.get(), pango->font.get()))
    return error(
        Code::kUnsupported,
        "no font is installed, labels cannot be drawn; install one, on Debian `apt-get install "
        "fonts-dejavu-core fonts-wqy-microhei`, or hide the labels");
  return LabelMaker(std::move(pango));
}

Result<const LabelMask*> LabelMaker::mask(const std::string& text, int64_t pixels) {
  const std::string key = std::to_string(pixels) + ' ' + text;
  if (const auto found = kept_.find(key); found != kept_.end()) return &found->second;

  pango_font_description_set_absolute_size(pango_->font.get(),
                                           static_cast<double>(pixels) * PANGO_SCALE);
  const Layout layout(pango_layout_new(pango_->context.get()));
  pango_layout_set_font_description(layout.get(), pango_->font.get());
  pango_layout_set_single_paragraph_mode(layout.get(), TRUE);
  pango_layout_set_text(layout.get(), shown_text(text).c_str(), -1);
  int width = 0;
  int height = 0;
  pango_layout_get_pixel_size(layout.get(), &width, &height);
  width = std::clamp(width, 1, kMaxMaskSide);
  height = std::clamp(height, 1, kMaxMaskSide);

  const Surface surface(cairo_image_surface_create(CAIRO_FORMAT_A8, width, height));
  const Cairo cairo(cairo_create(surface.get()));
  pango_cairo_show_layout(cairo.get(), layout.get());
  cairo_surface_flush(surface.get());
  if (cairo_status(cairo.get()) != CAIRO_STATUS_SUCCESS)
    return error(Code::kNoMemory, "label '{}' cannot be drawn: {}", text,
                 cairo_status_to_string(cairo_status(cairo.get())));

  LabelMask mask{width, height, {}, pango_layout_get_unknown_glyphs_count(layout.get())};
  mask.coverage.resize(static_cast<size_t>(mask.width * mask.height));
  const uint8_t* data = cairo_image_surface_get_data(surface.get());
  const int stride = cairo_image_surface_get_stride(surface.get());
  for (int64_t y = 0; y < mask.height; ++y)
    std::memcpy(&mask.coverage[static_cast<size_t>(y * mask.width)], data + y * stride,
                static_cast<size_t>(mask.width));
  if (kept_.size() >= kKeptLabels) kept_.clear();
  return &(kept_[key] = std::move(mask));
}

}  // namespace ferry::vision

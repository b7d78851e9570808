#include "vision/chart_canvas.h"

#include <pango/pangocairo.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "vision/draw_label.h"

namespace ferry::vision {
namespace {

constexpr int64_t kMaxCanvasSide = 32767;  // Cairo's

struct Unref {
  void operator()(void* object) const { g_object_unref(object); }
};
struct FreeFont {
  void operator()(PangoFontDescription* font) const { pango_font_description_free(font); }
};
struct FreeOptions {
  void operator()(cairo_font_options_t* options) const { cairo_font_options_destroy(options); }
};
struct DestroySurface {
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
};
struct DestroyCairo {
  void operator()(cairo_t* cairo) const { cairo_destroy(cairo); }
};

}  // namespace

struct ChartCanvas::State {
  int64_t width = 0, height = 0;
  std::unique_ptr<cairo_surface_t, DestroySurface> surface;
  std::unique_ptr<cairo_t, DestroyCairo> cairo;
  std::unique_ptr<PangoFontMap, Unref> map;
  std::unique_ptr<PangoContext, Unref> context;
  std::unique_ptr<PangoFontDescription, FreeFont> font;
  std::unique_ptr<PangoLayout, Unref> layout;

  void set_color(Color color, double opacity = 1) {
    cairo_set_source_rgba(cairo.get(), color.red / 255.0, color.green / 255.0, color.blue / 255.0,
                          opacity);
  }
  void set_text(const std::string& text, double size, bool bold) {
    pango_font_description_set_absolute_size(font.get(), size * PANGO_SCALE);
    pango_font_description_set_weight(font.get(), bold ? PANGO_WEIGHT_BOLD : PANGO_WEIGHT_NORMAL);
    pango_layout_set_font_description(layout.get(), font.get());
    char* valid = g_utf8_make_valid(text.data(), static_cast<gssize>(text.size()));
    pango_layout_set_text(layout.get(), valid, -1);
    g_free(valid);
  }
  TextSize text_size() const {
    PangoRectangle box;
    pango_layout_get_extents(layout.get(), nullptr, &box);
    return {static_cast<double>(box.width) / PANGO_SCALE,
            static_cast<double>(box.height) / PANGO_SCALE};
  }
};

ChartCanvas::ChartCanvas(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChartCanvas::~ChartCanvas() = default;
ChartCanvas::ChartCanvas(ChartCanvas&&) noexcept = default;
ChartCanvas& ChartCanvas::operator=(ChartCanvas&&) noexcept = default;

Result<ChartCanvas> ChartCanvas::create(int64_t width, int64_t height, const std::string& font) {
  if (width < 1 || height < 1 || width > kMaxCanvasSide || height > kMaxCanvasSide) {
    return error(Code::kInvalid, "a figure of {} x {} pixels cannot be drawn; sides are 1 to {}",
                 width, height, kMaxCanvasSide);
  }
  // It knows what to tell where no font is installed.
  if (Result<LabelMaker> labels = LabelMaker::create(font); !labels.ok()) {
    return std::move(labels).error();
  }
  auto state = std::make_unique<State>();
  state->width = width;
  state->height = height;
  state->surface.reset(cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(width),
                                                  static_cast<int>(height)));
  state->cairo.reset(cairo_create(state->surface.get()));
  if (const cairo_status_t status = cairo_status(state->cairo.get());
      status != CAIRO_STATUS_SUCCESS) {
    return error(Code::kNoMemory, "a figure of {} x {} pixels cannot be drawn: {}", width, height,
                 cairo_status_to_string(status));
  }
  state->map.reset(pango_cairo_font_map_new());
  state->context.reset(pango_font_map_create_context(state->map.get()));
  // Lengths of texts do not depend on where they stand.
  const std::unique_ptr<cairo_font_options_t, FreeOptions> options(cairo_font_options_create());
  cairo_font_options_set_hint_style(options.get(), CAIRO_HINT_STYLE_NONE);
  cairo_font_options_set_hint_metrics(options.get(), CAIRO_HINT_METRICS_OFF);
  cairo_font_options_set_antialias(options.get(), CAIRO_ANTIALIAS_GRAY);
  pango_cairo_context_set_font_options(state->context.get(), options.get());
  state->font.reset(pango_font_description_from_string(font.c_str()));
  state->layout.reset(pango_layout_new(state->context.get()));
  pango_layout_set_single_paragraph_mode(state->layout.get(), TRUE);
  state->set_color({255, 255, 255});
  cairo_paint(state->cairo.get());
  return ChartCanvas(std::move(state));
}

TextSize ChartCanvas::measure(const std::string& text, double size) const {
  state_->set_text(text, size, false);
  return state_->text_size();
}

void ChartCanvas::text(const std::string& text, double x, double y, const TextStyle& style) {
  if (text.empty()) return;
  State& s = *state_;
  s.set_text(text, style.size, style.bold);
  const TextSize size = s.text_size();
  cairo_save(s.cairo.get());
  cairo_translate(s.cairo.get(), x, y);
  if (style.upward) cairo_rotate(s.cairo.get(), -std::acos(0.0));
  cairo_move_to(s.cairo.get(), -size.width * style.anchor_x, -size.height * style.anchor_y);
  s.set_color(style.color);
  pango_cairo_update_layout(s.cairo.get(), s.layout.get());
  pango_cairo_show_layout(s.cairo.get(), s.layout.get());
  cairo_restore(s.cairo.get());
}

void ChartCanvas::fill(const Rect& rect, Color color, double opacity) {
  state_->set_color(color, opacity);
  cairo_rectangle(state_->cairo.get(), rect.x, rect.y, rect.width, rect.height);
  cairo_fill(state_->cairo.get());
}

void ChartCanvas::fill_cell(const Rect& rect, Color color) {
  const double left = std::round(rect.x), top = std::round(rect.y);
  fill({left, top, std::round(rect.right()) - left, std::round(rect.bottom()) - top}, color);
}

void ChartCanvas::frame(const Rect& rect, Color color, double width) {
  cairo_t* cairo = state_->cairo.get();
  state_->set_color(color);
  cairo_set_line_width(cairo, width);
  cairo_rectangle(cairo, rect.x, rect.y, rect.width, rect.height);
  cairo_stroke(cairo);
}

void ChartCanvas::line(double x1, double y1, double x2, double y2, Color color, double width) {
  path_from(x1, y1);
  path_to(x2, y2);
  stroke_path(color, width);
}

void ChartCanvas::disc(double x, double y, double radius, Color color, double opacity) {
  cairo_t* cairo = state_->cairo.get();
  state_->set_color(color, opacity);
  cairo_new_path(cairo);
  cairo_arc(cairo, x, y, radius, 0, 4 * std::acos(0.0));
  cairo_fill(cairo);
}

void ChartCanvas::path_from(double x, double y) { cairo_move_to(state_->cairo.get(), x, y); }

void ChartCanvas::path_to(double x, double y) { cairo_line_to(state_->cairo.get(), x, y); }

void ChartCanvas::stroke_path(Color color, double width) {
  cairo_t* cairo = state_->cairo.get();
  state_->set_color(color);
  cairo_set_line_width(cairo, width);
  cairo_set_line_join(cairo, CAIRO_LINE_JOIN_ROUND);
  cairo_stroke(cairo);
}

void ChartCanvas::clip(const Rect& rect) {
  cairo_t* cairo = state_->cairo.get();
  cairo_save(cairo);
  cairo_new_path(cairo);
  cairo_rectangle(cairo, rect.x, rect.y, rect.width, rect.height);
  cairo_clip(cairo);
}

void ChartCanvas::unclip() { cairo_restore(state_->cairo.get()); }

Result<Picture> ChartCanvas::picture() const {
  cairo_surface_flush(state_->surface.get());
  if (const cairo_status_t status = cairo_status(state_->cairo.get());
      status != CAIRO_STATUS_SUCCESS) {
    return error(Code::kNoMemory, "a figure cannot be drawn: {}", cairo_status_to_string(status));
  }
  FERRY_TRY(picture, Picture::create(state_->width, state_->height, PixelFormat::kBgr8));
  const uint8_t* data = cairo_image_surface_get_data(state_->surface.get());
  const int64_t stride = cairo_image_surface_get_stride(state_->surface.get());
  for (int64_t y = 0; y < state_->height; ++y) {
    for (int64_t x = 0; x < state_->width; ++x) {
      uint32_t pixel = 0;  // 0x00RRGGBB in the machine's byte order
      std::memcpy(&pixel, data + y * stride + x * 4, 4);
      uint8_t* to = picture.row(y) + x * kBytesPerPixel;
      to[0] = static_cast<uint8_t>(pixel);
      to[1] = static_cast<uint8_t>(pixel >> 8);
      to[2] = static_cast<uint8_t>(pixel >> 16);
    }
  }
  return picture;
}

}  // namespace ferry::vision

// resize: [N, C, H, W] to another height and width, nearest or bilinear, as ONNX Resize defines it:
// every output index maps to a place in the input (`coordinates`), which is rounded
// (`nearest_mode`) or lies between two pixels (linear). Give `scales`, which stay right for any
// picture, or `sizes`.
#include <algorithm>
#include <cmath>

#include "ops/support/check.h"
#include "ops/support/onnx.h"
#include "ops/support/onnx_form.h"

namespace ferry::ops {

using namespace graph;

namespace {

const AttrDef kAttrs[] = {
    {"mode", std::string("nearest"), "nearest or linear"},
    {"scales", Floats{}, "rows, columns; output = floor(input * scale)"},
    {"sizes", Ints{}, "rows, columns of the output, instead of scales"},
    {"coordinates", std::string("half_pixel"),
     "half_pixel, asymmetric, align_corners, pytorch_half_pixel, half_pixel_symmetric or "
     "tf_half_pixel_for_nn"},
    {"nearest_mode", std::string("round_prefer_floor"),
     "round_prefer_floor, round_prefer_ceil, floor or ceil"},
};

// One direction: how many pixels come out of how many, and by which factor.
struct Direction {
  int64_t in = 0, out = 0;
  double scale = 1;
};

using Place = double (*)(double index, const Direction& d);

double half_pixel(double index, const Direction& d) { return (index + 0.5) / d.scale - 0.5; }

constexpr std::pair<std::string_view, Place> kPlaces[] = {
    {"half_pixel", half_pixel},
    {"asymmetric", [](double index, const Direction& d) { return index / d.scale; }},
    {"align_corners",
     [](double index, const Direction& d) {
       if (d.out == 1) return 0.0;
       return index * static_cast<double>(d.in - 1) / static_cast<double>(d.out - 1);
     }},
    {"pytorch_half_pixel",
     [](double index, const Direction& d) { return d.out > 1 ? half_pixel(index, d) : 0.0; }},
    {"half_pixel_symmetric",
     [](double index, const Direction& d) {
       const double in = static_cast<double>(d.in);
       const double adjustment = static_cast<double>(d.out) / (d.scale * in);
       return in / 2 * (1 - adjustment) + half_pixel(index, d);
     }},
    {"tf_half_pixel_for_nn",
     [](double index, const Direction& d) { return (index + 0.5) / d.scale; }},
};

using Round = double (*)(double);
constexpr std::pair<std::string_view, Round> kRounds[] = {
    {"round_prefer_floor", [](double x) { return std::ceil(x - 0.5); }},
    {"round_prefer_ceil", [](double x) { return std::floor(x + 0.5); }},
    {"floor", [](double x) { return std::floor(x); }},
    {"ceil", [](double x) { return std::ceil(x); }},
};

template <class F, size_t N>
Result<F> find(const std::pair<std::string_view, F> (&rows)[N], std::string_view name,
               std::string_view what) {
  for (const auto& [row_name, function] : rows) {
    if (row_name == name) return function;
  }
  return error(Code::kUnsupported, "unknown {} '{}'", what, name);
}

Result<std::array<Direction, 2>> directions(const Node& node, const Shape& x) {
  const Floats& scales = attr<Floats>(node, "scales");
  const Ints& sizes = attr<Ints>(node, "sizes");
  if (scales.size() + sizes.size() != 2 || (!scales.empty() && !sizes.empty())) {
    return error(Code::kInvalid, "has {} scales and {} sizes, needs two of either", scales.size(),
                 sizes.size());
  }
  std::array<Direction, 2> out;
  for (size_t i = 0; i < 2; ++i) {
    Direction& d = out[i];
    d.in = x[2 + i];
    if (d.in < 1) return error(Code::kInvalid, "input {} has no pixels", shape_text(x));
    if (scales.empty()) {
      d.out = sizes[i];
      d.scale = static_cast<double>(d.out) / static_cast<double>(d.in);
    } else {
      d.scale = scales[i];
      if (!(d.scale > 0 && d.scale <= 65536)) {
        return error(Code::kInvalid, "scales are {}, {}", scales[0], scales[1]);
      }
      d.out = static_cast<int64_t>(std::floor(static_cast<double>(d.in) * d.scale));
    }
    if (d.out < 1) {
      return error(Code::kInvalid, "the output of {} pixels would have {}", d.in, d.out);
    }
  }
  return out;
}

Result<Types> infer(const InferArgs& args) {
  FERRY_CHECK_OK(need_f32(args));
  FERRY_CHECK_OK(need_rank(args, 0, 4, "input"));
  const Shape& x = args.inputs[0]->shape;
  FERRY_TRY(size, directions(args.node, x));
  const std::string& mode = attr<std::string>(args.node, "mode");
  if (mode != "nearest" && mode != "linear") {
    return error(Code::kUnsupported, "mode '{}' is not supported, only nearest and linear", mode);
  }
  FERRY_CHECK_OK(find(kPlaces, attr<std::string>(args.node, "coordinates"), "coordinates"));
  FERRY_CHECK_OK(find(kRounds, attr<std::string>(args.node, "nearest_mode"), "nearest_mode"));
  return one_output(DType::kF32, {x[0], x[1], size[0].out, size[1].out});
}

// Where an output row (or column) reads: pixel `first` with weight 1 - blend, pixel `second` with
// weight blend.
struct Tap {
  int64_t first = 0, second = 0;
  float blend = 0;
};

Result<std::vector<Tap>> taps(const Node& node, const Direction& d) {
  FERRY_TRY(place, find(kPlaces, attr<std::string>(node, "coordinates"), "coordinates"));
  FERRY_TRY(round, find(kRounds, attr<std::string>(node, "nearest_mode"), "nearest_mode"));
  const bool linear = attr<std::string>(node, "mode") == "linear";
  const double last = static_cast<double>(d.in - 1);
  std::vector<Tap> out;
  for (int64_t i = 0; i < d.out; ++i) {
    const double at = place(static_cast<double>(i), d);
    if (linear) {
      const double inside = std::clamp(at, 0.0, last);
      const auto first = static_cast<int64_t>(inside);
      out.push_back({first, std::min(first + 1, d.in - 1),
                     static_cast<float>(inside - static_cast<double>(first))});
    } else {
      const auto nearest = static_cast<int64_t>(std::clamp(round(at), 0.0, last));
      out.push_back({nearest, nearest, 0});
    }
  }
  return out;
}

Status eval(const EvalArgs& args) {
  const Shape& in = args.inputs[0]->shape();
  FERRY_TRY(size, directions(args.node, in));
  FERRY_TRY(rows, taps(args.node, size[0]));
  FERRY_TRY(columns, taps(args.node, size[1]));
  const float* x = args.inputs[0]->as<float>().data();
  float* y = args.outputs[0]->mut<float>().data();
  for (int64_t plane = 0; plane < in[0] * in[1]; ++plane, x += in[2] * in[3]) {
    for (const Tap& row : rows) {
      const float* top = x + row.first * in[3];
      const float* bottom = x + row.second * in[3];
      for (const Tap& column : columns) {
        const auto across = [&](const float* line) {
          return column.blend == 0
                     ? line[column.first]
                     : line[column.first] * (1 - column.blend) + line[column.second] * column.blend;
        };
        *y++ = row.blend == 0 ? across(top)
                              : across(top) * (1 - row.blend) + across(bottom) * row.blend;
      }
    }
  }
  return {};
}

// Takes rows and columns out of a list over all axes (or over `axes`); the others must be
// `neutral`.
template <class T, class Neutral>
Result<std::vector<T>> spatial(const ForeignNode& node, const std::vector<T>& values,
                               Neutral neutral) {
  const Shape& x = node.inputs[0]->shape;
  if (x.size() != 4) {
    return error(Code::kUnsupported, "input is {}, only pictures are resized", shape_text(x));
  }
  const Ints axes = node.ints_or("axes", {0, 1, 2, 3});
  if (axes.size() != values.size()) {
    return error(Code::kInvalid, "{} numbers for {} axes", values.size(), axes.size());
  }
  std::vector<T> out = {static_cast<T>(neutral(2)), static_cast<T>(neutral(3))};
  for (size_t i = 0; i < axes.size(); ++i) {
    FERRY_TRY(axis, axis_of(axes[i], 4));
    if (axis >= 2) {
      out[axis - 2] = values[i];
    } else if (values[i] != static_cast<T>(neutral(axis))) {
      return error(Code::kUnsupported, "resizes axis {} of {} by {}", axis, shape_text(x),
                   values[i]);
    }
  }
  return out;
}

Result<Converted> by_scales(const ForeignNode& node, size_t input, Attrs attrs) {
  FERRY_TRY(scales, need_floats(node, input));
  FERRY_TRY(factors, spatial(node, scales, [](size_t) { return 1; }));
  attrs["scales"] = std::move(factors);
  return with_inputs(node, 1, std::move(attrs));
}

bool not_empty(const ForeignNode& node, size_t i) {
  return has_input(node, i) && elements(node.inputs[i]->shape) > 0;
}

// Upsample 9 and Resize 10: scales only, and one way to read them.
Result<Converted> from_onnx_upsample(const ForeignNode& node) {
  FERRY_CHECK_OK(need_inputs(node, 2, 2));
  return by_scales(node, 1,
                   {{"mode", node.string_or("mode", "nearest")},
                    {"coordinates", std::string("asymmetric")},
                    {"nearest_mode", std::string("floor")}});
}

Result<Converted> from_onnx(const ForeignNode& node) {
  if (node.opset < 11) return from_onnx_upsample(node);
  FERRY_CHECK_OK(need_inputs(node, 1, 4));  // x, region of interest, scales, sizes
  if (node.int_or("antialias", 0) != 0) return error(Code::kUnsupported, "antialias is set");
  const std::string policy = node.string_or("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch") {
    return error(Code::kUnsupported, "keep_aspect_ratio_policy '{}' is not supported", policy);
  }
  Attrs attrs = {{"mode", node.string_or("mode", "nearest")},
                 {"coordinates", node.string_or("coordinate_transformation_mode", "half_pixel")},
                 {"nearest_mode", node.string_or("nearest_mode", "round_prefer_floor")}};
  if (not_empty(node, 2)) return by_scales(node, 2, std::move(attrs));
  if (!not_empty(node, 3)) return error(Code::kInvalid, "Resize without scales or sizes");
  FERRY_TRY(sizes, need_ints(node, 3));
  const Shape& x = node.inputs[0]->shape;
  FERRY_TRY(size, spatial(node, sizes, [&](size_t axis) { return x[axis]; }));
  attrs["sizes"] = std::move(size);
  return with_inputs(node, 1, std::move(attrs));
}

const OnnxRow kOnnx[] = {{"Resize", from_onnx}, {"Upsample", from_onnx_upsample}};

Status to_onnx(OnnxForm& form) {
  const std::string& coordinates = attr<std::string>(form.node(), "coordinates");
  if (coordinates == "half_pixel_symmetric") {
    FERRY_CHECK_OK(form.need_opset(19, "half_pixel_symmetric"));
  }
  if (coordinates == "tf_half_pixel_for_nn" && form.target().opset > 12) {
    return error(Code::kUnsupported, "tf_half_pixel_for_nn is gone since opset 13, use 12");
  }
  ResizeTo to{.scales = attr<Floats>(form.node(), "scales")};
  if (to.scales.empty()) to.output = form.output_type().shape;
  add_resize(form, form.input(0), to,
             {{"mode", attr<std::string>(form.node(), "mode")},
              {"coordinate_transformation_mode", coordinates},
              {"nearest_mode", attr<std::string>(form.node(), "nearest_mode")}});
  return {};
}

const OpCase kCases[] = {
    {R"(graph {
      input x: f32[2,3,4,5]
      y = resize(x) scales=[2,2] coordinates="asymmetric" nearest_mode="floor"
      output y
    })"},
    {R"(graph {
      input x: f32[1,3,4,5]
      y = resize(x) scales=[2,1.5] mode="linear"
      output y
    })"},
    {R"(graph {
      input x: f32[1,2,7,5]
      y = resize(x) sizes=[3,11] mode="linear" coordinates="align_corners"
      output y
    })"},
};

}  // namespace

extern const OpDef op_resize;
const OpDef op_resize = {
    .name = "resize",
    .summary = "another height and width, nearest or bilinear",
    .attrs = kAttrs,
    .infer = infer,
    .eval = eval,
    .onnx = kOnnx,
    .to_onnx = to_onnx,
    .cases = kCases,
};

}  // namespace ferry::ops

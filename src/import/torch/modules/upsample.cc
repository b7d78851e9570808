// nn.Upsample and its older relatives: nearest or bilinear, by factor or to a size.
#include "import/torch/maker.h"
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::Attrs;
using graph::Floats;
using graph::ValueId;

// `scale_factor`: a number, or one each for rows and columns.
std::optional<Floats> scales_of(const Value* value) {
  if (const auto one = as_float(value)) return Floats{*one, *one};
  if (value == nullptr || !value->is_sequence() || value->items.size() != 2) return std::nullopt;
  const auto rows = as_float(value->items[0]), columns = as_float(value->items[1]);
  if (!rows || !columns) return std::nullopt;
  return Floats{*rows, *columns};
}

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  FERRY_TRY(x, only_input(inputs));
  const bool is_bilinear_class = short_name(module.class_name) == "UpsamplingBilinear2d";
  FERRY_TRY(mode, module.string_attribute("mode", is_bilinear_class ? "bilinear" : "nearest"));
  FERRY_TRY(align_corners, module.bool_attribute("align_corners", is_bilinear_class));
  Attrs attrs;
  if (mode == "nearest") {  // PyTorch's nearest is the pixel at floor(index / factor)
    attrs = {{"mode", std::string("nearest")},
             {"coordinates", std::string("asymmetric")},
             {"nearest_mode", std::string("floor")}};
  } else if (mode == "bilinear") {
    attrs = {{"mode", std::string("linear")},
             {"coordinates", std::string(align_corners ? "align_corners" : "half_pixel")}};
  } else {
    return error(Code::kUnsupported, "upsampling mode '{}'; nearest and bilinear are known", mode);
  }
  FERRY_TRY(sizes, module.ints_attribute("size", 2, {}));
  const auto scales = scales_of(module.attribute("scale_factor"));
  if (!sizes.empty()) {
    attrs["sizes"] = sizes;
    walker.fix_size();
  } else if (scales) {
    attrs["scales"] = *scales;
  } else {
    return error(Code::kInvalid, "has neither a size nor a scale_factor");
  }
  return walker.op("resize", module.path, {x}, std::move(attrs));
}

// nn.Upsample(size, scale_factor, mode)
Status make(Maker& maker, Module& module, const MakeArgs& args) {
  if (args.has(0)) maker.set(module, "size", args.rest[0]);
  if (args.has(1)) maker.set(module, "scale_factor", args.rest[1]);
  if (args.has(2)) maker.set(module, "mode", args.rest[2]);
  return maker.status();
}

constexpr ModuleClass kClasses[] = {{"Upsample", Yaml::kSame},
                                    {"UpsamplingNearest2d", Yaml::kSame},
                                    {"UpsamplingBilinear2d", Yaml::kSame}};

}  // namespace

extern const ModuleDef module_upsample;
const ModuleDef module_upsample = {.classes = kClasses, .build = build, .make = make};

}  // namespace ferry::import::torch

// Detect of YOLOv5 v3 to v7: one 1x1 convolution a level, then boxes and scores (op yolo_detect).
// Anchors are stored in cells and become pixels by the strides; both are attributes or buffers
// whose names changed little between releases.
#include <algorithm>
#include <cmath>

#include "import/torch/maker.h"
#include "import/torch/module_def.h"

namespace ferry::import::torch {
namespace {

using graph::Floats;
using graph::Shape;
using graph::Tensor;
using graph::ValueId;

using Anchors = std::vector<std::vector<std::array<double, 2>>>;

// Levels x anchors x (width, height), in the tensor's unit.
Result<Anchors> read_anchors(const Tensor& tensor, size_t levels) {
  const Shape& shape = tensor.shape();
  const auto count = static_cast<int64_t>(levels);
  const bool fits = shape.size() >= 2 && shape[0] == count && shape.back() == 2 &&
                    tensor.size() >= 2 * count && tensor.size() % (2 * count) == 0 &&
                    tensor.size() / (2 * count) <= 1000;
  if (!fits)
    return error(Code::kInvalid, "anchors are {}, needs [{},anchors,2]", graph::shape_text(shape),
                 levels);
  const auto values = tensor.as<float>();
  const size_t each = values.size() / levels / 2;
  Anchors anchors(levels);
  for (size_t i = 0; i < levels * each; ++i)
    anchors[i / each].push_back({values[2 * i], values[2 * i + 1]});
  return anchors;
}

Floats flatten(const Anchors& anchors) {
  Floats flat;
  for (const auto& level : anchors) {
    for (const auto& [width, height] : level) flat.insert(flat.end(), {width, height});
  }
  return flat;
}

// The file's strides, or what the maps' sizes say when the file has none (very old, or weights
// alone).
Result<Floats> find_strides(Walker& walker, const Module& module, const std::vector<ValueId>& maps,
                            int64_t input_height) {
  FERRY_TRY(stored, walker.attribute_tensor(module, "stride"));
  Floats strides;
  if (stored && stored->size() == std::ssize(maps)) {
    for (const float s : stored->as<float>()) strides.push_back(s);
  } else {
    for (const ValueId map : maps) {
      strides.push_back(static_cast<double>(input_height) /
                        static_cast<double>(std::max<int64_t>(walker.shape(map)[2], 1)));
    }
  }
  for (const double s : strides) {
    if (!std::isfinite(s) || s < 1 || s > 4096) return error(Code::kInvalid, "a stride of {}", s);
  }
  return strides;
}

// Releases up to v5 computed boxes from `anchor_grid`; a file in which it says something else
// deserves a word.
Status compare_with_grid(Walker& walker, const Module& module, const Anchors& anchors) {
  FERRY_TRY(grid, walker.attribute_tensor(module, "anchor_grid"));
  const Floats pixels = flatten(anchors);
  if (!grid || grid->size() != std::ssize(pixels)) return {};
  for (size_t i = 0; i < pixels.size(); ++i) {
    const double difference = std::abs(static_cast<double>(grid->as<float>()[i]) - pixels[i]);
    if (difference <= 0.01 * std::abs(pixels[i]) + 0.01) continue;
    walker.warn(
        fmt::format("{}: 'anchor_grid' differs from 'anchors' times the strides; the latter is "
                    "taken, as newer releases do.",
                    module.where()));
    return {};
  }
  return {};
}

// Anchors in pixels. Old checkpoints also hold `anchor_grid`, the same in pixels; what training
// used is `anchors`.
Result<Anchors> find_anchors(Walker& walker, const Module& module, const Floats& strides) {
  FERRY_TRY(in_cells, walker.attribute_tensor(module, "anchors"));
  FERRY_TRY(in_pixels, walker.attribute_tensor(module, "anchors_in_pixels"));  // of a model yaml
  const size_t levels = strides.size();
  if (!in_cells && !in_pixels) return error(Code::kInvalid, "has no anchors");
  FERRY_TRY(anchors, read_anchors(in_cells ? *in_cells : *in_pixels, levels));
  if (in_cells) {
    for (size_t level = 0; level < levels; ++level) {
      for (auto& [width, height] : anchors[level]) {
        width *= strides[level];
        height *= strides[level];
      }
    }
    FERRY_CHECK_OK(compare_with_grid(walker, module, anchors));
    return anchors;
  }
  // A yaml may list the levels in the other order than the layers: the larger stride gets the
  // larger anchors.
  const auto area = [](const auto& level) {
    double sum = 0;
    for (const auto& [width, height] : level) sum += width * height;
    return sum;
  };
  const double areas = area(anchors.back()) - area(anchors.front());
  const double steps = strides.back() - strides.front();
  if ((areas > 0 && steps < 0) || (areas < 0 && steps > 0))
    std::reverse(anchors.begin(), anchors.end());
  return anchors;
}

Result<ValueId> build(Walker& walker, const Module& module, std::span<const ValueId> inputs) {
  const Module* convs = module.child("m");
  const bool is_anchor_free = module.child("dfl") != nullptr || module.child("cv3") != nullptr;
  if (convs == nullptr && is_anchor_free) {
    return error(
        Code::kUnsupported,
        "an anchor-free head (YOLOv8 and newer, or YOLOv5u); ferry knows YOLOv5's anchor head");
  }
  if (convs == nullptr || inputs.empty() || convs->children.size() != inputs.size()) {
    return error(Code::kInvalid, "has {} convolutions for {} inputs",
                 convs == nullptr ? 0 : convs->children.size(), inputs.size());
  }
  std::vector<ValueId> maps;
  for (size_t i = 0; i < inputs.size(); ++i) {
    FERRY_TRY(map, walker.run(*convs->children[i].second, inputs[i]));
    maps.push_back(map);
  }
  FERRY_TRY(nc, module.int_attribute("nc", 80));
  FERRY_TRY(strides, find_strides(walker, module, maps, walker.input_height()));
  FERRY_TRY(anchors, find_anchors(walker, module, strides));
  DetectorInfo detector{
      .head = Head::kYolov5, .nc = nc, .names = {}, .strides = strides, .anchors = anchors};
  walker.set_detector(std::move(detector));
  return walker.op("yolo_detect", module.path, maps,
                   {{"anchors", flatten(anchors)}, {"strides", strides}, {"classes", nc}});
}

// Detect(nc, anchors, ch): anchors are a list a level, or their number when training is to find
// them.
Status make(Maker& maker, Module& module, const MakeArgs& args) {
  FERRY_TRY(nc, args.integer(0, 80));
  if (nc < 1 || nc > 100'000) return error(Code::kInvalid, "{}: {} classes", module.where(), nc);
  if (!args.has(1)) return error(Code::kInvalid, "{}: no anchors", module.where());
  const Value& given = *args.rest[1];
  std::vector<float> numbers;
  const int64_t levels = std::ssize(args.from);
  if (const auto count = as_int(&given)) {
    if (*count < 1 || *count > 100)
      return error(Code::kInvalid, "{}: {} anchors", module.where(), *count);
    for (int64_t level = 0; level < levels; ++level) {
      for (int64_t i = 0; i < *count * 2; ++i) numbers.push_back(static_cast<float>(i));
    }
  } else if (given.is_sequence() && std::ssize(given.items) == levels) {
    for (const Value* level : given.items) {
      for (const Value* number : level->items) {
        const auto value = as_float(number);
        if (!value)
          return error(Code::kInvalid, "{}: an anchor is {}", module.where(), describe(*number));
        numbers.push_back(static_cast<float>(*value));
      }
    }
  } else {
    return error(Code::kInvalid, "{}: anchors are {}, needs a list for each of {} levels",
                 module.where(), describe(given), levels);
  }
  const int64_t pairs = std::ssize(numbers) / 2;
  if (levels < 1 || pairs < levels || pairs % levels != 0 || std::ssize(numbers) != 2 * pairs) {
    return error(Code::kInvalid, "{}: {} anchor numbers for {} levels", module.where(),
                 numbers.size(), levels);
  }
  const graph::Shape shape = {levels, pairs / levels, 2};
  maker.set(module, "nc", nc);
  ModuleTensor& anchors = module.tensors.emplace_back();
  anchors.name = "anchors_in_pixels";
  anchors.tensor = Tensor::of<float>(shape, std::move(numbers));
  anchors.type = anchors.tensor->type();
  anchors.is_parameter = false;
  Module& convs = maker.child(module, "m", "torch.nn.modules.container.ModuleList");
  for (int64_t i = 0; i < levels; ++i) {
    maker.conv2d(convs, fmt::format("{}", i), args.from[static_cast<size_t>(i)],
                 shape[1] * (5 + nc), {.bias = true});
  }
  return maker.status();
}

constexpr ModuleClass kClasses[] = {{"Detect", Yaml::kDetect}};

}  // namespace

extern const ModuleDef module_detect;
const ModuleDef module_detect = {.classes = kClasses, .build = build, .make = make};

}  // namespace ferry::import::torch

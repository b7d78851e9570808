// Lines [from, number, class, args] become modules by the rules of upstream's parse_model
// (models/yolo.py, v3 to v7).
#include <algorithm>
#include <charconv>
#include <cmath>

#include "import/torch/maker.h"
#include "import/torch/module_def.h"
#include "import/yaml/import_yaml.h"
#include "import/yaml/values.h"

namespace ferry::import {
namespace {

using torch::Arena;
using torch::Kind;
using torch::MakeArgs;
using torch::Maker;
using torch::Module;
using torch::Value;
using torch::Yaml;

constexpr int64_t kMaxLayers = 10'000;
constexpr int64_t kMaxRepeats = 1000;
constexpr int64_t kMaxChannels = 1 << 20;

struct Settings {
  const Value* root = nullptr;
  const Value* anchors = nullptr;
  int64_t nc = 0;
  int64_t channels = 3;
  int64_t anchors_per_level = 0;
  double depth = 1, width = 1;
};

Result<double> number_of(const Value& root, std::string_view key, double fallback) {
  const Value* value = find(root, key);
  if (value == nullptr || value->is_none()) return fallback;
  const auto number = as_float(value);
  if (!number || !std::isfinite(*number) || *number <= 0 || *number > 1e6) {
    return error(Code::kInvalid, "'{}' is {}, needs a number above 0 and at most 1000000", key,
                 describe(*value));
  }
  return *number;
}

Result<Settings> read_settings(const Value& root, int64_t nc) {
  if (!is_mapping(root))
    return error(Code::kInvalid, "the yaml is {}, needs keys such as nc, anchors, backbone, head",
                 describe(root));
  Settings settings;
  settings.root = &root;
  FERRY_TRY(yaml_nc, number_of(root, "nc", 80));
  FERRY_TRY(channels, number_of(root, "ch", 3));
  FERRY_TRY(depth, number_of(root, "depth_multiple", 1));
  FERRY_TRY(width, number_of(root, "width_multiple", 1));
  settings.nc = nc > 0 ? nc : static_cast<int64_t>(yaml_nc);
  settings.channels = static_cast<int64_t>(channels);
  settings.depth = depth;
  settings.width = width;
  settings.anchors = find(root, "anchors");
  if (settings.anchors == nullptr) return error(Code::kInvalid, "there are no 'anchors'");
  const bool is_list = settings.anchors->is_sequence() && !settings.anchors->items.empty();
  settings.anchors_per_level = is_list ? std::ssize(settings.anchors->items[0]->items) / 2
                                       : as_int(settings.anchors).value_or(0);
  return settings;
}

struct Line {
  std::vector<int64_t> from;
  bool is_list = false;  // `from` was a list, even of one
  int64_t number = 1;
  std::string_view class_name;  // as written: "Conv", "nn.Upsample"
  std::vector<const Value*> args;
};

// Names in arguments mean what they mean in upstream's eval(): nc, anchors, na and no.
const Value* resolve(Arena& arena, const Settings& settings, const Value* arg) {
  if (!arg->is_string()) return arg;
  if (arg->text == "nc") return arena.add_int(settings.nc);
  if (arg->text == "anchors") return settings.anchors;
  if (arg->text == "na") return arena.add_int(settings.anchors_per_level);
  if (arg->text == "no" || arg->text == "na * (nc + 5)" || arg->text == "na*(nc+5)") {
    return arena.add_int(settings.anchors_per_level * (settings.nc + 5));
  }
  return arg;
}

Result<Line> read_line(Arena& arena, const Settings& settings, const Value& value, size_t index) {
  if (!value.is_sequence() || value.items.size() != 4 || !value.items[2]->is_string()) {
    return error(Code::kInvalid, "layer {} is {}, needs [from, number, module, args]", index,
                 describe(value));
  }
  Line line;
  const Value& from = *value.items[0];
  line.is_list = from.is_sequence();
  const auto indices = as_ints(&from, line.is_list ? from.items.size() : 1);
  const auto number = as_int(value.items[1]);
  if (!indices || indices->empty() || !number || *number < 1 || *number > kMaxRepeats) {
    return error(Code::kInvalid, "layer {}: from {} and number {}", index, describe(from),
                 describe(*value.items[1]));
  }
  line.from = *indices;
  line.number = *number;
  line.class_name = value.items[2]->text;
  for (const Value* arg : value.items[3]->items) line.args.push_back(resolve(arena, settings, arg));
  return line;
}

int64_t make_divisible(double channels) {
  return static_cast<int64_t>(std::ceil(channels / 8)) * 8;
}

// nn.X lives in torch.nn.modules, everything else in YOLOv5's models.
std::string full_class_name(std::string_view written) {
  if (written.starts_with("nn.")) return fmt::format("torch.nn.modules.{}", written.substr(3));
  if (written == "Detect") return "models.yolo.Detect";
  return fmt::format("models.common.{}", written);
}

// "nn.LeakyReLU(0.1)" → class and slope. Upstream evaluates this text; here it is read.
Status set_activation(Maker& maker, const Value& value) {
  if (!value.is_string()) return error(Code::kInvalid, "activation is {}", describe(value));
  std::string_view text = value.text;
  const size_t open = text.find('(');
  if (!text.starts_with("nn.") || open == std::string_view::npos || !text.ends_with(")")) {
    return error(Code::kUnsupported,
                 "activation '{}', needs a form like nn.SiLU() or nn.LeakyReLU(0.1)", text);
  }
  const std::string name = fmt::format("torch.nn.modules.activation.{}", text.substr(3, open - 3));
  std::string_view argument = text.substr(open + 1, text.size() - open - 2);
  if (torch::find_module_def(name) == nullptr)
    return error(Code::kUnsupported, "activation '{}' is unknown", text);
  if (argument.starts_with("inplace") || argument.empty()) {
    maker.set_default_activation(name, std::nullopt);
    return {};
  }
  argument = argument.substr(0, argument.find(','));
  if (argument.starts_with("negative_slope=")) argument.remove_prefix(15);
  double slope = 0;
  const auto [end, failure] =
      std::from_chars(argument.data(), argument.data() + argument.size(), slope);
  if (failure != std::errc() || !name.ends_with("LeakyReLU"))
    return error(Code::kUnsupported, "activation '{}'", text);
  maker.set_default_activation(name, slope);
  return {};
}

// Builds one layer; `channels[i]` are those of layer i's output, `channels.back()` becomes this
// one's.
class Builder {
 public:
  Builder(Maker& maker, Arena& arena, const Settings& settings, Module& layers)
      : maker_(maker), arena_(arena), settings_(settings), layers_(layers), channels_{} {}

  Status add_layer(const Line& line) {
    const auto index = std::ssize(channels_);
    Yaml rule = Yaml::kAbsent;
    const torch::ModuleDef* def = torch::find_module_def(line.class_name, &rule);
    if (def == nullptr || def->make == nullptr || rule == Yaml::kAbsent) {
      return error(Code::kUnsupported, "layer {}: ferry does not know the module {}", index,
                   line.class_name);
    }
    std::vector<int64_t> from;
    for (const int64_t f : line.from) {
      FERRY_TRY(c, channels_of(f).within(fmt::format("layer {} {}", index, line.class_name)));
      from.push_back(c);
    }
    MakeArgs args{.name = torch::short_name(line.class_name),
                  .c1 = from[0],
                  .c2 = from[0],
                  .rest = line.args,
                  .from = from};
    int64_t copies = line.number > 1 ? std::max<int64_t>(
                                           static_cast<int64_t>(std::nearbyint(
                                               static_cast<double>(line.number) * settings_.depth)),
                                           1)
                                     : 1;
    if (copies > kMaxRepeats) return error(Code::kInvalid, "layer {}: {} repeats", index, copies);
    FERRY_CHECK_OK(
        apply_rule(rule, args, copies).within(fmt::format("layer {} {}", index, line.class_name)));
    if (args.c2 < 0 || args.c2 > kMaxChannels) {
      return error(Code::kInvalid, "layer {} {}: {} output channels", index, line.class_name,
                   args.c2);
    }

    const std::string class_name = full_class_name(line.class_name);
    const std::string name = fmt::format("{}", index);
    Module& layer = maker_.child(layers_, name,
                                 copies > 1 ? "torch.nn.modules.container.Sequential" : class_name);
    if (copies == 1) FERRY_CHECK_OK(def->make(maker_, layer, args));
    for (int64_t i = 0; copies > 1 && i < copies; ++i) {
      FERRY_CHECK_OK(
          def->make(maker_, maker_.child(layer, fmt::format("{}", i), class_name), args));
    }
    maker_.set(layer, "i", static_cast<int64_t>(index));
    if (line.is_list) {
      maker_.set(layer, "f", std::span<const int64_t>(line.from));
    } else {
      maker_.set(layer, "f", line.from[0]);
    }
    channels_.push_back(args.c2);
    return maker_.status();
  }

 private:
  Result<int64_t> channels_of(int64_t from) const {
    const auto count = std::ssize(channels_);
    if (count == 0 && from == -1) return settings_.channels;
    const int64_t index = from < 0 ? count + from : from;
    if (index < 0 || index >= count)
      return error(Code::kInvalid, "takes its input from layer {}, which does not come before it",
                   from);
    return channels_[static_cast<size_t>(index)];
  }

  Status apply_rule(Yaml rule, MakeArgs& args, int64_t& copies) const {
    switch (rule) {
      case Yaml::kScaled:
      case Yaml::kRepeated: {
        FERRY_TRY(wanted, args.integer(0, 0));
        if (wanted < 1 || wanted > 1'000'000)
          return error(Code::kInvalid, "{} output channels", wanted);
        const bool is_output = wanted == settings_.anchors_per_level * (settings_.nc + 5);
        args.c2 =
            is_output ? wanted : make_divisible(static_cast<double>(wanted) * settings_.width);
        args.rest = args.rest.subspan(1);
        if (rule == Yaml::kRepeated) args.n = std::exchange(copies, 1);
        return {};
      }
      case Yaml::kConcat: {
        args.c2 = 0;
        for (const int64_t c : args.from) args.c2 += c;
        return {};
      }
      case Yaml::kContract:
      case Yaml::kExpand: {
        FERRY_TRY(gain, args.integer(0, 2));
        if (gain < 1 || gain > 64) return error(Code::kInvalid, "a gain of {}", gain);
        args.c2 = rule == Yaml::kContract ? args.c1 * gain * gain : args.c1 / (gain * gain);
        return {};
      }
      case Yaml::kSame:
      case Yaml::kNorm:
      case Yaml::kDetect:
      case Yaml::kAbsent:
        return {};
    }
    return {};
  }

  Maker& maker_;
  Arena& arena_;
  const Settings& settings_;
  Module& layers_;
  std::vector<int64_t> channels_;
};

}  // namespace

Result<YamlModel> parse_model_yaml(std::string_view text, int64_t nc) {
  auto arena = std::make_shared<Arena>();
  FERRY_TRY(root, parse_yaml(*arena, text));
  return make_model(std::move(arena), *root, nc);
}

Result<YamlModel> make_model(std::shared_ptr<Arena> arena, const Value& given, int64_t nc) {
  const Value* root = &given;
  FERRY_TRY(settings, read_settings(*root, nc));
  YamlModel model;
  Maker maker(model.tree, *arena);
  model.tree.root = maker.module("models.yolo.Model", "");
  maker.set(*model.tree.root, "yaml", root);
  if (const Value* names = find(*root, "names")) maker.set(*model.tree.root, "names", names);
  model.layers = &maker.child(*model.tree.root, "model", "torch.nn.modules.container.Sequential");
  if (const Value* activation = find(*root, "activation");
      activation != nullptr && !activation->is_none()) {
    FERRY_CHECK_OK(set_activation(maker, *activation));
  }

  std::vector<const Value*> lines;
  for (const std::string_view part : {"backbone", "head"}) {
    const Value* list = find(*root, part);
    if (list == nullptr || !list->is_sequence())
      return error(Code::kInvalid, "there is no list '{}'", part);
    lines.insert(lines.end(), list->items.begin(), list->items.end());
  }
  if (std::ssize(lines) > kMaxLayers)
    return error(Code::kInvalid, "{} layers; the limit is {}", lines.size(), kMaxLayers);
  Builder builder(maker, *arena, settings, *model.layers);
  for (size_t i = 0; i < lines.size(); ++i) {
    FERRY_TRY(line, read_line(*arena, settings, *lines[i], i));
    if (i == 0 && line.class_name == "Focus") maker.set_old_csp_activation();
    FERRY_CHECK_OK(builder.add_layer(line));
  }
  const bool may_be_v3 =
      maker.has_old_csp_activation() && find(*root, "activation") == nullptr &&
      std::any_of(lines.begin(), lines.end(), [](const Value* line) {
        return line->items.size() == 4 && line->items[2]->text == "BottleneckCSP";
      });
  if (may_be_v3) {
    model.note =
        "The yaml looks like YOLOv5 v3, whose activation (LeakyReLU in v3.0, Hardswish in v3.1) it "
        "does not say; SiLU was "
        "taken, as in v4 and newer. Add `activation: nn.Hardswish()` or the like to it.";
  }
  model.tree.arena = std::move(arena);
  return model;
}

bool looks_like_yaml(std::span<const std::byte> file) {
  if (file.empty() || file.size() > kMaxYamlText) return false;
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.find('\0') != std::string_view::npos) return false;
  const auto has_key = [&](std::string_view key) {
    return text.starts_with(key) || text.find(fmt::format("\n{}", key)) != std::string_view::npos;
  };
  return has_key("backbone:") || has_key("head:");
}

}  // namespace ferry::import

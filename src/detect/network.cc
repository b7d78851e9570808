#include "detect/network.h"

#include <algorithm>
#include <utility>

#include "graph/op_def.h"
#include "import/import.h"
#include "passes/pipeline.h"
#include "vision/letterbox.h"

namespace ferry::detect {
namespace {

constexpr size_t kPlansKept = 8;
constexpr size_t kContextsKept = 4;

// Moves the entry of `shape` to the front, or returns false.
template <class Entries>
bool touch(Entries& entries, const InputShape& shape) {
  const auto found = std::ranges::find(entries, shape, [](const auto& e) { return e.shape; });
  if (found == entries.end()) return false;
  std::rotate(entries.begin(), found, found + 1);
  return true;
}

// Counted before any pass, as Ultralytics counts: two operations a multiply-add, of one picture.
std::string describe(const graph::Graph& graph, const import::SourceInfo& source) {
  const graph::Shape& input = graph.value(graph.inputs[0]).type.shape;
  const std::string size = input.size() == 4 ? fmt::format(" at {}x{}", input[3], input[2]) : "";
  return fmt::format("{} ({}), {} parameters, {:.1f} GFLOPs{}",
                     source.release.empty() ? "YOLOv5" : source.release, source.format,
                     source.params_fused,
                     2e-9 * static_cast<double>(graph::macs(graph)) /
                         static_cast<double>(input.empty() ? 1 : std::max<int64_t>(input[0], 1)),
                     size);
}

// The model at the size asked for: rounded up to the stride where the graph takes any size, else
// what the file allows.
Result<import::Model> import_sized(const std::string& path, const LoadOptions& options) {
  FERRY_TRY(model, import::import_model(path, {.cfg = options.cfg}));
  if (options.input_height == 0 && options.input_width == 0) return model;
  const graph::Shape& input = model.graph.value(model.graph.inputs[0]).type.shape;
  int64_t height = options.input_height > 0 ? options.input_height : input[2];
  int64_t width = options.input_width > 0 ? options.input_width : input[3];
  if (!model.any_size) {
    if (input.size() == 4 && input[2] == height && input[3] == width) return model;
    return import::import_model(path, {.height = height, .width = width, .cfg = options.cfg});
  }
  const double stride =
      model.detector.strides.empty() ? 32 : std::ranges::max(model.detector.strides);
  FERRY_TRY(size, vision::check_input_size(height, width, static_cast<int64_t>(stride)));
  if (!size.warning.empty()) model.source.warnings.push_back(size.warning);
  FERRY_CHECK_OK(graph::set_input_type(
      model.graph, 0, {graph::DType::kF32, {input[0], input[1], size.height, size.width}}));
  return model;
}

}  // namespace

Result<std::shared_ptr<Network>> Network::load(const std::string& path,
                                               const LoadOptions& options) {
  if (options.input_height < 0 || options.input_width < 0) {
    return error(Code::kInvalid, "input size {} x {}: needs positive sides", options.input_height,
                 options.input_width);
  }
  FERRY_TRY(device, runtime::Device::open(options.device, {.threads = options.threads}));
  FERRY_TRY(model, import_sized(path, options));
  std::shared_ptr<Network> network(new Network);
  network->device_ = std::move(device);
  network->info_ = std::move(model.detector);
  network->source_ = std::move(model.source);
  network->any_size_ = model.any_size && !options.fixed_shape;
  network->tune_ = options.tune;
  network->graph_ = std::move(model.graph);
  graph::Graph& graph = network->graph_;

  if (network->info_.head == import::Head::kNone) {
    return error(Code::kUnsupported,
                 "{}: no YOLOv5 detection head was recognised in this {}; `ferry inspect` shows "
                 "what it holds",
                 path, network->source_.format);
  }
  network->description_ = describe(graph, network->source_);
  if (auto spec = passes::expose_raw_heads(graph); spec.ok()) {
    for (const auto& level : spec->anchors) {
      std::vector<vision::Anchor>& anchors = network->anchors_.emplace_back();
      for (const auto& [w, h] : level)
        anchors.push_back({static_cast<float>(w), static_cast<float>(h)});
    }
    network->info_.strides = spec->strides;
  }
  FERRY_TRY(report, passes::optimise(graph, {.disable = options.disable_passes,
                                             .dump = options.dump_passes,
                                             .print = {}}));
  const graph::Shape& input = graph.value(graph.inputs[0]).type.shape;
  if (graph.inputs.size() != 1 || input.size() != 4 || input[1] != 3) {
    return error(Code::kUnsupported, "{}: needs one input of three-channel pictures, found {}",
                 path, graph::shape_text(input));
  }
  network->nominal_ = {input[0], input[2], input[3]};
  for (const double stride : network->info_.strides) {
    network->stride_ = std::max(network->stride_, static_cast<int64_t>(stride));
  }
  return network;
}

Result<std::shared_ptr<const runtime::Plan>> Network::plan(const InputShape& shape) {
  const std::scoped_lock lock(mutex_);
  if (touch(plans_, shape)) return plans_.front().plan;
  // A model of one size is compiled once, and its weights need not be held twice.
  graph::Graph graph = any_size_ ? graph_ : std::exchange(graph_, {});
  if (graph.nodes.empty()) return error(Code::kBug, "the model's one plan was asked for twice");
  FERRY_CHECK_OK(graph::set_input_type(
      graph, 0, {graph::DType::kF32, {shape.batch, 3, shape.height, shape.width}}));
  FERRY_TRY(plan, runtime::Plan::compile(device_, std::move(graph),
                                         tune_ ? runtime::Tune::kFast : runtime::Tune::kOff));
  plans_.push_front({shape, plan});
  if (plans_.size() > kPlansKept) plans_.pop_back();
  return std::shared_ptr<const runtime::Plan>(std::move(plan));
}

std::vector<vision::HeadMap> Network::head_maps(const runtime::Context& context,
                                                int64_t image) const {
  std::vector<vision::HeadMap> maps;
  for (size_t level = 0; level < anchors_.size(); ++level) {
    const ferry_io io = context.output(level);
    const int64_t channels = io.dims[1], h = io.dims[2], w = io.dims[3];
    const float* data = static_cast<const float*>(io.data) + image * channels * h * w;
    const auto stride = static_cast<float>(info_.strides[level]);
    maps.push_back(io.layout == FERRY_NHWC
                       ? vision::HeadMap::nhwc(data, w, h, channels, stride, anchors_[level])
                       : vision::HeadMap::nchw(data, w, h, stride, anchors_[level]));
  }
  return maps;
}

Result<runtime::Context*> Lane::context(const InputShape& shape) {
  if (!touch(contexts_, shape)) {
    if (contexts_.size() >= kContextsKept) contexts_.pop_back();  // first, so that both never exist
    FERRY_TRY(plan, network_->plan(shape));
    FERRY_TRY(context, runtime::Context::create(std::move(plan)));
    contexts_.push_front({shape, std::move(context)});
  }
  return contexts_.front().context.get();
}

}  // namespace ferry::detect

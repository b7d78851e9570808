#include "import/onnx/import_onnx.h"

#include <algorithm>
#include <filesystem>

#include "base/mapped_file.h"
#include "graph/op_def.h"
#include "import/content.h"
#include "import/onnx/lower.h"
#include "import/onnx/metadata.h"
#include "import/onnx/proto.h"
#include "import/onnx/tensor_data.h"
#include "ops/table.h"
#include "passes/recognise_detect.h"

namespace ferry::import {
namespace {

using graph::DType;
using graph::Floats;
using graph::Graph;
using graph::Node;
using graph::Shape;
using graph::TensorType;
using graph::ValueId;

constexpr int64_t kNewestIr = 13;
constexpr int64_t kNewestTestedOpset = 21;
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 31;  // protobuf's own limit

std::string_view metadata(const onnx::ModelProto& proto, std::string_view key) {
  for (const auto& [name, value] : proto.metadata) {
    if (name == key) return value;
  }
  return {};
}

std::string clip(std::string_view text) { return std::string(text.substr(0, 200)); }

// The node that makes the boxes; null when the graph has none.
const Node* find_detect(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (node.op == &ops::op("yolo_detect")) return &node;
  }
  return nullptr;
}

// --- raw heads -----------------------------------------------------------------------------------

// The head map [batch, anchors * row, h, w] behind an output that is one already or is its view
// [batch, anchors, h, w, row]; kNone when it is neither.
ValueId head_behind(const Graph& graph, ValueId output, const std::vector<int>& producer) {
  const Shape& shape = graph.value(output).type.shape;
  if (shape.size() == 4) return output;
  if (shape.size() != 5) return graph::kNone;
  ValueId at = output;
  for (const std::string_view op : {"transpose", "reshape"}) {
    const int n = producer[static_cast<size_t>(at)];
    if (n < 0 || graph.nodes[static_cast<size_t>(n)].op->name != op) return graph::kNone;
    at = graph.nodes[static_cast<size_t>(n)].inputs[0];
  }
  const Shape& map = graph.value(at).type.shape;
  const bool fits =
      map.size() == 4 && map[1] == shape[1] * shape[4] && map[2] == shape[2] && map[3] == shape[3];
  return fits ? at : graph::kNone;
}

// Outputs that are all head maps, with metadata that names the anchors, get their yolo_detect.
Status add_detect(const onnx::ModelProto& proto, Graph& graph, SourceInfo& source) {
  const std::vector<int> producer = graph::producers(graph);
  std::vector<ValueId> heads;
  for (const ValueId output : graph.outputs) {
    heads.push_back(head_behind(graph, output, producer));
    if (heads.back() == graph::kNone) return {};
  }
  const Shape& picture = graph.value(graph.inputs[0]).type.shape;
  if (heads.size() < 2 || heads.size() > 8 || picture.size() != 4) return {};

  const std::string_view text = metadata(proto, "anchors");
  const auto anchors = onnx::parse_numbers(text);
  const size_t pairs = anchors.ok() ? anchors->size() / (2 * heads.size()) : 0;
  if (text.empty() || !anchors.ok() || pairs == 0 || anchors->size() != pairs * 2 * heads.size()) {
    source.warnings.push_back(fmt::format(
        "The {} outputs look like raw heads, and the file does not name their anchors: they are "
        "given as they are. Export with the Detect layer (Ultralytics' export.py does) for boxes.",
        heads.size()));
    return {};
  }
  Floats strides;
  int64_t row = 0;
  for (const ValueId head : heads) {
    const Shape& map = graph.value(head).type.shape;
    const auto count = static_cast<int64_t>(pairs);
    if (map[1] % count != 0 || map[2] == 0 || picture[2] % map[2] != 0) return {};
    row = map[1] / count;
    strides.push_back(static_cast<double>(picture[2] / map[2]));
  }
  auto detect = graph::add_op(graph, ops::op("yolo_detect"), "detect", heads,
                              {{"anchors", *anchors}, {"strides", strides}, {"classes", row - 5}});
  if (!detect.ok()) {
    source.warnings.push_back(
        fmt::format("The outputs look like raw heads, but do not fit the anchors that the file "
                    "names ({}): they are given as they are.",
                    detect.error().message));
    return {};
  }
  graph.outputs = {*detect};
  graph::prune(graph);
  return {};
}

// --- what the file says --------------------------------------------------------------------------

// Rows whose Detect tail was quantized with the rest are no longer boxes to 1e-4.
void warn_quantized_tail(int found, Model& model) {
  if (found > 0 || model.graph.outputs.empty()) return;
  const std::vector<int> producer = graph::producers(model.graph);
  const int n = producer[static_cast<size_t>(model.graph.outputs[0])];
  const auto rank = model.graph.value(model.graph.outputs[0]).type.shape.size();
  if (n < 0 || rank != 3 ||
      model.graph.nodes[static_cast<size_t>(n)].op->name != "dequantize_linear") {
    return;
  }
  model.source.warnings.push_back(
      "The output itself is quantized, boxes and scores with one scale: no boxes are read from it. "
      "Leave the nodes behind the last convolutions out when quantizing.");
}

// Output 0 becomes the rows; raw per-level outputs beside them go.
void put_rows_first(Graph& graph, SourceInfo& source) {
  const ValueId rows = find_detect(graph)->outputs[0];
  const size_t before = graph.outputs.size();
  std::erase_if(graph.outputs, [&](ValueId id) {
    const size_t rank = graph.value(id).type.shape.size();
    return id == rows || rank == 4 || rank == 5;
  });
  graph.outputs.insert(graph.outputs.begin(), rows);
  if (graph.outputs.size() == before) return;
  source.warnings.push_back(fmt::format("{} outputs that repeat the raw heads are left out.",
                                        before - graph.outputs.size()));
  graph::prune(graph);
}

void describe_detector(const onnx::ModelProto& proto, const Graph& graph, DetectorInfo& detector,
                       SourceInfo& source) {
  if (const Node* detect = find_detect(graph); detect && graph.outputs[0] == detect->outputs[0]) {
    detector.head = Head::kYolov5;
    detector.nc = graph::attr<int64_t>(*detect, "classes");
    detector.strides = graph::attr<Floats>(*detect, "strides");
    const Floats& anchors = graph::attr<Floats>(*detect, "anchors");
    const size_t per_level = anchors.size() / (2 * detector.strides.size());
    for (size_t i = 0; i + 1 < anchors.size(); i += 2) {
      if (i / 2 % per_level == 0) detector.anchors.emplace_back();
      detector.anchors.back().push_back({anchors[i], anchors[i + 1]});
    }
  }
  const std::string_view text = metadata(proto, "names");
  if (!text.empty()) {
    auto names = onnx::parse_names(text);
    if (names.ok()) {
      detector.names = *std::move(names);
    } else {
      source.warnings.push_back(fmt::format(
          "The class names in the file {}; classes have numbers instead.", names.error().message));
    }
  }
  if (detector.head == Head::kNone) {
    detector.nc = static_cast<int64_t>(detector.names.size());
    return;
  }
  const auto count = static_cast<size_t>(detector.nc);
  if (!detector.names.empty() && detector.names.size() != count) {
    source.warnings.push_back(fmt::format("The file names {} classes, its head has {}.",
                                          detector.names.size(), detector.nc));
  }
  for (size_t i = detector.names.size(); i < count; ++i)
    detector.names.push_back(std::to_string(i));
  detector.names.resize(count);
}

// Elements of the f32 constants that convolutions and products weigh with, quantized ones too.
int64_t count_parameters(const Graph& graph) {
  std::vector<bool> counted(graph.values.size(), false);
  const std::vector<int> producer = graph::producers(graph);
  int64_t sum = 0;
  for (const Node& node : graph.nodes) {
    if (node.op->macs == nullptr) continue;
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      ValueId id = node.inputs[i];
      if (id == graph::kNone) continue;
      const int n = producer[static_cast<size_t>(id)];
      if (n >= 0 && graph.nodes[static_cast<size_t>(n)].op->name == "dequantize_linear") {
        id = graph.nodes[static_cast<size_t>(n)].inputs[0];
      }
      if (!graph.value(id).constant || counted[static_cast<size_t>(id)]) continue;
      counted[static_cast<size_t>(id)] = true;
      sum += graph.value(id).constant->size();
    }
  }
  return sum;
}

int64_t opset_of(const onnx::ModelProto& proto) {
  for (const auto& [domain, version] : proto.opsets) {
    if (domain.empty() || domain == "ai.onnx") return version;
  }
  return 0;
}

void describe_source(const onnx::ModelProto& proto, bool half, const Model& model,
                     SourceInfo& source) {
  const int64_t opset = opset_of(proto);
  bool quantized = false;
  for (const Node& node : model.graph.nodes) quantized |= node.op->name == "quantize_linear";
  source.format = fmt::format("ONNX opset {}{}", opset,
                              quantized ? ", quantized (QDQ)"
                              : half    ? ", f16 weights"
                                        : "");
  if (opset > kNewestTestedOpset) {
    source.warnings.push_back(fmt::format("Opset {} is newer than {}, the newest that ferry knows.",
                                          opset, kNewestTestedOpset));
  }
  const std::string_view description = metadata(proto, "description");
  source.release = !description.empty()                   ? clip(description)
                   : model.detector.head == Head::kYolov5 ? "YOLOv5"
                                                          : "";
  source.producer = clip(proto.producer_name);
  if (!proto.producer_version.empty()) {
    source.producer += fmt::format(" {}", clip(proto.producer_version));
  }
  source.date = clip(metadata(proto, "date"));
  source.params_stored = source.params_fused = count_parameters(model.graph);
}

// --- sizes ---------------------------------------------------------------------------------------

// The graph for other pictures. Fails where something in it fixes the size, or takes another size
// without complaint but not as a detector does (every level must have a cell each stride).
Result<Graph> resized(const Model& model, const TensorType& wanted) {
  if (model.detector.head != Head::kYolov5) {
    return error(Code::kUnsupported, "only models whose Detect layer is recognised can change");
  }
  Graph copy = model.graph;
  FERRY_CHECK_OK(graph::set_input_type(copy, 0, wanted));
  const Node& detect = *find_detect(copy);
  for (size_t level = 0; level < detect.inputs.size(); ++level) {
    const Shape& map = copy.value(detect.inputs[level]).type.shape;
    const double stride = model.detector.strides[level];
    const bool fits =
        map[0] == wanted.shape[0] &&
        static_cast<double>(map[2]) * stride == static_cast<double>(wanted.shape[2]) &&
        static_cast<double>(map[3]) * stride == static_cast<double>(wanted.shape[3]);
    if (!fits) {
      return error(Code::kUnsupported, "a head of stride {} becomes {}", stride,
                   graph::shape_text(map));
    }
  }
  return copy;
}

int64_t largest_stride(const Model& model) {
  double largest = 1;
  for (const double stride : model.detector.strides) largest = std::max(largest, stride);
  return static_cast<int64_t>(std::min(largest, 65536.0));
}

Status check_size(const Model& model, const Shape& picture) {
  if (model.detector.head != Head::kYolov5 || picture.size() != 4) return {};
  const int64_t largest = largest_stride(model);
  if (picture[2] % largest == 0 && picture[3] % largest == 0) return {};
  return error(Code::kInvalid, "a picture of {} x {} is no multiple of the largest stride, {}",
               picture[2], picture[3], largest);
}

// Can the picture be larger and smaller, in both directions, and the batch another?
bool takes_any_size(const Model& model) {
  const TensorType old = model.graph.value(model.graph.inputs[0]).type;
  if (model.detector.head != Head::kYolov5 || old.shape.size() != 4) return false;
  const int64_t step = largest_stride(model);
  TensorType larger = old, smallest = old;
  larger.shape = {old.shape[0] + 1, old.shape[1], old.shape[2] + step, old.shape[3] + 2 * step};
  smallest.shape = {1, old.shape[1], step, step};
  return resized(model, larger).ok() && resized(model, smallest).ok();
}

// A static model for the batch and the size that the options ask for.
Status resize(const onnx::Lowered& lowered, const ImportOptions& options, Model& model) {
  const TensorType old = model.graph.value(model.graph.inputs[0]).type;
  if (old.shape.size() != 4) return {};
  TensorType wanted = old;
  if (!lowered.dynamic_batch) wanted.shape[0] = options.batch;
  if (!lowered.dynamic_size && options.height > 0) wanted.shape[2] = options.height;
  if (!lowered.dynamic_size && options.width > 0) wanted.shape[3] = options.width;
  FERRY_CHECK_OK(check_size(model, wanted.shape));
  if (wanted == old) return {};

  // Only a recognised tail tells whether what comes out still means the same.
  auto changed = resized(model, wanted);
  if (changed.ok()) {
    model.graph = *std::move(changed);
    return {};
  }
  const bool batch_only = wanted.shape[2] == old.shape[2] && wanted.shape[3] == old.shape[3];
  if (batch_only && options.batch == 1) return {};  // the default: nobody asked for it
  return error(Code::kUnsupported,
               "was exported for pictures of {} and cannot take {} ({}): use that size, or export "
               "it again with --dynamic",
               graph::shape_text(old.shape), graph::shape_text(wanted.shape),
               changed.error().message);
}

// --- the whole -----------------------------------------------------------------------------------

Status check_options(const ImportOptions& options) {
  if (options.batch < 1 || options.height < 0 || options.width < 0) {
    return error(Code::kInvalid, "batch {} and picture {} x {} are no sizes", options.batch,
                 options.height, options.width);
  }
  return {};
}

Result<onnx::ModelProto> read(std::span<const std::byte> file) {
  if (file.empty()) return error(Code::kInvalid, "the file is empty");
  if (file.size() >= kMaxFileBytes) {
    return error(Code::kUnsupported,
                 "the file has {} bytes, protobuf ends at 2 GiB: save the weights as external data",
                 file.size());
  }
  auto proto = onnx::read_model(file);
  if (!proto.ok()) {
    const std::string foreign = describe_foreign(file);
    if (!foreign.empty()) return error(Code::kInvalid, "is no ONNX file but {}", foreign);
    return std::move(proto).error().within("is no ONNX file, or a truncated one");
  }
  if (proto->ir_version < 3 || proto->ir_version > kNewestIr) {
    return error(Code::kUnsupported, "has IR version {}, ferry reads 3 to {}: export it again",
                 proto->ir_version, kNewestIr);
  }
  return proto;
}

Result<Model> import_bytes(std::span<const std::byte> file, onnx::TensorSource source,
                           const ImportOptions& options) {
  FERRY_CHECK_OK(check_options(options));
  FERRY_TRY(proto, read(file));
  const auto exported_size = onnx::parse_numbers(metadata(proto, "imgsz"));
  FERRY_TRY(lowered, onnx::lower(proto, source, options,
                                 exported_size.ok() ? *exported_size : std::vector<double>{}));
  Model model;
  model.graph = std::move(lowered.graph);
  if (model.graph.inputs.empty()) return error(Code::kInvalid, "the model has no input");
  FERRY_TRY(found, passes::recognise_detect(model.graph));
  if (found == 0) FERRY_CHECK_OK(add_detect(proto, model.graph, model.source));
  warn_quantized_tail(found, model);
  if (find_detect(model.graph) != nullptr) put_rows_first(model.graph, model.source);
  describe_detector(proto, model.graph, model.detector, model.source);
  FERRY_CHECK_OK(resize(lowered, options, model));
  model.any_size = takes_any_size(model);
  describe_source(proto, source.converted() > 0, model, model.source);
  FERRY_CHECK_OK(graph::verify(model.graph));
  return model;
}

}  // namespace

bool looks_like_onnx(std::span<const std::byte> file) {
  // Field 1 (ir_version) as a varint below 16, then another field of ModelProto.
  if (file.size() < 4 || file[0] != std::byte{0x08} || file[1] == std::byte{0}) return false;
  const auto next = static_cast<unsigned>(file[2]) >> 3;
  return file[1] < std::byte{16} && next >= 1 && next <= 16;
}

Result<Model> import_onnx(const std::string& path, const ImportOptions& options) {
  FERRY_TRY(file, MappedFile::open(path));
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  auto model = import_bytes(file->bytes(), {file, folder.empty() ? "." : folder.string()}, options);
  file->drop_pages();  // what the graph still views is read again when it is packed
  return std::move(model).within(path);
}

Result<Model> import_onnx(std::span<const std::byte> file, std::shared_ptr<const void> owner,
                          const ImportOptions& options) {
  return import_bytes(file, {std::move(owner), ""}, options);
}

}  // namespace ferry::import

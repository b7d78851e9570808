#include "export/export_onnx.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/mapped_file.h"
#include "export/onnx/forms.h"
#include "export/onnx/model_proto.h"
#include "graph/op_def.h"
#include "passes/pipeline.h"
#include "passes/raw_heads.h"

namespace ferry::exporter {
namespace {

using graph::Graph;
using graph::ValueId;

// Forms that our own backend likes and that ONNX would only take apart again, or that change how
// the network is cut into nodes.
const std::vector<std::string> kBackendPasses = {
    "chain_max_pools", "fuse_activation", "merge_siblings", "fold_upsample", "fuse_residual"};

constexpr int64_t kMostBytes = (int64_t{1} << 31) - 1;  // protobuf's own limit

Status check(const import::Model& model, const OnnxOptions& options) {
  if (options.opset < kOldestOpset || options.opset > kNewestOpset) {
    return error(Code::kUnsupported, "opset {} is not supported, ferry writes {} to {}",
                 options.opset, kOldestOpset, kNewestOpset);
  }
  const bool detector = model.detector.head == import::Head::kYolov5;
  if (options.raw_heads && !detector) {
    return error(Code::kUnsupported,
                 "raw heads were asked for, but the model has no Detect layer that ferry knows");
  }
  if (options.dynamic && !(detector && model.any_size)) {
    return error(Code::kUnsupported,
                 "dynamic axes were asked for, but the model works for one size only{}",
                 detector ? "" : " as far as ferry can tell: its Detect layer is not recognised");
  }
  return {};
}

// --- the graph that is written -------------------------------------------------------------------

void rename(Graph& graph, ValueId id, const std::string& name) {
  const ValueId other = graph::find_value(graph, name);
  if (other == id) return;
  if (other != graph::kNone) graph.value(other).name = graph::unique_name(graph, name);
  graph.value(id).name = name;
}

bool is_quantized(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const graph::Node& node) {
    return node.op->name == "quantize_linear" || node.op->name == "dequantize_linear";
  });
}

Status prepare(import::Model& model, const OnnxOptions& options) {
  Graph& graph = model.graph;
  if (options.raw_heads) FERRY_CHECK_OK(passes::expose_raw_heads(graph));
  // Folding would turn quantized weights back into f32.
  if (options.simplify && !is_quantized(graph)) {
    FERRY_CHECK_OK(passes::optimise(graph, {.disable = kBackendPasses}));
  }
  if (model.detector.head == import::Head::kYolov5) {
    rename(graph, graph.inputs[0], "images");
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      rename(graph, graph.outputs[i], fmt::format("output{}", i));
    }
  }
  return {};
}

// Dynamic axes are honest when the file would hold the same nodes for another batch, height and
// width.
Status check_dynamic(const import::Model& model, const graph::OnnxTarget& target,
                     const onnx::Forms& forms) {
  Graph other = model.graph;
  graph::TensorType input = other.value(other.inputs[0]).type;
  const auto& strides = model.detector.strides;
  const auto step = static_cast<int64_t>(*std::max_element(strides.begin(), strides.end()));
  input.shape[0] += 1;
  input.shape[2] += step;
  input.shape[3] += 2 * step;
  constexpr std::string_view kWhat = "dynamic axes";
  FERRY_CHECK_OK(graph::set_input_type(other, 0, input).within(kWhat));
  FERRY_TRY(again, onnx::onnx_forms(other, target));
  for (size_t i = 0; i < forms.nodes.size(); ++i) {
    const onnx::NodeForm& a = forms.nodes[i];
    const bool same = i < again.nodes.size() && a.op_type == again.nodes[i].op_type &&
                      a.attrs == again.nodes[i].attrs && a.inputs == again.nodes[i].inputs;
    if (same) continue;
    return error(Code::kUnsupported, "{}: {} is written for one picture size", kWhat, a.origin);
  }
  for (size_t i = 0; i < forms.constants.size(); ++i) {
    const graph::Tensor& a = forms.constants[i].tensor;
    const graph::Tensor& b = again.constants[i].tensor;
    if (a.type() == b.type() &&
        (a.data() == b.data() || std::ranges::equal(a.bytes(), b.bytes()))) {
      continue;
    }
    return error(Code::kUnsupported, "{}: the constant '{}' belongs to one picture size", kWhat,
                 forms.constants[i].name);
  }
  return {};
}

// --- what the file says besides ------------------------------------------------------------------

std::string python_list(const auto& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

std::string python_string(std::string_view text) {
  const bool twice = text.find('\'') != text.npos && text.find('"') == text.npos;
  const char quote = twice ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      if (c == quote || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + quote;
}

std::vector<std::pair<std::string, std::string>> metadata(const import::Model& model) {
  std::vector<std::pair<std::string, std::string>> out;
  const import::DetectorInfo& detector = model.detector;
  if (detector.head == import::Head::kYolov5) {
    const double stride = *std::max_element(detector.strides.begin(), detector.strides.end());
    out.emplace_back("stride", fmt::format("{}", static_cast<int64_t>(stride)));
  }
  if (!detector.names.empty()) out.emplace_back("names", python_dict(detector.names));
  if (detector.head == import::Head::kYolov5) {
    const graph::Shape& picture = model.graph.value(model.graph.inputs[0]).type.shape;
    out.emplace_back("imgsz", python_list(graph::Ints{picture[2], picture[3]}));
    graph::Floats anchors;
    for (const auto& level : detector.anchors) {
      for (const auto& anchor : level) anchors.insert(anchors.end(), anchor.begin(), anchor.end());
    }
    out.emplace_back("anchors", python_list(anchors));
  }
  return out;
}

// --- the file ------------------------------------------------------------------------------------

struct Written {
  onnx::Forms forms;  // whose weights `proto` borrows
  onnx::Message proto;
};

Result<std::unique_ptr<Written>> make(import::Model model, const OnnxOptions& options) {
  FERRY_CHECK_OK(check(model, options));
  FERRY_CHECK_OK(prepare(model, options));
  const graph::OnnxTarget target{
      .opset = options.opset, .half = options.half, .dynamic = options.dynamic};
  auto written = std::make_unique<Written>();
  FERRY_TRY(forms, onnx::onnx_forms(model.graph, target));
  if (options.dynamic) FERRY_CHECK_OK(check_dynamic(model, target, forms));
  written->forms = std::move(forms);
  written->proto = onnx::model_proto(written->forms, {.opset = options.opset,
                                                      .dynamic = options.dynamic,
                                                      .producer_version = options.producer_version,
                                                      .metadata = metadata(model)});
  if (written->proto.size() > kMostBytes) {
    return error(Code::kUnsupported, "the file would have {} bytes, and protobuf ends at 2 GiB{}",
                 written->proto.size(), options.half ? "" : ": export with --half");
  }
  return written;
}

Status write(const onnx::Message& proto, const std::string& path) {
  return write_file_with(path, [&](const std::string& temporary) -> Status {
    const auto why = [&] {
      return error(Code::kIo, "{}: cannot write: {}", path, std::strerror(errno));
    };
    std::FILE* file = std::fopen(temporary.c_str(), "wb");
    if (file == nullptr) return why();
    Status status = proto.write([&](std::string_view piece) -> Status {
      // An empty piece may have no address, which fwrite must not be given.
      if (piece.empty() || std::fwrite(piece.data(), 1, piece.size(), file) == piece.size())
        return {};
      return why();
    });
    if (std::fclose(file) != 0 && status.ok()) return why();
    return status;
  });
}

}  // namespace

std::string python_dict(const std::vector<std::string>& names) {
  std::string out = "{";
  for (size_t i = 0; i < names.size(); ++i) {
    out += fmt::format("{}{}: {}", i == 0 ? "" : ", ", i, python_string(names[i]));
  }
  return out + "}";
}

Result<OnnxReport> export_onnx(import::Model model, const OnnxOptions& options,
                               const std::string& path) {
  FERRY_TRY(written, make(std::move(model), options));
  FERRY_CHECK_OK(write(written->proto, path));
  OnnxReport report{.inputs = {},
                    .outputs = {},
                    .nodes = static_cast<int64_t>(written->forms.nodes.size()),
                    .bytes = written->proto.size()};
  for (const onnx::NamedType& port : written->forms.inputs) {
    report.inputs.push_back({port.name, port.type});
  }
  for (const onnx::NamedType& port : written->forms.outputs) {
    report.outputs.push_back({port.name, port.type});
  }
  return report;
}

Result<std::string> onnx_bytes(import::Model model, const OnnxOptions& options) {
  FERRY_TRY(written, make(std::move(model), options));
  std::string bytes;
  FERRY_CHECK_OK(written->proto.write([&](std::string_view piece) -> Status {
    bytes.append(piece);
    return {};
  }));
  return bytes;
}

}  // namespace ferry::exporter

// ferry export: a checkpoint, an ONNX file or a model yaml becomes an ONNX file that other engines
// run. Flags are those of Ultralytics' export.py.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/inspect_report.h"
#include "cli/options.h"
#include "cli/print.h"
#include "export/export_onnx.h"
#include "ferry/ferry.h"
#include "import/import.h"

namespace ferry::cli {

namespace fs = std::filesystem;

namespace {

struct Arguments {
  std::string weights = "yolov5n.pt", cfg, output;
  std::vector<std::string> formats = {"onnx"};
  std::vector<int64_t> imgsz;
  int64_t batch_size = 1, opset = exporter::OnnxOptions().opset;
  bool half = false, dynamic = false, simplify = true, raw_heads = false;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double megabytes(int64_t bytes) { return static_cast<double>(bytes) / 1e6; }

std::string ports(const std::vector<exporter::OnnxReport::Port>& ports, bool dynamic) {
  std::string text;
  for (const auto& port : ports) {
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", port.name, graph::type_text(port.type));
  }
  return text + (dynamic ? " (any batch, height and width)" : "");
}

// As a word of a shell's command line.
std::string shell_word(const std::string& path) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (path.find_first_not_of(kPlain) == path.npos) return path;
  std::string out = "'";
  for (const char c : path) out += c == '\'' ? "'\"'\"'" : std::string(1, c);
  return out + "'";
}

Status check_formats(const std::vector<std::string>& formats) {
  for (const std::string& format : formats) {
    if (format == "onnx") continue;
    return error(Code::kUnsupported, "format '{}' is not supported, only onnx", format);
  }
  return {};
}

// Where the file goes: --output, else beside the weights with another extension.
Result<std::string> output_path(const Arguments& a) {
  const std::string path =
      a.output.empty() ? fs::path(a.weights).replace_extension(".onnx").string() : a.output;
  std::error_code failed;
  if (fs::equivalent(path, a.weights, failed) && !failed) {
    return error(Code::kInvalid, "{} is what is exported: name another file with --output", path);
  }
  return path;
}

Result<int> run(const Arguments& a) {
  const auto start = std::chrono::steady_clock::now();
  FERRY_CHECK_OK(check_formats(a.formats));
  FERRY_TRY(path, output_path(a));
  import::ImportOptions size{.batch = a.batch_size, .cfg = a.cfg};
  if (!a.imgsz.empty()) {
    size.height = a.imgsz.front();
    size.width = a.imgsz.back();
  }
  FERRY_TRY(model, import::import_model(a.weights, size));
  for (const std::string& warning : model.source.warnings) {
    print(stderr, "ferry export: {}: {}\n", a.weights, printable(warning));
  }
  std::error_code unknown;
  const auto bytes = fs::file_size(a.weights, unknown);
  print("{}: {}, {} class{}, {} parameters ({:.1f} MB)\n", a.weights,
        printable(model.source.release.empty() ? model.source.format : model.source.release),
        model.detector.nc, model.detector.nc == 1 ? "" : "es", model.source.params_fused,
        megabytes(unknown ? 0 : static_cast<int64_t>(bytes)));
  if (model.detector.head == import::Head::kNone) {
    print(stderr, "ferry export: {}: no Detect layer is recognised: written as it is\n", a.weights);
  }
  FERRY_TRY(report, exporter::export_onnx(std::move(model),
                                          {.opset = a.opset,
                                           .half = a.half,
                                           .dynamic = a.dynamic,
                                           .simplify = a.simplify,
                                           .raw_heads = a.raw_heads,
                                           .producer_version = version()},
                                          path));
  print("ONNX: opset {}, {} nodes, {}\n", a.opset, report.nodes, a.half ? "f16" : "f32");
  print("  in   {}\n  out  {}\n", ports(report.inputs, a.dynamic), ports(report.outputs, false));
  print("saved as {} ({:.1f} MB) in {:.1f} s\n\n", path, megabytes(report.bytes),
        seconds_since(start));
  print("Detect:    ferry detect --weights {} --source PICTURE\n", shell_word(path));
  print("Inspect:   ferry inspect {}\n", shell_word(path));
  print("Visualize: https://netron.app\n");
  return kDone;
}

int report(const Arguments& a) {
  const auto code = run(a);
  if (code.ok()) return *code;
  print(stderr, "ferry export: {}\n", printable(code.error().message));
  return kFailed;
}

std::function<int()> setup(CLI::App& app) {
  const auto a = std::make_shared<Arguments>();
  app.add_option("--weights", a->weights, "a YOLOv5 .pt, an .onnx or a model .yaml")
      ->capture_default_str();
  add_cfg(app, a->cfg);
  app.add_option("--include,--format", a->formats, "what to write: onnx")->capture_default_str();
  app.add_option("--output,-o", a->output, "the file; default: the weights' name with .onnx");
  add_image_size(app, a->imgsz);
  app.add_option("--batch-size,--batch", a->batch_size, "pictures a run")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--opset", a->opset, "ONNX opset, 12 to 17")
      ->capture_default_str()
      ->check(CLI::Range(exporter::kOldestOpset, exporter::kNewestOpset));
  app.add_flag("--half", a->half, "weights and arithmetic in f16; inputs and outputs stay f32");
  app.add_flag("--dynamic", a->dynamic, "any batch, height and width");
  app.add_flag("--simplify,!--no-simplify", a->simplify,
               "fold batch norms and constants (the default)");
  app.add_flag("--raw-heads", a->raw_heads, "the maps in front of the Detect layer, undecoded");
  return [a] { return report(*a); };
}

}  // namespace

extern const Command command_export;
const Command command_export = {
    .name = "export", .summary = "write a model as ONNX, for other engines", .setup = setup};

}  // namespace ferry::cli

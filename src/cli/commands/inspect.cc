// ferry inspect: what is in a model file, before anything optimises it; for a file that does not
// open, why.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "base/sha256.h"
#include "cli/command.h"
#include "cli/inspect_report.h"
#include "cli/options.h"
#include "cli/print.h"
#include "graph/text.h"
#include "import/import.h"

namespace ferry::cli {
namespace {

struct Arguments {
  std::string file, cfg;
  std::vector<int64_t> imgsz;
  bool json = false, graph = false;
};

int run(const Arguments& a) {
  const auto fail = [](const std::string& why) {
    print(stderr, "ferry inspect: {}\n", why);
    return kFailed;
  };
  InspectedFile file{.path = a.file};
  {
    const auto mapped = MappedFile::open(a.file);
    if (!mapped.ok()) return fail(mapped.error().message);
    file.bytes = static_cast<int64_t>((*mapped)->bytes().size());
    file.sha256 = sha256_hex((*mapped)->bytes());
  }
  import::ImportOptions options{.cfg = a.cfg};
  if (!a.imgsz.empty()) {
    options.height = a.imgsz.front();
    options.width = a.imgsz.back();
  }
  const auto model = import::import_model(a.file, options);
  if (!model.ok()) {
    if (a.json) print("{}", json_refusal(file, model.error().message));
    return fail(printable(model.error().message));
  }
  if (a.graph) {
    print("{}", graph::print(model->graph, graph::ConstantText::kElided));
  } else {
    print("{}", a.json ? json_report(file, *model) : text_report(file, *model));
  }
  return kDone;
}

std::function<int()> setup(CLI::App& app) {
  const auto a = std::make_shared<Arguments>();
  app.add_option("file", a->file, "a YOLOv5 .pt, an .onnx or a model .yaml")->required();
  app.add_flag("--json", a->json, "one JSON object instead of text");
  app.add_flag("--graph", a->graph,
               "the graph itself, in ferry's text form, long constants left out")
      ->excludes("--json");
  add_cfg(app, a->cfg);
  app.add_option("--imgsz,--img,--img-size", a->imgsz,
                 "input size in pixels: one side, or height and width")
      ->expected(1, 2)
      ->check(CLI::Range(1, 1 << 20));
  return [a] { return run(*a); };
}

}  // namespace

extern const Command command_inspect;
const Command command_inspect = {.name = "inspect",
                                 .summary = "what is in a model file, or why it does not open",
                                 .setup = setup};

}  // namespace ferry::cli

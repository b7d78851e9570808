#include "cli/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "passes/pipeline.h"

namespace ferry::cli {

void add_image_size(CLI::App& app, std::vector<int64_t>& imgsz) {
  app.add_option("--imgsz,--img,--img-size", imgsz,
                 "input size in pixels: one side, or height and width")
      ->expected(1, 2)
      ->check(CLI::Range(1, 65536));
}

void add_device(CLI::App& app, std::string& device) {
  app.add_option("--device", device, "cpu")->capture_default_str();
}

void add_threads(CLI::App& app, int& threads) {
  app.add_option("--threads", threads, "threads of one run; 0: all processors")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
}

void add_cfg(CLI::App& app, std::string& cfg) {
  app.add_option("--cfg", cfg, "model yaml, for weights without a model (a bare state_dict)")
      ->check(CLI::ExistingFile);
}

void add_run_folder(CLI::App& app, std::string& project, std::string& name, bool& exist_ok) {
  app.add_option("--project", project, "folder of the runs")->capture_default_str();
  app.add_option("--name", name, "this run's folder in it; numbered when it exists")
      ->capture_default_str();
  app.add_flag("--exist-ok", exist_ok, "use the folder again instead of numbering");
}

CLI::Validator fraction() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        double value = 0;
        const char* end = text.data() + text.size();
        const auto [at, failure] = std::from_chars(text.data(), end, value);
        if (failure == std::errc() && at == end && value >= 0 && value <= 1) return {};
        return fmt::format("'{}' is not a number from 0 to 1", text);
      },
      "0 to 1");
}

CLI::Validator pass_name() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        const auto& names = passes::pass_names();
        if (text == "help" || text == "all" || std::ranges::find(names, text) != names.end())
          return {};
        return fmt::format("'{}' is no pass; `--disable-pass help` lists them", text);
      },
      "PASS");
}

std::string overwrites(const std::string& output, const std::vector<std::string>& inputs) {
  std::error_code failure;
  for (const std::string& input : inputs) {
    if (std::filesystem::equivalent(output, input, failure))
      return fmt::format("{} would replace {}, which is read", output, input);
  }
  return {};
}

}  // namespace ferry::cli

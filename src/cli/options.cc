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

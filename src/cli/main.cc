// ferry, the tool: finds the command, parses its options, runs it. Exit codes: command.h.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/print.h"
#include "ferry/ferry.h"

namespace ferry::cli {
namespace {

volatile std::sig_atomic_t g_interrupted = 0;

void on_signal(int signal) {
  if (g_interrupted) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  g_interrupted = 1;
}

// Edits that turn `a` into `b`: insertions, removals, replacements (Levenshtein).
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row[b.size()];
}

// The closest of `names` when it is close enough to be meant, else empty.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const auto best = std::ranges::min_element(
      names, {}, [&](const std::string& name) { return distance(word, name); });
  if (best == names.end() || distance(word, *best) > std::max<size_t>(2, word.size() / 3))
    return "";
  return fmt::format("; did you mean {}?", *best);
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// `--conf_thres` is `--conf-thres`: mm_build's users write the one, Ultralytics' the other.
std::string dashed(std::string argument) {
  if (!argument.starts_with("--")) return argument;
  const auto end = std::ranges::find(argument, '=');
  std::replace(argument.begin(), end, '_', '-');
  return argument;
}

std::string help(const CLI::App& app) {
  std::string text = fmt::format(
      "ferry {}: carries YOLOv5 detectors to other hardware\n\nusage: ferry COMMAND [options]\n\n",
      version());
  for (const Command* command : command_table())
    text += fmt::format("  {:<10} {}\n", command->name, command->summary);
  return text + "\nferry COMMAND --help lists a command's options; ferry --version.\n" +
         app.get_footer();
}

int wrong_usage(std::string_view where, std::string_view what) {
  print(stderr, "{}: {}\nTry '{} --help'.\n", where, what, where);
  return kWrongUsage;
}

int run(std::vector<std::string> arguments) {
  CLI::App app("", "ferry");
  if (arguments.empty() || arguments[0] == "-h" || arguments[0] == "--help" ||
      arguments[0] == "help") {
    print(arguments.empty() ? stderr : stdout, "{}", help(app));
    return arguments.empty() ? kWrongUsage : kDone;
  }
  if (arguments[0] == "--version" || arguments[0] == "-V" || arguments[0] == "version") {
    print("ferry {}\n", version());
    return kDone;
  }
  const auto row =
      std::ranges::find(command_table(), std::string_view(arguments[0]), &Command::name);
  if (row == command_table().end()) {
    std::vector<std::string> names;
    for (const Command* command : command_table()) names.emplace_back(command->name);
    return wrong_usage("ferry", fmt::format("'{}' is not a command{}", arguments[0],
                                            did_you_mean(arguments[0], names)));
  }
  const std::string where = fmt::format("ferry {}", (*row)->name);
  app.name(where);
  app.description(std::string((*row)->summary));
  app.allow_extras();
  const std::function<int()> run_command = (*row)->setup(app);
  std::vector<std::string> reversed;
  for (size_t i = arguments.size(); i-- > 1;) reversed.push_back(dashed(arguments[i]));
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    print("{}", app.help());
    return kDone;
  } catch (const CLI::ParseError& error) {
    return wrong_usage(where, error.what());
  }
  if (const std::vector<std::string> extras = app.remaining(); !extras.empty()) {
    return wrong_usage(where, fmt::format("does not know '{}'{}", extras[0],
                                          did_you_mean(extras[0], option_names(app))));
  }
  return run_command();
}

}  // namespace

bool interrupted() { return g_interrupted != 0; }

}  // namespace ferry::cli

int main(int argc, char** argv) {
  std::signal(SIGINT, ferry::cli::on_signal);
  std::signal(SIGTERM, ferry::cli::on_signal);
  std::signal(SIGHUP, ferry::cli::on_signal);  // the terminal or connection is gone
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a write that fails, not the end of a run
  const int code = ferry::cli::run({argv + 1, argv + argc});
  if ((std::fflush(stdout) == 0 && std::ferror(stdout) == 0) || code != ferry::cli::kDone)
    return code;
  ferry::cli::print(stderr, "ferry: cannot write to standard output\n");
  return ferry::cli::kFailed;
}

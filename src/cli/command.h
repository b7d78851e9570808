// A command of the tool: one row a file in src/cli/commands. The folder is the table; help and "did
// you mean" come from it.
#pragma once

#include <functional>
#include <span>
#include <string_view>

namespace CLI {
class App;
}

namespace ferry::cli {

// Exit codes of the process.
inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;      // the work failed
inline constexpr int kWrongUsage = 2;  // the command line is wrong

struct Command {
  std::string_view name;
  std::string_view summary;  // one line, for the list of commands
  // Declares the command's options on `app` and returns what runs it, with an exit code. Options
  // are stored in an object that the returned function owns.
  std::function<int()> (*setup)(CLI::App& app);
};

std::span<const Command* const> command_table();  // generated

// Set by the first Ctrl-C (SIGINT, SIGTERM); long loops look at it, finish what they have and
// return kFailed. A second one ends the process.
bool interrupted();

}  // namespace ferry::cli

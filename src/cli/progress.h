// A progress bar on a terminal; nothing elsewhere (logs get plain lines instead).
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace ferry::cli {

class Progress {
 public:
  // `total` 0: unknown. Draws on standard error, and only when that is a terminal.
  Progress(std::string_view what, int64_t total);
  ~Progress();  // clears the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(int64_t done);
  void clear();  // before something else is printed

 private:
  std::string_view what_;
  int64_t total_;
  bool enabled_;
  std::chrono::steady_clock::time_point start_, drawn_;
};

}  // namespace ferry::cli

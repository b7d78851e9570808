#include "cli/progress.h"
#include "cli/print.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace ferry::cli {
namespace {
using Clock = std::chrono::steady_clock;
constexpr int kBarWidth = 24;
}  // namespace

Progress::Progress(std::string_view what, int64_t total)
    : what_(what), total_(total), enabled_(::isatty(STDERR_FILENO) == 1), start_(Clock::now()) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (enabled_) print(stderr, "\r\x1b[K");
}

void Progress::update(int64_t done) {
  const auto now = Clock::now();
  if (!enabled_ || (done < total_ && now - drawn_ < std::chrono::milliseconds(100))) return;
  drawn_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  if (total_ <= 0) {
    print(stderr, "\r{} {} [{:.1f}/s]\x1b[K", what_, done, rate);
    return;
  }
  const auto filled =
      static_cast<size_t>(std::clamp<int64_t>(done * kBarWidth / total_, 0, kBarWidth));
  const double left = rate > 0 ? static_cast<double>(total_ - done) / rate : 0;
  print(stderr, "\r{} {}/{} [{}{}] {:.1f}/s, {:.0f} s left\x1b[K", what_, done, total_,
        std::string(filled, '#'), std::string(kBarWidth - filled, '.'), rate, left);
}

}  // namespace ferry::cli

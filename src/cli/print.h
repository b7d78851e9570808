// Text for people and scripts. Unlike fmt::print it never throws: a closed pipe or a full disk is
// noticed by main.cc, which makes the command fail when its output did not arrive.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

namespace ferry::cli {

template <class... Args>
void print(std::FILE* to, fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), to));  // ferror() remembers
}

template <class... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  cli::print(stdout, format, std::forward<Args>(args)...);  // qualified: not fmt::print
}

// Text from a file made safe for a terminal: control characters become "?".
inline std::string printable(std::string_view text) {
  std::string safe(text);
  std::ranges::replace_if(
      safe, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return safe;
}

}  // namespace ferry::cli

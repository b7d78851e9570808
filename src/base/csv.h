// One field of a CSV line, as RFC 4180 quotes it.
#pragma once

#include <string>
#include <string_view>

namespace ferry {

// a, "b"  ->  "a, ""b"""; text without commas, quotes and line ends stays as it is.
inline std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

}  // namespace ferry

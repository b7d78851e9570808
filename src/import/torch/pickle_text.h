// The two ways in which protocol 0 writes strings as text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ferry::import::torch {

// UNICODE: raw-unicode-escape, that is Latin-1 with \uXXXX and \UXXXXXXXX. The result is UTF-8.
std::string decode_raw_unicode(std::string_view line);

// STRING: Python's repr of a byte string, quotes included; nullopt when it is none.
std::optional<std::string> decode_repr(std::string_view line);

}  // namespace ferry::import::torch

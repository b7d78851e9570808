#include "import/torch/pickle_text.h"

#include <charconv>
#include <cstdint>

namespace ferry::import::torch {
namespace {

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (code >> 18 & 7));
    out += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

// `count` hexadecimal digits at text[at]; nullopt when they are not there.
std::optional<uint32_t> hex_digits(std::string_view text, size_t at, size_t count) {
  if (at > text.size() || text.size() - at < count) return std::nullopt;
  uint32_t code = 0;
  const char* first = text.data() + at;
  const auto [end, failure] = std::from_chars(first, first + count, code, 16);
  if (failure != std::errc() || end != first + count) return std::nullopt;
  return code;
}

}  // namespace

std::string decode_raw_unicode(std::string_view line) {
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size() && (line[i + 1] == 'u' || line[i + 1] == 'U')) {
      const size_t digits = line[i + 1] == 'u' ? 4 : 8;
      if (const auto code = hex_digits(line, i + 2, digits)) {
        append_utf8(out, *code);
        i += 1 + digits;
        continue;
      }
    }
    append_utf8(out, static_cast<unsigned char>(line[i]));
  }
  return out;
}

std::optional<std::string> decode_repr(std::string_view line) {
  if (line.size() < 2 || (line[0] != '\'' && line[0] != '"') || line.back() != line[0])
    return std::nullopt;
  line = line.substr(1, line.size() - 2);
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\') {
      out += line[i];
      continue;
    }
    if (++i == line.size()) return std::nullopt;
    switch (line[i]) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case 'r':
        out += '\r';
        break;
      case 'x': {
        const auto code = hex_digits(line, i + 1, 2);
        if (!code) return std::nullopt;
        out += static_cast<char>(*code);
        i += 2;
        break;
      }
      default:
        out += line[i];
        break;  // \\ \' \" and what Python leaves alone
    }
  }
  return out;
}

}  // namespace ferry::import::torch

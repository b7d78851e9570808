#include "import/onnx/metadata.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace ferry::import::onnx {
namespace {

constexpr int64_t kMaxClasses = 100000;
constexpr std::string_view kSpace = " \t\r\n";

void append_utf8(uint32_t code, std::string& out) {
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

// The little of Python's literals that metadata uses: strings, numbers, and where lists begin.
class Literals {
 public:
  explicit Literals(std::string_view text) : text_(text) {}

  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool at_end() {
    skip_space();
    return at_ == text_.size();
  }
  bool at_string() {
    skip_space();
    return at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"');
  }
  Error unexpected() const {
    return error(Code::kInvalid, "cannot be read as a Python list or dict (character {})", at_);
  }

  Result<double> number() {
    skip_space();
    double value = 0;
    const auto [end, code] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (code != std::errc()) return unexpected();
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  Result<std::string> string() {
    if (!at_string()) return unexpected();
    const char quote = text_[at_++];
    std::string out;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] != '\\') {
        out.push_back(text_[at_++]);
        continue;
      }
      FERRY_CHECK_OK(escape(out));
    }
    if (at_ == text_.size()) return unexpected();
    ++at_;
    return out;
  }

 private:
  void skip_space() { at_ = std::min(text_.find_first_not_of(kSpace, at_), text_.size()); }

  // At a backslash. Unknown escapes stay as they are, as in Python.
  Status escape(std::string& out) {
    if (at_ + 1 >= text_.size()) return unexpected();
    const char c = text_[at_ + 1];
    at_ += 2;
    switch (c) {
      case 'n':
        out.push_back('\n');
        return {};
      case 't':
        out.push_back('\t');
        return {};
      case 'r':
        out.push_back('\r');
        return {};
      case '\\':
      case '\'':
      case '"':
      case '/':
        out.push_back(c);
        return {};
      case 'x':
        return hex(2, out);
      case 'u':
        return hex(4, out);
      case 'U':
        return hex(8, out);
    }
    out.push_back('\\');
    out.push_back(c);
    return {};
  }

  Status hex(size_t digits, std::string& out) {
    if (text_.size() - at_ < digits) return unexpected();
    uint32_t code = 0;
    const char* begin = text_.data() + at_;
    const auto [end, failed] = std::from_chars(begin, begin + digits, code, 16);
    if (failed != std::errc() || end != begin + digits || code > 0x10ffff) return unexpected();
    at_ += digits;
    const bool high = code >= 0xd800 && code < 0xdc00;
    if (high && text_.substr(at_, 2) == "\\u" && text_.size() - at_ >= 6) {  // JSON's pairs
      uint32_t low = 0;
      const char* second = text_.data() + at_ + 2;
      const auto parsed = std::from_chars(second, second + 4, low, 16);
      if (parsed.ptr == second + 4 && low >= 0xdc00 && low < 0xe000) {
        at_ += 6;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      }
    }
    if (code >= 0xd800 && code < 0xe000) code = 0xfffd;  // half a pair is no character
    append_utf8(code, out);
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
};

Result<int64_t> read_key(Literals& in) {
  double value = -1;
  if (in.at_string()) {
    FERRY_TRY(text, in.string());
    Literals inner(text);
    FERRY_TRY(number, inner.number());
    if (!inner.at_end()) return in.unexpected();
    value = number;
  } else {
    FERRY_TRY(number, in.number());
    value = number;
  }
  if (!(value >= 0 && value < kMaxClasses) ||
      value != static_cast<double>(static_cast<int64_t>(value))) {
    return error(Code::kInvalid, "class number {} is not between 0 and {}", value, kMaxClasses - 1);
  }
  return static_cast<int64_t>(value);
}

}  // namespace

Result<std::vector<std::string>> parse_names(std::string_view text) {
  Literals in(text);
  std::map<int64_t, std::string> found;
  const bool dict = in.take('{');
  if (!dict && !in.take('[') && !in.take('(')) return in.unexpected();
  const auto close = [&] { return dict ? in.take('}') : in.take(']') || in.take(')'); };
  while (!close()) {
    int64_t number = static_cast<int64_t>(found.size());
    if (dict) {
      FERRY_TRY(key, read_key(in));
      if (!in.take(':')) return in.unexpected();
      number = key;
    }
    FERRY_TRY(name, in.string());
    found.insert_or_assign(number, std::move(name));
    if (static_cast<int64_t>(found.size()) > kMaxClasses) {
      return error(Code::kInvalid, "more than {} classes", kMaxClasses);
    }
    if (in.take(',')) continue;
    if (!close()) return in.unexpected();
    break;
  }
  if (!in.at_end()) return in.unexpected();

  std::vector<std::string> names;
  if (!found.empty()) names.resize(static_cast<size_t>(found.rbegin()->first) + 1);
  for (size_t i = 0; i < names.size(); ++i) {
    const auto name = found.find(static_cast<int64_t>(i));
    names[i] = name == found.end() ? std::to_string(i) : std::move(name->second);
  }
  return names;
}

Result<std::vector<double>> parse_numbers(std::string_view text) {
  Literals in(text);
  std::vector<double> numbers;
  const bool list = in.take('[') || in.take('(');
  while (true) {
    FERRY_TRY(number, in.number());
    numbers.push_back(number);
    if (!list || !in.take(',')) break;
    if (in.take(']') || in.take(')')) return numbers;  // Python allows a comma before the end
  }
  if (list && !in.take(']') && !in.take(')')) return in.unexpected();
  if (!in.at_end()) return in.unexpected();
  return numbers;
}

}  // namespace ferry::import::onnx

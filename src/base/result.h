// A value or the reason there is none. Everything that input, files, networks or devices can make fail returns
// Result<T> or Status; FERRY_ASSERT is for our own bugs; nothing throws across a folder.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace ferry {

enum class Code : unsigned char {
  kInvalid,      // the input is wrong: a broken file, a bad shape
  kUnsupported,  // the input is fine, but ferry cannot do this (yet)
  kNotFound,     // a file, a name or a device does not exist
  kIo,           // reading or writing failed
  kDevice,       // a device or its library reported an error
  kNoMemory,     // a limit on memory would be passed
  kCancelled,    // the user or the caller stopped it
  kBug,          // ferry's own mistake
};

// Why an operation failed, in words a user can act on.
struct [[nodiscard]] Error {
  Code code = Code::kBug;
  std::string message;

  // Prefixes the message with where it happened: "model.onnx: node 'Conv_3': …".
  Error within(std::string_view what) && {
    return {code, fmt::format("{}: {}", what, message)};
  }
};

// error(Code::kInvalid, "stride is {}, needs at least 1", stride)
template <class... Args>
Error error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return {code, fmt::format(format, std::forward<Args>(args)...)};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // REQUIRES: ok()
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }

  // REQUIRES: !ok()
  const Error& error() const& { return std::get<1>(state_); }
  Error error() && { return std::get<1>(std::move(state_)); }

  Result within(std::string_view what) && {
    if (ok()) return std::move(*this);
    return std::move(*this).error().within(what);
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : failed_(true), error_(std::move(error)) {}  // NOLINT: implicit by design

  bool ok() const { return !failed_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const& { return error_; }
  Error error() && { return std::move(error_); }

  Result within(std::string_view what) && {
    if (ok()) return {};
    return std::move(error_).within(what);
  }

 private:
  bool failed_ = false;
  Error error_;
};
using Status = Result<void>;

[[noreturn]] void assert_failed(const char* condition, const char* file, int line, const char* why);

}  // namespace ferry

#define FERRY_CONCAT_(a, b) a##b
#define FERRY_CONCAT(a, b) FERRY_CONCAT_(a, b)

// FERRY_TRY(graph, load_onnx(path));  declares `graph`, or returns the error. Works for move-only values.
#define FERRY_TRY(name, expression)                                                     \
  auto FERRY_CONCAT(name, _result) = (expression);                                      \
  if (!FERRY_CONCAT(name, _result).ok()) return std::move(FERRY_CONCAT(name, _result)).error(); \
  auto name = *std::move(FERRY_CONCAT(name, _result))

// FERRY_CHECK_OK(verify(graph));  returns the error, if there is one.
#define FERRY_CHECK_OK(expression)                                              \
  do {                                                                          \
    if (auto ferry_status_ = (expression); !ferry_status_.ok())                 \
      return std::move(ferry_status_).error();                                  \
  } while (false)

// For our own bugs only; stays on in release builds. `why` is a sentence.
#define FERRY_ASSERT(condition, why) \
  ((condition) ? void() : ::ferry::assert_failed(#condition, __FILE__, __LINE__, why))

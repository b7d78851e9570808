// A value or the reason there is none: what ferry's functions return for everything that input,
// files, networks or devices can make fail. Nothing throws.
#pragma once

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
    return {code, std::string(what).append(": ").append(message)};
  }
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit by design
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

}  // namespace ferry

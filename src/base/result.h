// Result and Status (ferry/result.h) with what ferry's own sources add: formatted errors and the
// FERRY_ macros. FERRY_ASSERT is for our own bugs only.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "ferry/result.h"

namespace ferry {

// error(Code::kInvalid, "stride is {}, needs at least 1", stride)
template <class... Args>
Error error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return {code, fmt::format(format, std::forward<Args>(args)...)};
}

[[noreturn]] void assert_failed(const char* condition, const char* file, int line, const char* why);

}  // namespace ferry

#define FERRY_CONCAT_(a, b) a##b
#define FERRY_CONCAT(a, b) FERRY_CONCAT_(a, b)

// FERRY_TRY(graph, load_onnx(path));  declares `graph`, or returns the error. Works for move-only
// values.
#define FERRY_TRY(name, expression)                                                             \
  auto FERRY_CONCAT(name, _result) = (expression);                                              \
  if (!FERRY_CONCAT(name, _result).ok()) return std::move(FERRY_CONCAT(name, _result)).error(); \
  auto name = *std::move(FERRY_CONCAT(name, _result))

// FERRY_CHECK_OK(verify(graph));  returns the error, if there is one.
#define FERRY_CHECK_OK(expression)                              \
  do {                                                          \
    if (auto ferry_status_ = (expression); !ferry_status_.ok()) \
      return std::move(ferry_status_).error();                  \
  } while (false)

// For our own bugs only; stays on in release builds. `why` is a sentence.
#define FERRY_ASSERT(condition, why) \
  ((condition) ? void() : ::ferry::assert_failed(#condition, __FILE__, __LINE__, why))

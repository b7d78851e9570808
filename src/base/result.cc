#include "base/result.h"

#include <cstdio>
#include <cstdlib>

namespace ferry {

void assert_failed(const char* condition, const char* file, int line, const char* why) {
  std::fprintf(stderr, "ferry: bug at %s:%d: %s (%s)\n", file, line, why, condition);
  std::abort();
}

}  // namespace ferry

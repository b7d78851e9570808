#include "vision/libav.h"

#include <mutex>

namespace ferry::vision::libav {

std::string words_of(int error_number) {
  char text[AV_ERROR_MAX_STRING_SIZE] = "";
  av_strerror(error_number, text, sizeof(text));
  return text;
}

void quiet() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (av_log_get_level() == AV_LOG_INFO) av_log_set_level(AV_LOG_QUIET);
  });
}

}  // namespace ferry::vision::libav

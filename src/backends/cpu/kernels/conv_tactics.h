// The rows of the tactic table, and what several of them need (internal; conv.h is the public
// face).
#pragma once

#include "backends/cpu/kernels/conv.h"

namespace ferry::cpu {

extern const ConvTactic conv_depthwise;
extern const ConvTactic conv_winograd4;
extern const ConvTactic conv_winograd_stem;
extern const ConvTactic conv_winograd_s2;
extern const ConvTactic conv_igemm;
extern const ConvTactic conv_onednn;  // where FERRY_HAVE_ONEDNN
extern const ConvTactic conv_reference;

// Null when every operand is fp32.
const char* refuse_not_f32(const ConvProblem&);

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// The taps [begin, end) of one axis whose input position start + tap * dilation lies inside [0,
// size).
struct TapRange {
  int64_t begin, end;
};
inline TapRange valid_taps(int64_t start, int64_t taps, int64_t dilation, int64_t size) {
  const int64_t begin = start >= 0 ? 0 : ceil_div(-start, dilation);
  const int64_t end = start >= size ? 0 : ceil_div(size - start, dilation);
  return {begin < taps ? begin : taps,
          end < taps ? (end > begin ? end : (begin < taps ? begin : taps)) : taps};
}

}  // namespace ferry::cpu

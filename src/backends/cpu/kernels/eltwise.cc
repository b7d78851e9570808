#include "backends/cpu/kernels/eltwise.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/epilogue.h"
#include "backends/cpu/kernels/vec.h"

namespace ferry::cpu {
namespace {

struct EltwiseRows {
  const float* a = nullptr;
  int64_t a_step = 0;
  const float* b = nullptr;
  int64_t b_step = 0;
  const float* shift = nullptr;
  float* output = nullptr;
  int64_t output_step = 0;
  int64_t rows = 0, cols = 0;
};

using EltwiseFn = void(const EltwiseRows&);

}  // namespace
}  // namespace ferry::cpu

#define FERRY_KERNEL "backends/cpu/kernels/eltwise.inc"
#include "backends/cpu/kernels/foreach_isa.inc"

namespace ferry::cpu {
namespace {

// Calls fn(first, rows, cols, joined) with shares of the pixels. Where every view is dense, the
// pixels join into long rows of kJoined channels: short pixels would waste vectors.
constexpr int64_t kJoined = 1024;

template <class F>
void for_rows(int64_t pixels, int64_t channels, bool dense, ThreadPool& pool, const F& fn) {
  if (!dense) {
    pool.parallel_ranges(pixels, [&](int64_t begin, int64_t end, int) {
      fn(begin, end - begin, channels, channels);
    });
    return;
  }
  const int64_t total = pixels * channels, rows = (total + kJoined - 1) / kJoined;
  pool.parallel_ranges(rows, [&](int64_t begin, int64_t end, int) {
    const int64_t whole = std::min(end, total / kJoined);
    if (begin < whole) fn(begin, whole - begin, kJoined, kJoined);
    if (end == rows && total % kJoined != 0) fn(total / kJoined, 1, total % kJoined, kJoined);
  });
}

// act(a) or act(a + b): what the convolutions do to their sums.
void finish(ConstView a, const ConstView* b, Activation activation, View output, Isa isa,
            ThreadPool& pool) {
  const Epilogue epilogue = {activation, b ? Residual::kBeforeActivation : Residual::kNone};
  const EpilogueFn fn = epilogue_fn(isa, epilogue);
  const bool dense = a.stride == a.c && output.stride == a.c && (!b || b->stride == a.c);
  for_rows(a.pixels(), a.c, dense, pool,
           [&](int64_t first, int64_t rows, int64_t cols, int64_t joined) {
             const auto step = [&](int64_t stride) { return dense ? joined : stride; };
             fn({.sums = a.data + first * step(a.stride),
                 .sums_step = step(a.stride),
                 .output = output.data + first * step(output.stride),
                 .output_step = step(output.stride),
                 .residual = b ? b->data + first * step(b->stride) : nullptr,
                 .residual_step = b ? step(b->stride) : 0,
                 .rows = rows,
                 .cols = cols,
                 .mode = epilogue.residual,
                 .activation = activation});
           });
}

}  // namespace

void copy(ConstView input, View output, Isa, ThreadPool& pool) {
  const bool dense = input.stride == input.c && output.stride == input.c;
  for_rows(input.pixels(), input.c, dense, pool,
           [&](int64_t first, int64_t rows, int64_t cols, int64_t joined) {
             const int64_t from_step = dense ? joined : input.stride,
                           to_step = dense ? joined : output.stride;
             const float* from = input.data + first * from_step;
             float* to = output.data + first * to_step;
             for (int64_t row = 0; row < rows; ++row, from += from_step, to += to_step) {
               std::memcpy(to, from, static_cast<size_t>(cols) * sizeof(float));
             }
           });
}

void apply_activation(Activation activation, ConstView input, View output, Isa isa,
                      ThreadPool& pool) {
  finish(input, nullptr, activation, output, isa, pool);
}

void add(ConstView a, ConstView b, Activation activation, View output, Isa isa, ThreadPool& pool) {
  finish(a, &b, activation, output, isa, pool);
}

void multiply(ConstView a, ConstView b, Activation activation, View output, Isa isa,
              ThreadPool& pool) {
  static constexpr EltwiseFn* kFns[] = FERRY_BY_ISA(multiply_rows);
  const bool dense = a.stride == a.c && b.stride == a.c && output.stride == a.c;
  for_rows(a.pixels(), a.c, dense, pool,
           [&](int64_t first, int64_t rows, int64_t cols, int64_t joined) {
             const auto step = [&](int64_t stride) { return dense ? joined : stride; };
             kFns[static_cast<int>(isa)]({.a = a.data + first * step(a.stride),
                                          .a_step = step(a.stride),
                                          .b = b.data + first * step(b.stride),
                                          .b_step = step(b.stride),
                                          .output = output.data + first * step(output.stride),
                                          .output_step = step(output.stride),
                                          .rows = rows,
                                          .cols = cols});
           });
  if (activation.kind != ActivationKind::kNone)
    apply_activation(activation, output, output, isa, pool);
}

void scale_channels(ConstView input, const float* scale, const float* shift, Activation activation,
                    View output, Isa isa, ThreadPool& pool) {
  static constexpr EltwiseFn* kFns[] = FERRY_BY_ISA(scale_rows);
  pool.parallel_ranges(input.pixels(), [&](int64_t begin, int64_t end, int) {
    kFns[static_cast<int>(isa)]({.a = input.data + begin * input.stride,
                                 .a_step = input.stride,
                                 .b = scale,
                                 .shift = shift,
                                 .output = output.data + begin * output.stride,
                                 .output_step = output.stride,
                                 .rows = end - begin,
                                 .cols = input.c});
  });
  if (activation.kind != ActivationKind::kNone)
    apply_activation(activation, output, output, isa, pool);
}

// Blocks of kBlock pixels by kBlock channels: both sides then stay in the cache lines they touch.
constexpr int64_t kBlock = 16;

void nchw_to_nhwc(const float* nchw, View output, Isa, ThreadPool& pool) {
  const int64_t plane = output.h * output.w, blocks = (plane + kBlock - 1) / kBlock;
  pool.parallel_for(output.batch * blocks, [&](int64_t task, int) {
    const int64_t n = task / blocks, first = task % blocks * kBlock,
                  last = std::min(first + kBlock, plane);
    const float* from = nchw + n * output.c * plane;
    float* to = output.data + n * plane * output.stride;
    for (int64_t c = 0; c < output.c; ++c) {
      for (int64_t i = first; i < last; ++i) to[i * output.stride + c] = from[c * plane + i];
    }
  });
}

void nhwc_to_nchw(ConstView input, float* nchw, Isa, ThreadPool& pool) {
  const int64_t plane = input.h * input.w, blocks = (plane + kBlock - 1) / kBlock;
  pool.parallel_for(input.batch * blocks, [&](int64_t task, int) {
    const int64_t n = task / blocks, first = task % blocks * kBlock,
                  last = std::min(first + kBlock, plane);
    const float* from = input.data + n * plane * input.stride;
    float* to = nchw + n * input.c * plane;
    for (int64_t c = 0; c < input.c; ++c) {
      for (int64_t i = first; i < last; ++i) to[c * plane + i] = from[i * input.stride + c];
    }
  });
}

}  // namespace ferry::cpu

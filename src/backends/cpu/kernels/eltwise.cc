#include "backends/cpu/kernels/eltwise.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/epilogue.h"
#include "backends/cpu/kernels/finish.h"
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

void apply_activation(Activation activation, ConstView input, View output, Isa isa,
                      ThreadPool& pool) {
  finish(input, nullptr, activation, output, isa, pool);
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

namespace {

bool is_float(const StoredView& v) { return v.storage.dtype == DType::kF32; }

View view_of(const StoredView& v) {
  return {reinterpret_cast<float*>(v.data), v.batch, v.h, v.w, v.c, v.stride};
}

}  // namespace

void convert(const StoredView& a, const StoredView* b, Activation activation,
             const StoredView& output, Isa isa, ThreadPool& pool) {
  const Epilogue epilogue = {activation, b ? Residual::kBeforeActivation : Residual::kNone};
  const bool bytes = !b && activation.kind == ActivationKind::kNone && a.storage == output.storage;
  if (!bytes && is_float(a) && is_float(output) && (!b || is_float(*b))) {
    const ConstView addend = b ? ConstView(view_of(*b)) : ConstView();
    return finish(view_of(a), b ? &addend : nullptr, activation, view_of(output), isa, pool);
  }
  const bool dense = a.stride == a.c && output.stride == a.c && (!b || b->stride == a.c);
  const int64_t a_size = element_bytes(a.storage.dtype);
  const FinishFn fn = finish_fn(isa, epilogue);
  for_rows(a.pixels(), a.c, dense, pool,
           [&](int64_t first, int64_t rows, int64_t cols, int64_t joined) {
             const auto step = [&](const StoredView& v) {
               return (dense ? joined : v.stride) * element_bytes(v.storage.dtype);
             };
             const std::byte* from = a.data + first * step(a);
             std::byte* to = output.data + first * step(output);
             if (bytes) {
               for (int64_t row = 0; row < rows; ++row, from += step(a), to += step(output))
                 std::memcpy(to, from, static_cast<size_t>(cols * a_size));
               return;
             }
             FinishRows run;
             run.source = from;
             run.source_step = step(a);
             run.source_storage = a.storage;
             run.output = to;
             run.output_step = step(output);
             run.output_storage = output.storage;
             if (b) {
               run.residual = b->data + first * step(*b);
               run.residual_step = step(*b);
               run.residual_storage = b->storage;
             }
             run.rows = rows;
             run.cols = cols;
             run.mode = epilogue.residual;
             run.activation = activation;
             fn(run);
           });
}

// Blocks of kBlock pixels by kBlock channels: both sides then stay in the cache lines they touch.
constexpr int64_t kBlock = 16;

namespace {

// Calls move(float of the planes, element of the picture) for every element.
template <class Float, class Move>
void for_planes(Float* nchw, const StoredView& picture, ThreadPool& pool, const Move& move) {
  const int64_t plane = picture.h * picture.w, blocks = (plane + kBlock - 1) / kBlock;
  const int64_t size = element_bytes(picture.storage.dtype);
  pool.parallel_for(picture.batch * blocks, [&](int64_t task, int) {
    const int64_t n = task / blocks, first = task % blocks * kBlock,
                  last = std::min(first + kBlock, plane);
    Float* planes = nchw + n * picture.c * plane;
    std::byte* pixels = picture.data + n * plane * picture.step_bytes();
    for (int64_t c = 0; c < picture.c; ++c) {
      for (int64_t i = first; i < last; ++i)
        move(planes[c * plane + i], pixels + i * picture.step_bytes() + c * size);
    }
  });
}

}  // namespace

void nchw_to_nhwc(const float* nchw, const StoredView& output, Isa, ThreadPool& pool) {
  if (output.storage.dtype == DType::kF32) {
    return for_planes(nchw, output, pool, [](float value, std::byte* element) {
      std::memcpy(element, &value, sizeof value);
    });
  }
  for_planes(nchw, output, pool, [&](float value, std::byte* element) {
    store_element(output.storage, element, value);
  });
}

void nhwc_to_nchw(const StoredView& input, float* nchw, Isa, ThreadPool& pool) {
  if (input.storage.dtype == DType::kF32) {
    return for_planes(nchw, input, pool, [](float& value, const std::byte* element) {
      std::memcpy(&value, element, sizeof value);
    });
  }
  for_planes(nchw, input, pool, [&](float& value, const std::byte* element) {
    value = load_element(input.storage, element);
  });
}

}  // namespace ferry::cpu

// Elementwise work and moves over NHWC views (view.h).
// `output` may be an input itself (same address and stride) in apply_activation, multiply, convert;
// otherwise no overlap.
#pragma once

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels/activation.h"
#include "backends/cpu/kernels/storage.h"
#include "backends/cpu/kernels/view.h"
#include "base/thread_pool.h"

namespace ferry::cpu {

// One pass over channels: REQUIRES equal batch, h, w, c of all views.
void apply_activation(Activation, ConstView input, View output, Isa, ThreadPool&);
void multiply(ConstView a, ConstView b, Activation, View output, Isa, ThreadPool&);  // act(a * b)

// output = act(input * scale[c] + shift[c]); scale, shift: [c] (shift may be null).
void scale_channels(ConstView input, const float* scale, const float* shift, Activation,
                    View output, Isa, ThreadPool&);

// Pictures of any storage: output = act(a), or act(a + b) where b is given. Equal batch, h, w, c.
// `output` may be an input itself where their elements have one size. With no activation a move
// between storages; a plain copy where the storages are equal.
void convert(const StoredView& a, const StoredView* b, Activation, const StoredView& output, Isa,
             ThreadPool&);

// Dense [batch][c][h][w] floats <-> a view.
void nchw_to_nhwc(const float* nchw, const StoredView& output, Isa, ThreadPool&);
void nhwc_to_nchw(const StoredView& input, float* nchw, Isa, ThreadPool&);

}  // namespace ferry::cpu

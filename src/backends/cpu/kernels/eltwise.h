// Elementwise work and moves over NHWC views (view.h).
// `output` may be an input itself (same address and stride) in apply_activation, add, multiply;
// otherwise no overlap.
#pragma once

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels/activation.h"
#include "backends/cpu/kernels/view.h"
#include "base/thread_pool.h"

namespace ferry::cpu {

// One pass over channels: REQUIRES equal batch, h, w, c of all views.
void copy(ConstView input, View output, Isa, ThreadPool&);
void apply_activation(Activation, ConstView input, View output, Isa, ThreadPool&);
void add(ConstView a, ConstView b, Activation, View output, Isa, ThreadPool&);       // act(a + b)
void multiply(ConstView a, ConstView b, Activation, View output, Isa, ThreadPool&);  // act(a * b)

// output = act(input * scale[c] + shift[c]); scale, shift: [c] (shift may be null).
void scale_channels(ConstView input, const float* scale, const float* shift, Activation,
                    View output, Isa, ThreadPool&);

// Dense [batch][c][h][w] <-> a view.
void nchw_to_nhwc(const float* nchw, View output, Isa, ThreadPool&);
void nhwc_to_nchw(ConstView input, float* nchw, Isa, ThreadPool&);

}  // namespace ferry::cpu

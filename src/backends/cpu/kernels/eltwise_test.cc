#include "backends/cpu/kernels/eltwise.h"

#include <gtest/gtest.h>

#include "backends/cpu/kernels/testing.h"

namespace ferry::cpu {
namespace {

// Calls check(isa, pool, c, slice) for dense and sliced views, whole vectors and tails, one thread
// and three.
template <class F>
void for_layouts(F check) {
  for (Isa isa : usable_isas()) {
    for (int threads : {1, 3}) {
      ThreadPool pool(threads);
      for (int64_t c : {1, 3, 16, 37}) {
        for (int64_t slice : {0, 5}) check(isa, pool, c, slice);
      }
    }
  }
}

// Compares every element with want(n, y, x, c).
template <class F>
void expect_picture(Picture& got, F want) {
  const View v = got.view;
  EXPECT_TRUE(got.guards_untouched());
  for (int64_t n = 0; n < v.batch; ++n) {
    for (int64_t y = 0; y < v.h; ++y) {
      for (int64_t x = 0; x < v.w; ++x) {
        for (int64_t c = 0; c < v.c; ++c) ASSERT_FLOAT_EQ(got.at(n, y, x, c), want(n, y, x, c));
      }
    }
  }
}

constexpr int64_t kN = 2, kH = 9, kW = 13;

TEST(Eltwise, CopyMovesOnlyTheSlice) {
  for_layouts([](Isa isa, ThreadPool& pool, int64_t c, int64_t slice) {
    Picture a = Picture::random(kN, kH, kW, c, slice, 1), out(kN, kH, kW, c, 2 * slice);
    copy(a.view, out.view, isa, pool);
    expect_picture(out, [&](auto n, auto y, auto x, auto i) { return a.at(n, y, x, i); });
  });
}

TEST(Eltwise, AddAndMultiplyApplyTheActivationToTheResult) {
  for_layouts([](Isa isa, ThreadPool& pool, int64_t c, int64_t slice) {
    Picture a = Picture::random(kN, kH, kW, c, slice, 1), b = Picture::random(kN, kH, kW, c, 0, 2),
            out(kN, kH, kW, c, slice);
    add(a.view, b.view, {ActivationKind::kRelu}, out.view, isa, pool);
    expect_picture(out, [&](auto n, auto y, auto x, auto i) {
      return std::max(a.at(n, y, x, i) + b.at(n, y, x, i), 0.0f);
    });
    multiply(a.view, b.view, {}, out.view, isa, pool);
    expect_picture(
        out, [&](auto n, auto y, auto x, auto i) { return a.at(n, y, x, i) * b.at(n, y, x, i); });
    multiply(a.view, b.view, {ActivationKind::kLeakyRelu, 0.5f}, out.view, isa, pool);
    expect_picture(out, [&](auto n, auto y, auto x, auto i) {
      const float product = a.at(n, y, x, i) * b.at(n, y, x, i);
      return product > 0 ? product : product / 2;
    });
  });
}

TEST(Eltwise, TheOutputMayBeAnInput) {
  for_layouts([](Isa isa, ThreadPool& pool, int64_t c, int64_t slice) {
    Picture a = Picture::random(kN, kH, kW, c, slice, 1), out(kN, kH, kW, c, slice);
    copy(a.view, out.view, isa, pool);
    add(out.view, a.view, {}, out.view, isa, pool);
    apply_activation({ActivationKind::kRelu}, out.view, out.view, isa, pool);
    expect_picture(
        out, [&](auto n, auto y, auto x, auto i) { return std::max(2 * a.at(n, y, x, i), 0.0f); });
  });
}

TEST(Eltwise, ScaleChannelsUsesEachChannelsOwnFactors) {
  for_layouts([](Isa isa, ThreadPool& pool, int64_t c, int64_t slice) {
    Picture a = Picture::random(kN, kH, kW, c, slice, 1), out(kN, kH, kW, c, slice);
    Floats scale(static_cast<size_t>(c)), shift(static_cast<size_t>(c));
    for (size_t i = 0; i < scale.size(); ++i) {
      scale[i] =
          static_cast<float>(1 << (i % 5));  // powers of two: fused or not, the same rounding
      shift[i] = static_cast<float>(i);
    }
    scale_channels(a.view, scale.data(), shift.data(), {}, out.view, isa, pool);
    expect_picture(out, [&](auto n, auto y, auto x, auto i) {
      return a.at(n, y, x, i) * scale[static_cast<size_t>(i)] + shift[static_cast<size_t>(i)];
    });
    scale_channels(a.view, scale.data(), nullptr, {ActivationKind::kRelu}, out.view, isa, pool);
    expect_picture(out, [&](auto n, auto y, auto x, auto i) {
      return std::max(a.at(n, y, x, i) * scale[static_cast<size_t>(i)], 0.0f);
    });
  });
}

TEST(Eltwise, PlanesBecomePixelsAndBack) {
  for_layouts([](Isa isa, ThreadPool& pool, int64_t c, int64_t slice) {
    Floats planes(static_cast<size_t>(kN * c * kH * kW)), back(planes.size(), kGuard);
    planes.randomize(1);
    Picture out(kN, kH, kW, c, slice);
    nchw_to_nhwc(planes.data(), out.view, isa, pool);
    expect_picture(out, [&](auto n, auto y, auto x, auto i) {
      return planes[static_cast<size_t>(((n * c + i) * kH + y) * kW + x)];
    });
    nhwc_to_nchw(out.view, back.data(), isa, pool);
    for (size_t i = 0; i < planes.size(); ++i) ASSERT_EQ(back[i], planes[i]);
  });
}

}  // namespace
}  // namespace ferry::cpu

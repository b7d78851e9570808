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
    convert(stored(a.view), nullptr, {}, stored(out.view), isa, pool);
    expect_picture(out, [&](auto n, auto y, auto x, auto i) { return a.at(n, y, x, i); });
  });
}

TEST(Eltwise, AddAndMultiplyApplyTheActivationToTheResult) {
  for_layouts([](Isa isa, ThreadPool& pool, int64_t c, int64_t slice) {
    Picture a = Picture::random(kN, kH, kW, c, slice, 1), b = Picture::random(kN, kH, kW, c, 0, 2),
            out(kN, kH, kW, c, slice);
    const StoredView addend = stored(b.view);
    convert(stored(a.view), &addend, {ActivationKind::kRelu}, stored(out.view), isa, pool);
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
    convert(stored(a.view), nullptr, {}, stored(out.view), isa, pool);
    const StoredView addend = stored(a.view);
    convert(stored(out.view), &addend, {}, stored(out.view), isa, pool);
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

// A picture in another storage, its elements rounded one by one.
struct StoredPicture {
  StoredPicture(const StoredView& like, const Storage& storage)
      : bytes(static_cast<size_t>(like.pixels() * like.c)),
        view{reinterpret_cast<std::byte*>(bytes.data()),
             like.batch,
             like.h,
             like.w,
             like.c,
             like.c,
             storage} {}
  float at(int64_t n, int64_t y, int64_t x, int64_t c) const {
    return load_element(view.storage, view.pixel(n, y, x) + c * element_bytes(view.storage.dtype));
  }
  Floats bytes;
  StoredView view;
};

TEST(Eltwise, ConvertRoundsToTheNearestElement) {
  for_layouts([](Isa isa, ThreadPool& pool, int64_t c, int64_t slice) {
    Picture a = Picture::random(kN, kH, kW, c, slice, 1), back(kN, kH, kW, c, slice);
    for (const Storage& storage : {Storage{DType::kU8, 0.125f, 77}, Storage{DType::kBf16}}) {
      StoredPicture narrow(stored(a.view), storage);
      convert(stored(a.view), nullptr, {}, narrow.view, isa, pool);
      const auto want = [&](auto n, auto y, auto x, auto i) {
        std::byte element[4];
        store_element(storage, element, a.at(n, y, x, i));
        return load_element(storage, element);
      };
      for (int64_t i = 0; i < c; ++i) ASSERT_EQ(narrow.at(1, 2, 3, i), want(1, 2, 3, i));
      convert(narrow.view, nullptr, {}, stored(back.view), isa, pool);
      expect_picture(back, want);
      // act(a + a) of narrow elements: exact in float, then rounded again.
      StoredPicture sum(stored(a.view), storage);
      convert(narrow.view, &narrow.view, {ActivationKind::kRelu}, sum.view, isa, pool);
      convert(sum.view, nullptr, {}, stored(back.view), isa, pool);
      expect_picture(back, [&](auto n, auto y, auto x, auto i) {
        std::byte element[4];
        store_element(storage, element, std::max(2 * want(n, y, x, i), 0.0f));
        return load_element(storage, element);
      });
    }
  });
}

TEST(Eltwise, PlanesBecomePixelsAndBack) {
  for_layouts([](Isa isa, ThreadPool& pool, int64_t c, int64_t slice) {
    Floats planes(static_cast<size_t>(kN * c * kH * kW)), back(planes.size(), kGuard);
    planes.randomize(1);
    Picture out(kN, kH, kW, c, slice);
    nchw_to_nhwc(planes.data(), stored(out.view), isa, pool);
    expect_picture(out, [&](auto n, auto y, auto x, auto i) {
      return planes[static_cast<size_t>(((n * c + i) * kH + y) * kW + x)];
    });
    nhwc_to_nchw(stored(out.view), back.data(), isa, pool);
    for (size_t i = 0; i < planes.size(); ++i) ASSERT_EQ(back[i], planes[i]);
  });
}

}  // namespace
}  // namespace ferry::cpu

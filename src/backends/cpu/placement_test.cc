// Placement on hand-made programs: what must share bytes, what must not, and a brute-force check
// that no write ever destroys a value that is still to be read.
#include "backends/cpu/placement.h"

#include <gtest/gtest.h>

#include <random>

namespace ferry::cpu {
namespace {

using Kind = PlacedStep::Kind;

PlacedValue picture(int64_t channels, int64_t pixels = 16) {
  return {.picture = true, .pixels = pixels, .channels = channels, .needed = true};
}
PlacedValue input(int64_t channels) {
  PlacedValue v = picture(channels);
  v.input = v.pinned = true;
  return v;
}
PlacedValue output(int64_t channels) {
  PlacedValue v = picture(channels);
  v.output = v.pinned = true;
  return v;
}

bool same_place(const Placement& p, int a, int b, int64_t channels_behind) {
  const Spot &x = p.spots[static_cast<size_t>(a)], &y = p.spots[static_cast<size_t>(b)];
  return x.buffer == y.buffer && x.channel == y.channel + channels_behind && x.stride == y.stride;
}

// Runs the program on an arena of tokens: each element holds who wrote it last. Every read must
// find what the value's producer wrote, wherever it was put.
void check_contents(const std::vector<PlacedValue>& values, const std::vector<PlacedStep>& steps,
                    const Placement& p) {
  std::vector<int64_t> arena(static_cast<size_t>(p.arena_bytes / 4), -1);
  const auto each = [&](int v, auto visit) {  // index in the arena, token of the element
    const PlacedValue& value = values[static_cast<size_t>(v)];
    const Spot& spot = p.spots[static_cast<size_t>(v)];
    const int64_t base = p.buffer_offsets[static_cast<size_t>(spot.buffer)] / 4;
    if (!value.picture) {
      for (int64_t i = 0; i < value.bytes / 4; ++i) visit(static_cast<size_t>(base + i), i);
      return;
    }
    for (int64_t pixel = 0; pixel < value.pixels; ++pixel) {
      for (int64_t c = 0; c < value.channels; ++c) {
        visit(static_cast<size_t>(base + pixel * spot.stride + spot.channel + c),
              pixel * value.channels + c);
      }
    }
  };
  // What each element of a value should be: (source value, element) of the step that computed it.
  std::vector<std::vector<int64_t>> truth(values.size());
  const auto token = [](int v, int64_t i) { return int64_t{v} * 1000000 + i; };
  const auto compute = [&](int v) {
    each(v, [&](size_t at, int64_t i) {
      arena[at] = token(v, i);
      truth[static_cast<size_t>(v)].push_back(token(v, i));
    });
  };
  for (size_t v = 0; v < values.size(); ++v) {
    if (values[v].input) compute(static_cast<int>(v));
  }
  const auto check = [&](int v, size_t step) {
    each(v, [&](size_t at, int64_t i) {
      ASSERT_EQ(arena[at], truth[static_cast<size_t>(v)][static_cast<size_t>(i)])
          << "value " << v << " at step " << step;
    });
  };
  for (size_t s = 0; s < steps.size(); ++s) {
    const PlacedStep& step = steps[s];
    for (const int v : step.reads) check(v, s);
    if (step.kind == Kind::kCompute) {
      for (const int v : step.writes) compute(v);
      continue;
    }
    // Copies, as the lowering makes them: what is in place already copies onto itself.
    const bool concat = step.kind == Kind::kConcat;
    const int whole = concat ? step.writes[0] : step.reads[0];
    const int64_t whole_channels = values[static_cast<size_t>(whole)].channels;
    if (concat)
      truth[static_cast<size_t>(whole)].assign(
          static_cast<size_t>(values[static_cast<size_t>(whole)].pixels * whole_channels), 0);
    int64_t channel = 0;
    for (const int part : concat ? step.reads : step.writes) {
      const PlacedValue& pv = values[static_cast<size_t>(part)];
      if (!concat)
        truth[static_cast<size_t>(part)].resize(static_cast<size_t>(pv.pixels * pv.channels));
      const Spot &ws = p.spots[static_cast<size_t>(whole)],
                 &ps = p.spots[static_cast<size_t>(part)];
      for (int64_t pixel = 0; pixel < pv.pixels; ++pixel) {
        for (int64_t c = 0; c < pv.channels; ++c) {
          const size_t wi =
              static_cast<size_t>(p.buffer_offsets[static_cast<size_t>(ws.buffer)] / 4 +
                                  pixel * ws.stride + ws.channel + channel + c);
          const size_t pi =
              static_cast<size_t>(p.buffer_offsets[static_cast<size_t>(ps.buffer)] / 4 +
                                  pixel * ps.stride + ps.channel + c);
          int64_t& in_whole = truth[static_cast<size_t>(whole)]
                                   [static_cast<size_t>(pixel * whole_channels + channel + c)];
          int64_t& in_part =
              truth[static_cast<size_t>(part)][static_cast<size_t>(pixel * pv.channels + c)];
          if (concat) {
            in_whole = in_part;
            arena[wi] = arena[pi];
          } else {
            in_part = in_whole;
            arena[pi] = arena[wi];
          }
        }
      }
      channel += pv.channels;
    }
  }
  for (size_t v = 0; v < values.size(); ++v) {
    if (values[v].output) check(static_cast<int>(v), steps.size());
  }
}

TEST(Placement, ACsp3BlockBecomesOneBufferWithoutCopies) {
  // x -> merged conv [8 | 8] -> split a, b;  a -> h -> m (+ a);  concat(m, b) -> y
  enum { kX, kMerged, kA, kB, kH, kM, kConcat, kY };
  const std::vector<PlacedValue> values = {input(3),   picture(16), picture(8),  picture(8),
                                           picture(4), picture(8),  picture(16), output(5)};
  const std::vector<PlacedStep> steps = {
      {.reads = {kX}, .writes = {kMerged}},
      {.kind = Kind::kSplit, .reads = {kMerged}, .writes = {kA, kB}},
      {.reads = {kA}, .writes = {kH}},
      {.reads = {kH, kA}, .writes = {kM}, .in_place = kA},
      {.kind = Kind::kConcat, .reads = {kM, kB}, .writes = {kConcat}},
      {.reads = {kConcat}, .writes = {kY}},
  };
  const Placement p = place(values, steps);
  EXPECT_TRUE(same_place(p, kA, kMerged, 0));
  EXPECT_TRUE(same_place(p, kB, kMerged, 8));
  EXPECT_TRUE(same_place(p, kM, kA, 0));
  EXPECT_TRUE(same_place(p, kConcat, kMerged, 0));
  EXPECT_NE(p.spots[kH].buffer, p.spots[kA].buffer);
  check_contents(values, steps, p);
}

TEST(Placement, AResidualThatIsReadAgainIsNotOverwritten) {
  // a -> m (+ a in place wished), but a is read afterwards
  enum { kX, kA, kM, kY };
  const std::vector<PlacedValue> values = {input(4), picture(4), picture(4), output(4)};
  const std::vector<PlacedStep> steps = {
      {.reads = {kX}, .writes = {kA}},
      {.reads = {kX, kA}, .writes = {kM}, .in_place = kA},
      {.reads = {kM, kA}, .writes = {kY}},
  };
  const Placement p = place(values, steps);
  EXPECT_NE(p.spots[kA].buffer, p.spots[kM].buffer);
  check_contents(values, steps, p);
}

TEST(Placement, AnInputOfTwoConcatsIsPlacedInOneAndCopiedToTheOther) {
  enum { kX, kA, kB, kC, kAb, kAc, kY };
  const std::vector<PlacedValue> values = {input(4),   picture(4), picture(4), picture(4),
                                           picture(8), picture(8), output(4)};
  const std::vector<PlacedStep> steps = {
      {.reads = {kX}, .writes = {kA}},
      {.reads = {kX}, .writes = {kB}},
      {.reads = {kX}, .writes = {kC}},
      {.kind = Kind::kConcat, .reads = {kA, kB}, .writes = {kAb}},
      {.kind = Kind::kConcat, .reads = {kC, kA}, .writes = {kAc}},
      {.reads = {kAb, kAc}, .writes = {kY}},
  };
  const Placement p = place(values, steps);
  EXPECT_TRUE(same_place(p, kA, kAb, 0));
  EXPECT_NE(p.spots[kAc].buffer, p.spots[kA].buffer);
  check_contents(values, steps, p);
}

TEST(Placement, InputsAndOutputsOfTheGraphStayDenseAndAlone) {
  enum { kX, kY, kZ };
  const std::vector<PlacedValue> values = {input(4), output(4), output(8)};
  const std::vector<PlacedStep> steps = {
      {.reads = {kX}, .writes = {kY}},
      {.kind = Kind::kConcat, .reads = {kX, kY}, .writes = {kZ}},
  };
  const Placement p = place(values, steps);
  EXPECT_EQ(p.spots[kX].stride, 4);
  EXPECT_EQ(p.spots[kY].stride, 4);
  EXPECT_EQ(p.spots[kZ].stride, 8);
  check_contents(values, steps, p);
}

TEST(Placement, BuffersThatDoNotLiveTogetherShareBytes) {
  // A chain of five: two buffers alive at a time beside the input.
  const std::vector<PlacedValue> values = {input(4),   picture(8), picture(8),
                                           picture(8), picture(8), output(4)};
  std::vector<PlacedStep> steps;
  for (int i = 0; i < 5; ++i) steps.push_back({.reads = {i}, .writes = {i + 1}});
  const Placement p = place(values, steps);
  // The output comes to be when the last but one buffer is free again: it takes no bytes of its
  // own.
  const int64_t input_bytes = 16 * 4 * 4, middle = 2 * 16 * 8 * 4;
  EXPECT_EQ(p.arena_bytes, input_bytes + middle);
  EXPECT_LE(p.peak_bytes, p.arena_bytes);
  check_contents(values, steps, p);
}

TEST(Placement, RandomProgramsNeverReadWhatWasOverwritten) {
  std::mt19937 random(1);
  const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (int round = 0; round < 2000; ++round) {
    std::vector<PlacedValue> values = {input(4), input(8)};
    std::vector<PlacedStep> steps;
    const int count = 3 + static_cast<int>(pick(14));
    for (int s = 0; s < count; ++s) {
      const auto any = [&] { return static_cast<int>(pick(values.size())); };
      PlacedStep step;
      const size_t kind = pick(4);
      if (kind == 0) {
        step.kind = Kind::kConcat;
        int64_t channels = 0;
        for (size_t i = 0; i < 2 + pick(2); ++i) {
          step.reads.push_back(any());
          channels += values[static_cast<size_t>(step.reads.back())].channels;
        }
        if (channels > 64) continue;
        values.push_back(picture(channels));
        step.writes = {static_cast<int>(values.size()) - 1};
      } else if (kind == 1) {
        step.kind = Kind::kSplit;
        step.reads = {any()};
        const int64_t channels = values[static_cast<size_t>(step.reads[0])].channels;
        if (channels < 2) continue;
        const int64_t first = 1 + static_cast<int64_t>(pick(static_cast<size_t>(channels - 1)));
        values.push_back(picture(first));
        values.push_back(picture(channels - first));
        step.writes = {static_cast<int>(values.size()) - 2, static_cast<int>(values.size()) - 1};
      } else {
        step.reads = {any(), any()};
        values.push_back(picture(values[static_cast<size_t>(step.reads[0])].channels));
        step.writes = {static_cast<int>(values.size()) - 1};
        if (kind == 2) step.in_place = step.reads[0];
      }
      steps.push_back(step);
    }
    for (PlacedValue& v : values) {
      if (!v.input && pick(5) == 0) v.output = v.pinned = true;
    }
    const Placement p = place(values, steps);
    check_contents(values, steps, p);
    if (testing::Test::HasFatalFailure()) FAIL() << "round " << round;
  }
}

}  // namespace
}  // namespace ferry::cpu

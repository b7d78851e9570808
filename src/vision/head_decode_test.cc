#include "vision/head_decode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "vision/nms_cases.h"

namespace ferry::vision {
namespace {

using testing::expect_equal;
using testing::Rows;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Raw maps in both layouts, made from values that stand as the decoded tensor's rows do.
class Maps {
 public:
  struct Scale {
    int64_t width, height;
    float stride;
    std::vector<Anchor> anchors;
  };

  Maps(std::vector<Scale> scales, int64_t classes, int64_t gap = 0)
      : scales_(std::move(scales)), classes_(classes), gap_(gap) {}

  // value(row, column) -> logit
  template <class Value>
  void fill(const Value& value) {
    nhwc_.clear();
    nchw_.clear();
    const int64_t columns = 5 + classes_;
    int64_t row = 0;
    for (const Scale& s : scales_) {
      const int64_t anchors = static_cast<int64_t>(s.anchors.size());
      const int64_t pixel = anchors * columns + gap_;
      std::vector<float> nhwc(s.width * s.height * pixel, 1e9f);
      std::vector<float> nchw(s.width * s.height * anchors * columns);
      for (int64_t a = 0; a < anchors; ++a) {
        for (int64_t p = 0; p < s.width * s.height; ++p, ++row) {
          for (int64_t c = 0; c < columns; ++c) {
            const float logit = value(row, c);
            nhwc[p * pixel + a * columns + c] = logit;
            nchw[(a * columns + c) * s.width * s.height + p] = logit;
          }
        }
      }
      nhwc_.push_back(std::move(nhwc));
      nchw_.push_back(std::move(nchw));
    }
  }

  RawHead nhwc() {
    views_.clear();
    for (size_t i = 0; i < scales_.size(); ++i) {
      const Scale& s = scales_[i];
      const int64_t pixel = static_cast<int64_t>(s.anchors.size()) * (5 + classes_) + gap_;
      views_.push_back(
          HeadMap::nhwc(nhwc_[i].data(), s.width, s.height, pixel, s.stride, s.anchors));
    }
    return {views_, classes_};
  }

  RawHead nchw() {
    views_.clear();
    for (size_t i = 0; i < scales_.size(); ++i) {
      const Scale& s = scales_[i];
      views_.push_back(HeadMap::nchw(nchw_[i].data(), s.width, s.height, s.stride, s.anchors));
    }
    return {views_, classes_};
  }

 private:
  std::vector<Scale> scales_;
  int64_t classes_, gap_;
  std::vector<std::vector<float>> nhwc_, nchw_;
  std::vector<HeadMap> views_;
};

std::vector<Detection> detect_or_die(const RawHead& head, const NmsOptions& options,
                                     ThreadPool* pool = nullptr, Simd simd = best_simd()) {
  auto detections = detect(head, options, pool, simd);
  EXPECT_TRUE(detections.ok()) << (detections.ok() ? "" : detections.error().message);
  return detections.ok() ? *detections : std::vector<Detection>{};
}

// A head of one map, 2 x 1 cells, one anchor, two classes: cell 0 is a sure thing of class 1, cell
// 1 is what a test makes of it.
Maps two_cells(const std::vector<float>& second) {
  Maps maps({{2, 1, 8, {{16, 32}}}}, 2);
  const std::vector<float> first = {0, 0, 0, 0, 9, -9, 9};
  maps.fill([&](int64_t row, int64_t column) { return (row == 0 ? first : second)[column]; });
  return maps;
}

TEST(HeadDecode, DecodesTheMiddleOfACellByHand) {
  // All logits 0: sigmoid one half, so 2 s - 0.5 = 0.5 and (2 s)^2 = 1.
  Maps maps({{2, 1, 8, {{16, 32}}}}, 1);
  maps.fill([](int64_t, int64_t) { return 0.0f; });
  std::vector<float> rows(2 * 6);
  ASSERT_TRUE(decode_rows(maps.nhwc(), rows.data()).ok());
  EXPECT_EQ(rows, (std::vector<float>{4, 4, 16, 32, 0.5, 0.5, 12, 4, 16, 32, 0.5, 0.5}));
}

TEST(HeadDecode, AgreesWithNumPyFromRawMapsInBothLayouts) {
  for (const auto& item : testing::read_cases("head.json")) {
    const auto& head = item.at("head");
    std::vector<Maps::Scale> scales;
    for (const auto& map : head.at("maps")) {
      Maps::Scale scale = {map.at("width"), map.at("height"), map.at("stride"), {}};
      for (const auto& anchor : map.at("anchors")) scale.anchors.push_back({anchor[0], anchor[1]});
      scales.push_back(scale);
    }
    Maps maps(scales, head.at("classes"), 3);
    const uint32_t seed = head.at("seed");
    maps.fill([&](int64_t row, int64_t column) {
      return testing::unit_noise(static_cast<uint32_t>(row), static_cast<uint32_t>(column), seed) *
                 16 -
             8;
    });
    const RawHead raw = maps.nhwc();
    Rows rows{std::vector<float>(raw.rows() * raw.columns()), raw.columns()};
    ASSERT_TRUE(decode_rows(raw, rows.values.data()).ok());
    for (const auto& [row, values] : head.at("decoded").items()) {
      for (size_t c = 0; c < values.size(); ++c) {
        const float want = static_cast<float>(values[c].get<double>());
        EXPECT_NEAR(rows.values[std::stoll(row) * rows.columns + static_cast<int64_t>(c)], want,
                    2e-6f * (1 + std::abs(want)))
            << "row " << row << ", column " << c;
      }
    }
    const NmsOptions options = testing::options_of(item);
    const auto want = testing::expected(item);
    for (Simd simd : supported_simd()) {
      const std::string name = item.at("name").get<std::string>() + ", " + simd_name(simd);
      expect_equal(detect_or_die(raw, options, nullptr, simd), want, 2e-3f, 1e-6f, name);
    }
    expect_equal(detect_or_die(maps.nchw(), options), want, 2e-3f, 1e-6f, "NCHW");
  }
}

// Box, confidence and class of every candidate, in order.
std::vector<Detection> listed(const Result<Candidates>& found) {
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().message);
  std::vector<Detection> all;
  if (!found.ok()) return all;
  for (const auto& item : found->items) {
    all.push_back({found->boxes[item.box_index], item.confidence, item.class_id});
  }
  return all;
}

// The same cells through decode_rows and through the logit tests: equal to the bit and in the same
// order, since the logit tests may only reject what the decoded values would reject. Candidates are
// compared, not detections: those that just pass the threshold never become detections.
TEST(HeadDecode, RejectsOnLogitsExactlyWhatTheDecodedRowsWouldReject) {
  Maps maps({{40, 40, 8, {{10, 13}, {16, 30}, {33, 23}}},
             {20, 20, 16, {{30, 61}, {62, 45}, {59, 119}}},
             {10, 10, 32, {{116, 90}, {156, 198}, {373, 326}}}},
            6);
  for (uint32_t seed : {1u, 2u, 3u}) {
    maps.fill([&](int64_t row, int64_t column) {
      const float noise =
          testing::unit_noise(static_cast<uint32_t>(row), static_cast<uint32_t>(column), seed);
      return noise * 20 - (column == 4 ? 14 : 10);
    });
    const RawHead raw = maps.nhwc();
    Rows rows{std::vector<float>(raw.rows() * raw.columns()), raw.columns()};
    ThreadPool pool(3);
    ASSERT_TRUE(decode_rows(raw, rows.values.data(), &pool).ok());
    for (double confidence : {0.0, 1e-6, 0.001, 0.02, 0.25, 0.9, 0.999999, 1.0}) {
      for (bool multi_label : {false, true}) {
        const NmsOptions options = {.conf_threshold = confidence, .multi_label = multi_label};
        const auto want = listed(find_candidates(rows.view(), options));
        const std::string name = fmt::format("{} {} {}", seed, confidence, multi_label);
        EXPECT_EQ(want.empty(), confidence > 0.99) << name;
        for (Simd simd : supported_simd()) {
          EXPECT_TRUE(listed(find_candidates(raw, options, nullptr, simd)) == want)
              << name << ", " << simd_name(simd);
        }
        EXPECT_TRUE(listed(find_candidates(raw, options, &pool)) == want) << name << ", threads";
        EXPECT_TRUE(listed(find_candidates(rows.view(), options, &pool)) == want)
            << name << ", threads, decoded";
        EXPECT_TRUE(listed(find_candidates(maps.nchw(), options, &pool)) == want)
            << name << ", NCHW";
      }
    }
  }
}

TEST(HeadDecode, OfScoresThatRoundToOneTheFirstClassIsBest) {
  // Sigmoid is exactly 1 from about 17 on.
  const auto found = detect_or_die(two_cells({0, 0, 0, 0, 9, 20, 30}).nhwc(), {.agnostic = true});
  EXPECT_EQ(std::count_if(found.begin(), found.end(), [](auto& d) { return d.class_id == 0; }), 1);
}

TEST(HeadDecode, AConfidenceEqualToTheThresholdDoesNotPass) {
  // Objectness 1 times class score one half.
  Maps maps({{1, 1, 8, {{16, 32}}}}, 2);
  maps.fill([](int64_t, int64_t column) { return column == 4 ? 40.0f : 0.0f; });
  for (bool multi_label : {false, true}) {
    NmsOptions options = {.conf_threshold = 0.5, .multi_label = multi_label};
    EXPECT_TRUE(detect_or_die(maps.nhwc(), options).empty());
    options.conf_threshold = 0.4999;
    EXPECT_EQ(detect_or_die(maps.nhwc(), options).size(), multi_label ? 2u : 1u);
  }
}

// Real distributions: PyTorch's decoded outputs turned back into logits.
TEST(HeadDecode, GivesTheBoxesOfPyTorchsOutputsFromTheirLogits) {
  Maps maps({{40, 40, 8, {{10, 13}, {16, 30}, {33, 23}}},
             {20, 20, 16, {{30, 61}, {62, 45}, {59, 119}}},
             {10, 10, 32, {{116, 90}, {156, 198}, {373, 326}}}},
            80);
  for (const auto& item : testing::read_cases("golden.json")) {
    const std::string path = testing::golden_path(item.at("golden"));
    const auto golden = testing::read_npy(path);
    if (!golden) {
      GTEST_SKIP() << "NOT CHECKED: boxes from real logits; " << path
                   << " is absent or not fp32, set FERRY_GOLDEN to its folder";
    }
    ASSERT_EQ(golden->rows(), 6300);
    maps.fill([](int64_t, int64_t) { return 0.0f; });
    const RawHead zeros = maps.nhwc();  // says where each row's cell and anchor are
    Rows middle{std::vector<float>(zeros.rows() * 85), 85};
    ASSERT_TRUE(decode_rows(zeros, middle.values.data()).ok());
    maps.fill([&](int64_t row, int64_t column) {
      const double value = golden->values[row * 85 + column];
      const double center = middle.values[row * 85 + column];
      double s = value;
      if (column < 2) {
        const double stride = row < 4800 ? 8 : row < 6000 ? 16 : 32;
        s = ((value - center) / stride + 1) / 2;
      } else if (column < 4) {
        s = std::sqrt(value / center) / 2;
      }
      return static_cast<float>(std::log(s / (1 - s)));
    });
    expect_equal(detect_or_die(maps.nhwc(), testing::options_of(item)), testing::expected(item),
                 2e-3f, 1e-6f, item.at("name"));
  }
}

TEST(HeadDecode, PassesOverNanAndKeepsInfiniteScores) {
  const Detection sure = detect_or_die(two_cells({0, 0, 0, 0, -9, 0, 0}).nhwc(), {}).at(0);
  EXPECT_EQ(sure.class_id, 1);
  const auto second = [&](std::vector<float> cell, bool multi_label = false) {
    Maps maps = two_cells(cell);
    auto found = detect_or_die(maps.nhwc(), {.multi_label = multi_label});
    EXPECT_TRUE(detect_or_die(maps.nchw(), {.multi_label = multi_label}) == found);
    EXPECT_EQ(std::count(found.begin(), found.end(), sure), 1);
    std::erase(found, sure);
    return found;
  };
  EXPECT_TRUE(second({0, 0, 0, 0, kNaN, 9, 9}).empty());
  EXPECT_TRUE(second({0, 0, 0, 0, -kInfinity, 9, 9}).empty());
  EXPECT_TRUE(second({0, 0, 0, 0, 9, kNaN, 9}).empty()) << "torch's max of NaN is NaN";
  EXPECT_EQ(second({0, 0, 0, 0, 9, kNaN, 9}, true).size(), 1u) << "but the other label stands";
  EXPECT_TRUE(second({kNaN, 0, 0, 0, 9, 9, -9}).empty());
  EXPECT_TRUE(second({0, 0, kNaN, 0, 9, 9, -9}).empty());
  const auto infinite =
      second({kInfinity, -kInfinity, -kInfinity, kInfinity, kInfinity, kInfinity, -kInfinity});
  ASSERT_EQ(infinite.size(), 1u);
  // Centre (2 - 0.5 + 1) * 8 = 20, (0 - 0.5 + 0) * 8 = -4; size 0 x 4 * 32.
  EXPECT_TRUE((infinite[0] == Detection{{20, -68, 20, 60}, 1.0f, 0}));
}

TEST(HeadDecode, AWholeMapOfNanGivesNothing) {
  Maps maps({{80, 80, 8, {{10, 13}, {16, 30}, {33, 23}}}}, 80);
  maps.fill([](int64_t, int64_t) { return kNaN; });
  EXPECT_TRUE(detect_or_die(maps.nhwc(), {.conf_threshold = 0, .multi_label = true}).empty());
}

TEST(HeadDecode, ForgetsTheWorstOfTooManyCandidatesWithoutChangingTheAnswer) {
  const Rows rows = testing::formula_rows(3000, 20, 21, 8);
  NmsOptions options = {.conf_threshold = 0, .multi_label = true, .max_candidates = 100};
  const auto few = find_candidates(rows.view(), options);
  ASSERT_TRUE(few.ok());
  EXPECT_LE(few->items.size(), 500u);
  // The best hundred by a plain sort of all 60 000.
  options.max_candidates = 1000000;
  auto all = find_candidates(rows.view(), options);
  ASSERT_TRUE(all.ok());
  ASSERT_GT(all->items.size(), 59000u);
  options.max_candidates = 100;
  EXPECT_TRUE(suppress(*few, options) == suppress(*all, options));
}

TEST(HeadDecode, ReadsDecodedRowsOfEveryFloatingType) {
  // Values that a half and a bfloat16 hold exactly.
  const std::vector<float> values = {96, 64, 32, 16, 0.75, 0.5, 0.25, 1, 2, 3, 4, 0.125, 1, 1};
  const std::vector<Detection> want = {{{80, 56, 112, 72}, 0.375f, 0}};
  std::vector<double> f64(values.begin(), values.end());
  std::vector<uint16_t> bf16, f16;
  for (float value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    bf16.push_back(static_cast<uint16_t>(bits >> 16));
    f16.push_back(static_cast<uint16_t>(((bits >> 23) - 112) << 10 | (bits >> 13 & 1023)));
  }
  const auto read = [&](const void* data, RowType type) {
    const auto found = detect(DecodedRows{data, 2, 7, 7, type}, {});
    EXPECT_TRUE(found.ok());
    return found.ok() ? *found : std::vector<Detection>{};
  };
  EXPECT_TRUE(read(values.data(), RowType::kF32) == want);
  EXPECT_TRUE(read(f16.data(), RowType::kF16) == want);
  EXPECT_TRUE(read(bf16.data(), RowType::kBf16) == want);
  EXPECT_TRUE(read(f64.data(), RowType::kF64) == want);
}

TEST(HeadDecode, ReadsHalfZeroDenormalInfinityAndNan) {
  // Objectness 1, class score: the pattern. 0x3800 is a half, 0x0001 the least denormal 2^-24.
  const auto confidence = [](uint16_t bits) {
    const std::vector<uint16_t> row = {0x5400, 0x5400, 0x4800, 0x4800, 0x3c00, bits};
    const auto found =
        detect(DecodedRows{row.data(), 1, 6, 6, RowType::kF16}, {.conf_threshold = 0});
    return found.ok() && found->size() == 1 ? found->at(0).confidence : -1.0f;
  };
  EXPECT_EQ(confidence(0x3800), 0.5f);
  EXPECT_EQ(confidence(0x0001), 0x1p-24f);
  EXPECT_EQ(confidence(0x0000), -1);
  EXPECT_EQ(confidence(0x7c00), -1) << "an infinite confidence is dropped";
  EXPECT_EQ(confidence(0x7e00), -1);
  EXPECT_EQ(confidence(0xb800), -1) << "minus one half";
}

TEST(HeadDecode, RefusesHeadsThatCannotBe) {
  const std::vector<Anchor> anchors = {{1, 1}};
  const std::vector<float> data(100);
  const auto fails = [](const HeadMap& map, int64_t classes) {
    const auto found = find_candidates(RawHead{{&map, 1}, classes}, {});
    return !found.ok() && found.error().code == Code::kInvalid;
  };
  EXPECT_FALSE(fails(HeadMap::nhwc(data.data(), 2, 2, 6, 8, anchors), 1));
  EXPECT_TRUE(fails(HeadMap::nhwc(data.data(), 2, 2, 6, 8, anchors), 0)) << "no classes";
  EXPECT_TRUE(fails(HeadMap::nhwc(data.data(), 2, 2, 6, 8, {}), 1)) << "no anchors";
  EXPECT_TRUE(fails(HeadMap::nhwc(nullptr, 2, 2, 6, 8, anchors), 1));
  EXPECT_TRUE(fails(HeadMap::nhwc(data.data(), 0, 2, 6, 8, anchors), 1));
  EXPECT_TRUE(fails(HeadMap::nhwc(data.data(), 2, 2, 6, 0, anchors), 1));
  EXPECT_TRUE(
      fails(HeadMap::nhwc(data.data(), int64_t{1} << 40, int64_t{1} << 40, 6, 8, anchors), 1));
  EXPECT_FALSE(find_candidates(DecodedRows{data.data(), 2, 5, 5, RowType::kF32}, {}).ok());
  EXPECT_FALSE(find_candidates(DecodedRows{nullptr, 2, 6, 6, RowType::kF32}, {}).ok());
  EXPECT_FALSE(find_candidates(DecodedRows{data.data(), 2, 7, 6, RowType::kF32}, {}).ok());
  EXPECT_FALSE(
      find_candidates(DecodedRows{data.data(), 2, 6, 6, RowType::kF32}, {.conf_threshold = 2})
          .ok());
}

TEST(HeadDecode, NoMapsAndNoRowsGiveNoBoxes) {
  EXPECT_TRUE(detect_or_die(RawHead{{}, 80}, {}).empty());
  const auto none = detect(DecodedRows{nullptr, 0, 85, 85, RowType::kF32}, {});
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->empty());
}

TEST(HeadDecode, IgnoresUnknownClassesInTheFilter) {
  const auto found =
      detect_or_die(two_cells({0, 0, 0, 0, 9, 9, -9}).nhwc(), {.classes = {-1, 7, 1 << 30, 0}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].class_id, 0);
}

}  // namespace
}  // namespace ferry::vision

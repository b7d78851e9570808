#include "vision/nms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "vision/box_kernels.h"
#include "vision/nms_cases.h"

namespace ferry::vision {
namespace {

using testing::expect_equal;
using testing::Rows;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Exactly: the arithmetic is upstream's, operation by operation.
void check_case(const nlohmann::json& item, const Rows& rows) {
  const std::string name = item.at("name");
  for (Simd simd : supported_simd()) {
    const auto got = detect(rows.view(), testing::options_of(item), nullptr, simd);
    ASSERT_TRUE(got.ok()) << got.error().message;
    expect_equal(*got, testing::expected(item), 0, 0, name + ", " + simd_name(simd));
  }
}

TEST(Nms, AnswersTheEdgeCasesAsUpstreamDoes) {
  const auto cases = testing::read_cases("edge.json");
  for (const auto& item : cases) check_case(item, testing::inline_rows(item));
  EXPECT_GE(cases.size(), 15u);
}

TEST(Nms, AnswersCrowdsOfBoxesAsUpstreamDoes) {
  const auto cases = testing::read_cases("formula.json");
  for (const auto& item : cases) {
    const auto& f = item.at("formula");
    check_case(item, testing::formula_rows(f.at("rows"), f.at("classes"), f.at("seed"),
                                           static_cast<float>(f.at("spread").get<double>())));
  }
  EXPECT_GE(cases.size(), 8u);
}

TEST(Nms, AnswersRealNetworkOutputsAsUpstreamDoes) {
  for (const auto& item : testing::read_cases("golden.json")) {
    const std::string path = testing::golden_path(item.at("golden"));
    const auto rows = testing::read_npy(path);
    if (!rows) {
      GTEST_SKIP() << "NOT CHECKED: NMS of real outputs; " << path
                   << " is absent or not fp32, set FERRY_GOLDEN to its folder";
    }
    check_case(item, *rows);
  }
}

Candidates candidates_of(std::vector<Detection> detections) {
  Candidates candidates;
  for (const Detection& d : detections) {
    const int32_t index = static_cast<int32_t>(candidates.boxes.size());
    candidates.items.push_back({d.confidence, d.class_id, index});
    candidates.boxes.push_back(d.box);
  }
  return candidates;
}

// The pairs of a plain quadratic loop, written from the definition.
std::vector<Detection> plain_nms(std::vector<Detection> all, const NmsOptions& options) {
  std::stable_sort(all.begin(), all.end(), [](const Detection& a, const Detection& b) {
    return a.confidence > b.confidence;
  });
  std::vector<Detection> kept;
  for (const Detection& d : all) {
    if (static_cast<int64_t>(kept.size()) == options.max_detections) break;
    const bool gone = std::any_of(kept.begin(), kept.end(), [&](const Detection& k) {
      return (options.agnostic || k.class_id == d.class_id) &&
             double{intersection_over_union(k.box, d.box)} > options.iou_threshold;
    });
    if (!gone) kept.push_back(d);
  }
  return kept;
}

// Whole coordinates below 2^23: the move by class loses nothing, so the plain loop must agree.
std::vector<Detection> crowd(int64_t n, uint32_t seed, int levels) {
  std::vector<Detection> all;
  for (uint32_t i = 0; i < n; ++i) {
    const auto noise = [&](uint32_t c) { return testing::unit_noise(i, c, seed); };
    const float x = std::floor(noise(0) * 300), y = std::floor(noise(1) * 300);
    all.push_back({{x, y, x + std::floor(noise(2) * 60), y + std::floor(noise(3) * 60)},
                   (1 + std::floor(noise(4) * static_cast<float>(levels))) / 1024,
                   static_cast<int32_t>(noise(5) * 3)});
  }
  return all;
}

TEST(Nms, AgreesWithAPlainQuadraticLoopWhateverTheTies) {
  for (int64_t n : {1, 2, 511, 512, 513, 3000}) {
    for (int levels : {1, 7, 1000}) {
      for (bool agnostic : {false, true}) {
        const auto all = crowd(n, static_cast<uint32_t>(n + levels), levels);
        const NmsOptions options = {.agnostic = agnostic, .max_detections = 100000};
        const auto want = plain_nms(all, options);
        for (Simd simd : supported_simd()) {
          const auto got = suppress(candidates_of(all), options, simd);
          EXPECT_TRUE(got == want)
              << n << " boxes, " << levels << " confidences, " << simd_name(simd);
        }
      }
    }
  }
}

TEST(Nms, OfEqualConfidencesTheEarlierCandidateComesFirst) {
  std::vector<Detection> all;
  for (int i = 0; i < 2000; ++i) {
    const float x = static_cast<float>(i) * 2;
    all.push_back({{x, 0, x + 1, 1}, 0.5f, 0});
  }
  const auto got = suppress(candidates_of(all), {.max_detections = 5000});
  EXPECT_TRUE(got == all);
}

TEST(Nms, KeepBestTakesTheEarlierOfEquals) {
  std::vector<Candidates::Item> items;
  for (int32_t i = 0; i < 10; ++i) items.push_back({i % 2 ? 0.5f : 0.25f, i, i});
  EXPECT_EQ(keep_best(items, 7), 0.25f);
  std::vector<int32_t> left;
  for (const auto& item : items) left.push_back(item.class_id);
  EXPECT_EQ(left, (std::vector<int32_t>{0, 1, 2, 3, 5, 7, 9}));
}

TEST(Nms, RefusesOptionsOutOfRange) {
  EXPECT_TRUE(check_options({}).ok());
  EXPECT_TRUE(check_options({.conf_threshold = 0, .iou_threshold = 1}).ok());
  EXPECT_FALSE(check_options({.conf_threshold = -0.01}).ok());
  EXPECT_FALSE(check_options({.conf_threshold = 1.01}).ok());
  EXPECT_FALSE(check_options({.conf_threshold = std::nan("")}).ok());
  EXPECT_FALSE(check_options({.iou_threshold = 45}).ok());
  EXPECT_FALSE(check_options({.iou_threshold = std::nan("")}).ok());
  EXPECT_FALSE(check_options({.max_detections = -1}).ok());
  EXPECT_FALSE(check_options({.max_candidates = -1}).ok());
}

TEST(BoxKernels, FindTheMaximumAndEveryNanAtAnyPlace) {
  for (Simd simd : supported_simd()) {
    const BoxKernels kernels = box_kernels(simd);
    for (int64_t n = 1; n <= 40; ++n) {
      for (int64_t at = 0; at < n; ++at) {
        std::vector<float> values(n, -3.5f);
        values[at] = 2;
        EXPECT_EQ(kernels.max_or_nan(values.data(), n), 2) << simd_name(simd);
        values[at] = kNaN;
        EXPECT_TRUE(std::isnan(kernels.max_or_nan(values.data(), n))) << simd_name(simd);
        values[at] = -kInfinity;
        EXPECT_EQ(kernels.max_or_nan(values.data(), n), n == 1 ? -kInfinity : -3.5f);
      }
    }
  }
}

TEST(BoxKernels, SelectWhatIsAboveAndNotNan) {
  for (Simd simd : supported_simd()) {
    const BoxKernels kernels = box_kernels(simd);
    for (int64_t n : {1, 7, 8, 15, 16, 17, 33, 80}) {
      std::vector<float> values(n);
      std::vector<int32_t> want;
      for (int64_t i = 0; i < n; ++i) {
        values[i] = i % 5 == 4 ? kNaN : static_cast<float>(i % 3);
        if (values[i] > 1) want.push_back(static_cast<int32_t>(i));
      }
      std::vector<int32_t> out(n + KeptBlock::kLanes);
      out.resize(kernels.select_above(values.data(), n, 1.0f, out.data()));
      EXPECT_EQ(out, want) << n << ", " << simd_name(simd);
    }
  }
}

TEST(BoxKernels, ComputeTheSigmoidToTheSameBitsAtEveryLevel) {
  std::vector<float> values = {kNaN, kInfinity, -kInfinity, 0, 200, -200, -88.5f, 88.5f};
  for (int i = -9000; i <= 9000; ++i) values.push_back(static_cast<float>(i) * 0.0097f);
  const int64_t n = static_cast<int64_t>(values.size());
  std::vector<float> first(n);
  box_kernels(Simd::kPortable).sigmoids(values.data(), n, first.data());
  EXPECT_TRUE(std::isnan(first[0]));
  EXPECT_EQ(first[1], 1);
  EXPECT_EQ(first[2], 0);
  EXPECT_EQ(first[3], 0.5f);
  for (int64_t i = 3; i < n; ++i) {
    const double exact = 1 / (1 + std::exp(-double{values[i]}));
    EXPECT_NEAR(first[i], exact, exact * 2e-7 + 4e-38) << values[i];
  }
  for (Simd simd : supported_simd()) {
    std::vector<float> out = values;
    box_kernels(simd).sigmoids(out.data(), n, out.data());
    EXPECT_EQ(std::memcmp(out.data() + 1, first.data() + 1, (n - 1) * sizeof(float)), 0)
        << simd_name(simd);
  }
}

}  // namespace
}  // namespace ferry::vision

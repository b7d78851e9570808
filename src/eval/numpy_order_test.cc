#include "eval/numpy_order.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace ferry::eval {
namespace {

// tests/tools/make_argsort_cases.py
TEST(NumpyOrder, EqualsNumpyBefore125OnValuesWithTies) {
  std::ifstream file("tests/data/eval/argsort.txt");
  int cases = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    size_t count, kinds;
    std::string want;
    fields >> count >> kinds >> want;
    ASSERT_TRUE(fields) << line;
    std::vector<double> values;
    for (size_t i = 0; i < count; ++i)
      values.push_back(static_cast<double>(i * i * 7919 % 65521 % kinds));
    uint64_t digest = 0xcbf29ce484222325u;
    for (const size_t i : numpy_argsort(values)) {
      for (const char c : fmt::format("{} ", i))
        digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    }
    EXPECT_EQ(fmt::format("{:016x}", digest), want) << line;
    ++cases;
  }
  EXPECT_GE(cases, 12);
  EXPECT_TRUE(numpy_argsort({}).empty());
}

}  // namespace
}  // namespace ferry::eval

// What the importer's tests share: where real and golden files are, NumPy arrays, comparing.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/tensor.h"

namespace ferry::import::test {

// `$variable/name`, or `fallback/name` relative to the repository root, in which tests run.
inline std::string file_under(const char* variable, const char* fallback, const std::string& name) {
  const char* folder = std::getenv(variable);
  return std::string(folder != nullptr ? folder : fallback) + "/" + name;
}
inline std::string data_file(const std::string& name) {
  return file_under("FERRY_DATA", "../shared/data", name);
}
inline std::string golden_file(const std::string& name) {
  return file_under("FERRY_GOLDEN", "../shared/golden", name);
}

// Skips the test, saying what was not checked, when a file is absent.
#define FERRY_NEED_FILE(path, what)   \
  if (!std::filesystem::exists(path)) \
  GTEST_SKIP() << (path) << " is absent: not checked: " << (what)

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline nlohmann::json read_json(const std::string& path) {
  return nlohmann::json::parse(read_file(path));
}

// A float32 array in C order, as numpy.save writes it.
inline std::vector<float> read_npy(const std::string& path) {
  const std::string bytes = read_file(path);
  if (bytes.size() < 10 || bytes.find("'<f4'") == std::string::npos ||
      bytes.find("'fortran_order': False") == std::string::npos) {
    ADD_FAILURE() << path << " is no float32 array in C order";
    return {};
  }
  const size_t header = 10 + static_cast<unsigned char>(bytes[8]) +
                        256 * static_cast<size_t>(static_cast<unsigned char>(bytes[9]));
  std::vector<float> values((bytes.size() - header) / 4);
  std::memcpy(values.data(), bytes.data() + header, values.size() * 4);
  return values;
}

// The picture that golden files and fixtures are computed from: x[n,c,y,x] = ((7y + 13x + 29c +
// (y*x) mod 31) mod 256) / 255.
inline graph::Tensor formula_picture(const graph::Shape& shape) {
  std::vector<float> values;
  for (int64_t n = 0; n < shape[0]; ++n) {
    for (int64_t c = 0; c < shape[1]; ++c) {
      for (int64_t y = 0; y < shape[2]; ++y) {
        for (int64_t x = 0; x < shape[3]; ++x) {
          values.push_back(static_cast<float>((7 * y + 13 * x + 29 * c + (y * x) % 31) % 256) /
                           255.0f);
        }
      }
    }
  }
  return graph::Tensor::of<float>(shape, std::move(values));
}

}  // namespace ferry::import::test

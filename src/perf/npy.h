// NumPy's .npy files of 32-bit floats: how engines hand over what they computed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace ferry::perf {

struct NpyArray {
  std::vector<int64_t> shape;
  std::vector<float> values;  // row-major
};

Status write_npy(const std::string& path, const NpyArray& array);

// Format 1 to 3, '<f4', C order. Refuses anything else, and a file shorter than its shape says.
Result<NpyArray> read_npy(const std::string& path);

}  // namespace ferry::perf

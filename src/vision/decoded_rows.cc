// head_decode.h for a head that the network has decoded itself, of any floating type.
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "vision/cell_scorer.h"
#include "vision/head_decode.h"

namespace ferry::vision {
namespace {

float from_half(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = bits >> 10 & 31;
  const uint32_t mantissa = bits & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent == 0) {
    const float value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

template <class T>
T read(const DecodedRows& rows, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(rows.data) + index * int64_t{sizeof(T)}, sizeof(T));
  return value;
}

float value_at(const DecodedRows& rows, int64_t index) {
  switch (rows.type) {
    case RowType::kF32:
      return read<float>(rows, index);
    case RowType::kF16:
      return from_half(read<uint16_t>(rows, index));
    case RowType::kBf16:
      return std::bit_cast<float>(uint32_t{read<uint16_t>(rows, index)} << 16);
    case RowType::kF64:
      return static_cast<float>(read<double>(rows, index));
  }
  return 0;
}

Status check_rows(const DecodedRows& rows) {
  if (rows.columns <= kFirstClass) {
    return error(Code::kInvalid,
                 "detection output: rows of {} values, needs 5 + classes, so at least 6",
                 rows.columns);
  }
  if (rows.rows < 0 || rows.rows > kMaxRows || rows.row_stride < rows.columns ||
      (rows.data == nullptr && rows.rows > 0)) {
    return error(Code::kInvalid, "detection output: {} rows of {} values, {} apart{}", rows.rows,
                 rows.columns, rows.row_stride, rows.data == nullptr ? ", no data" : "");
  }
  return {};
}

}  // namespace

Result<Candidates> find_candidates(const DecodedRows& rows, const NmsOptions& options,
                                   ThreadPool* pool, Simd simd) {
  FERRY_CHECK_OK(check_options(options));
  FERRY_CHECK_OK(check_rows(rows));
  const BoxKernels kernels = box_kernels(simd);
  const int64_t classes = rows.columns - kFirstClass;
  const ClassFilter filter(options.classes, classes);
  const float threshold = static_cast<float>(options.conf_threshold);
  std::vector<Candidates> parts(workers_of(pool));
  for_ranges(pool, rows.rows, 2048, [&](int64_t begin, int64_t end, int worker) {
    CellScorer<ScoreForm> scorer(options, classes, filter, kernels);
    std::vector<float> converted(rows.columns);
    for (int64_t r = begin; r < end; ++r) {
      const int64_t at = r * rows.row_stride;
      const float objectness = value_at(rows, at + kObjectness);
      if (!(objectness > threshold)) continue;
      const float* row = converted.data();
      if (rows.type == RowType::kF32) {
        row = static_cast<const float*>(rows.data) + at;
      } else {
        for (int64_t c = 0; c < rows.columns; ++c) converted[c] = value_at(rows, at + c);
      }
      scorer.add(objectness, row + kFirstClass,
                 [&] { return box_from_center(row[0], row[1], row[2], row[3]); });
    }
    parts[worker] = scorer.take();
  });
  return join(std::move(parts));
}

Result<std::vector<Detection>> detect(const DecodedRows& rows, const NmsOptions& options,
                                      ThreadPool* pool, Simd simd) {
  FERRY_TRY(candidates, find_candidates(rows, options, pool, simd));
  return suppress(candidates, options, simd);
}

}  // namespace ferry::vision

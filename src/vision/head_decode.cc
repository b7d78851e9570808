// Two passes. The first walks the objectness values of each row of cells and lists the cells that
// may pass; it is all that most of the head ever sees. The second computes the listed cells and
// emits candidates in upstream's order. Both divide into ranges that are joined in order, so the
// result does not depend on the number of threads.
#include "vision/head_decode.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "vision/cell_scorer.h"

namespace ferry::vision {
namespace {

struct Cell {
  int32_t x, y;
  int16_t map, anchor;
};

struct BoxLogits {
  float x, y, w, h;
};

Box decode_box(const BoxLogits& t, const HeadMap& map, const Cell& cell) {
  const Anchor anchor = map.anchors[cell.anchor];
  const float w = sigmoid(t.w) * 2;
  const float h = sigmoid(t.h) * 2;
  return box_from_center((sigmoid(t.x) * 2 + (static_cast<float>(cell.x) - 0.5f)) * map.stride,
                         (sigmoid(t.y) * 2 + (static_cast<float>(cell.y) - 0.5f)) * map.stride,
                         w * w * anchor.width, h * h * anchor.height);
}

const float* cell_values(const HeadMap& map, int64_t columns, const Cell& cell) {
  return map.data + cell.y * map.row_stride + cell.x * map.pixel_stride +
         cell.anchor * columns * map.channel_stride;
}

Status check_head(const RawHead& head) {
  if (head.classes < 1) {
    return error(Code::kInvalid, "detection head: {} classes, needs at least 1", head.classes);
  }
  int64_t rows = 0;
  for (size_t i = 0; i < head.maps.size(); ++i) {
    const HeadMap& map = head.maps[i];
    const int64_t anchors = static_cast<int64_t>(map.anchors.size());
    if (map.data == nullptr || map.width < 1 || map.height < 1 || anchors < 1 ||
        !(map.stride > 0)) {
      return error(Code::kInvalid,
                   "detection head, map {}: {} x {} cells, {} anchors, stride {}{}; each must be "
                   "positive",
                   i, map.width, map.height, anchors, map.stride,
                   map.data == nullptr ? ", no data" : "");
    }
    if (anchors > std::numeric_limits<int16_t>::max() || map.width > kMaxRows / anchors ||
        map.height > kMaxRows / (map.width * anchors) ||
        rows > kMaxRows - map.width * map.height * anchors) {
      return error(Code::kInvalid, "detection head, map {}: more than {} rows", i, kMaxRows);
    }
    rows += map.width * map.height * anchors;
  }
  if (head.maps.size() > static_cast<size_t>(std::numeric_limits<int16_t>::max())) {
    return error(Code::kInvalid, "detection head: {} maps", head.maps.size());
  }
  return {};
}

// Cells whose objectness logit is above `limit`, in upstream's order.
std::vector<Cell> scan(const RawHead& head, float limit, ThreadPool* pool) {
  int64_t rows_of_cells = 0;
  std::vector<size_t> first_bucket;
  size_t buckets = 0;
  for (const HeadMap& map : head.maps) {
    rows_of_cells += map.height;
    first_bucket.push_back(buckets);
    buckets += map.anchors.size();
  }
  // One bucket for each worker, and there for each map and anchor.
  std::vector<std::vector<std::vector<Cell>>> found(workers_of(pool));
  for (auto& part : found) part.resize(buckets);
  for_ranges(pool, rows_of_cells, 64, [&](int64_t begin, int64_t end, int worker) {
    std::vector<int32_t> hits;
    int64_t start = 0;
    for (size_t m = 0; m < head.maps.size(); ++m) {
      const HeadMap& map = head.maps[m];
      hits.resize(map.width + 1);
      const int64_t y_end = std::min(end - start, map.height);
      for (int64_t y = std::max<int64_t>(0, begin - start); y < y_end; ++y) {
        for (size_t a = 0; a < map.anchors.size(); ++a) {
          const Cell row = {0, static_cast<int32_t>(y), static_cast<int16_t>(m),
                            static_cast<int16_t>(a)};
          const float* objectness =
              cell_values(map, head.columns(), row) + kObjectness * map.channel_stride;
          int64_t count = 0;
          for (int64_t x = 0; x < map.width; ++x) {  // no branch: hits are rare but anywhere
            hits[count] = static_cast<int32_t>(x);
            count += objectness[x * map.pixel_stride] > limit;
          }
          auto& cells = found[worker][first_bucket[m] + a];
          for (int64_t i = 0; i < count; ++i) {
            cells.push_back({hits[i], row.y, row.map, row.anchor});
          }
        }
      }
      start += map.height;
    }
  });
  std::vector<Cell> cells;
  for (size_t b = 0; b < buckets; ++b) {
    for (const auto& part : found) {
      cells.insert(cells.end(), part[b].begin(), part[b].end());
    }
  }
  return cells;
}

}  // namespace

HeadMap HeadMap::nhwc(const float* data, int64_t width, int64_t height, int64_t pixel_stride,
                      float stride, std::span<const Anchor> anchors) {
  return {data, width, height, width * pixel_stride, pixel_stride, 1, stride, anchors};
}

HeadMap HeadMap::nchw(const float* data, int64_t width, int64_t height, float stride,
                      std::span<const Anchor> anchors) {
  return {data, width, height, width, 1, width * height, stride, anchors};
}

int64_t RawHead::rows() const {
  int64_t rows = 0;
  for (const HeadMap& map : maps) {
    rows += map.width * map.height * static_cast<int64_t>(map.anchors.size());
  }
  return rows;
}

Result<Candidates> find_candidates(const RawHead& head, const NmsOptions& options, ThreadPool* pool,
                                   Simd simd) {
  FERRY_CHECK_OK(check_options(options));
  FERRY_CHECK_OK(check_head(head));
  const BoxKernels kernels = box_kernels(simd);
  // As upstream: the threshold is compared as a float.
  const float threshold = static_cast<float>(options.conf_threshold);
  const std::vector<Cell> cells = scan(head, logit_below(threshold), pool);
  const ClassFilter filter(options.classes, head.classes);
  std::vector<Candidates> parts(workers_of(pool));
  for_ranges(pool, static_cast<int64_t>(cells.size()), 256,
             [&](int64_t begin, int64_t end, int worker) {
               CellScorer<LogitForm> scorer(options, head.classes, filter, kernels);
               std::vector<float> gathered(head.classes);
               for (int64_t i = begin; i < end; ++i) {
                 const Cell& cell = cells[i];
                 const HeadMap& map = head.maps[cell.map];
                 const int64_t step = map.channel_stride;
                 const float* values = cell_values(map, head.columns(), cell);
                 const float* scores = values + kFirstClass;
                 if (step != 1) {
                   for (int64_t c = 0; c < head.classes; ++c) {
                     gathered[c] = values[(kFirstClass + c) * step];
                   }
                   scores = gathered.data();
                 }
                 scorer.add(sigmoid(values[kObjectness * step]), scores, [&] {
                   return decode_box({values[0], values[step], values[2 * step], values[3 * step]},
                                     map, cell);
                 });
               }
               parts[worker] = scorer.take();
             });
  return join(std::move(parts));
}

Result<std::vector<Detection>> detect(const RawHead& head, const NmsOptions& options,
                                      ThreadPool* pool, Simd simd) {
  FERRY_TRY(candidates, find_candidates(head, options, pool, simd));
  return suppress(candidates, options, simd);
}

Status decode_rows(const RawHead& head, float* output, ThreadPool* pool) {
  FERRY_CHECK_OK(check_head(head));
  const BoxKernels kernels = box_kernels(best_simd());
  const int64_t columns = head.columns();
  for (size_t m = 0; m < head.maps.size(); ++m) {
    const HeadMap& map = head.maps[m];
    const int64_t anchors = static_cast<int64_t>(map.anchors.size());
    float* const base = output;
    for_ranges(pool, anchors * map.height, 16, [&](int64_t begin, int64_t end, int) {
      for (int64_t line = begin; line < end; ++line) {  // one anchor's row of cells
        Cell cell = {0, static_cast<int32_t>(line % map.height), static_cast<int16_t>(m),
                     static_cast<int16_t>(line / map.height)};
        const Anchor anchor = map.anchors[cell.anchor];
        float* row = base + line * map.width * columns;
        for (; cell.x < map.width; ++cell.x, row += columns) {
          const float* values = cell_values(map, columns, cell);
          if (map.channel_stride == 1) {
            kernels.sigmoids(values, columns, row);
          } else {
            for (int64_t c = 0; c < columns; ++c) row[c] = values[c * map.channel_stride];
            kernels.sigmoids(row, columns, row);
          }
          row[0] = (row[0] * 2 + (static_cast<float>(cell.x) - 0.5f)) * map.stride;
          row[1] = (row[1] * 2 + (static_cast<float>(cell.y) - 0.5f)) * map.stride;
          row[2] = (row[2] * 2) * (row[2] * 2) * anchor.width;
          row[3] = (row[3] * 2) * (row[3] * 2) * anchor.height;
        }
      }
    });
    output += map.width * map.height * anchors * columns;
  }
  return {};
}

}  // namespace ferry::vision

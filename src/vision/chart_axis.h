// Where the marks of a chart's axis stand. Internal to vision.
#pragma once

#include <string>
#include <vector>

#include "vision/chart.h"

namespace ferry::vision {

struct Tick {
  double value = 0;
  std::string label;
};

// An axis with both ends known.
struct Scale {
  double low = 0, high = 1;  // low < high
  AxisScale kind = AxisScale::kLinear;

  // 0 at `low`, 1 at `high`; NaN for what a logarithm has no place for.
  double position(double value) const;
};

// Multiples of 1, 2 or 5 times a power of ten, about `wanted` of them, written with the digits that
// they need; powers of ten (and 2 and 5 times those, where there is room) on a logarithmic axis.
std::vector<Tick> number_ticks(const Scale& scale, int wanted);

// Every category, or every 2nd, 5th, 10th, … so that no more than `most` are there.
std::vector<Tick> category_ticks(const std::vector<std::string>& names, int most);

}  // namespace ferry::vision

#include "vision/chart_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace ferry::vision {
namespace {

std::string shown_number(double value, int digits) {
  if (value != 0 && (std::abs(value) >= 1e6 || std::abs(value) < 1e-4)) {
    return fmt::format("{:.4g}", value);
  }
  return fmt::format("{:.{}f}", value, std::max(digits, 0));
}

// The 1, 2 or 5 times a power of ten that is at least `step`.
double round_step(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::vector<Tick> linear_ticks(const Scale& scale, int wanted) {
  std::vector<Tick> ticks;
  const double step = round_step((scale.high - scale.low) / std::max(wanted, 1));
  if (!std::isnormal(step)) return ticks;
  const int digits = -static_cast<int>(std::floor(std::log10(step) + 1e-9));
  const double slack = 1e-9 * (scale.high - scale.low);
  const double first = std::ceil((scale.low - slack) / step);
  const double last = std::floor((scale.high + slack) / step);
  for (double k = first; k <= last && ticks.size() < 100; k += 1) {
    const double value = k == 0 ? 0 : k * step;  // no "-0"
    ticks.push_back({value, shown_number(value, digits)});
  }
  return ticks;
}

std::vector<Tick> log_ticks(const Scale& scale, int wanted) {
  const double low = std::log10(scale.low), high = std::log10(scale.high);
  const double decades = high - low;
  const auto every = static_cast<int>(std::max(1.0, std::ceil(decades / std::max(wanted, 1))));
  std::vector<double> factors = {1};
  if (decades * 3 <= wanted) factors = {1, 2, 5};
  std::vector<Tick> ticks;
  for (int exponent = static_cast<int>(std::floor(low)); exponent <= high + 1e-9; ++exponent) {
    if (exponent % every != 0) continue;
    for (const double factor : factors) {
      const double value = factor * std::pow(10, exponent);
      if (value < scale.low * (1 - 1e-9) || value > scale.high * (1 + 1e-9)) continue;
      ticks.push_back({value, shown_number(value, -exponent)});
    }
  }
  return ticks;
}

}  // namespace

double Scale::position(double value) const {
  if (kind == AxisScale::kLinear) return (value - low) / (high - low);
  if (!(value > 0)) return std::numeric_limits<double>::quiet_NaN();
  return std::log(value / low) / std::log(high / low);
}

std::vector<Tick> number_ticks(const Scale& scale, int wanted) {
  if (scale.kind == AxisScale::kLinear) return linear_ticks(scale, wanted);
  std::vector<Tick> ticks = log_ticks(scale, wanted);
  return ticks.size() >= 2 ? ticks : linear_ticks(scale, wanted);
}

std::vector<Tick> category_ticks(const std::vector<std::string>& names, int most) {
  size_t every = 1;
  const auto enough = [&] {
    return (names.size() + every - 1) / every <= size_t(std::max(most, 1));
  };
  for (size_t power = 1; !enough(); power *= 10) {
    for (const size_t factor : {2u, 5u, 10u}) {
      every = factor * power;
      if (enough()) break;
    }
  }
  std::vector<Tick> ticks;
  for (size_t i = 0; i < names.size(); i += every) {
    ticks.push_back({static_cast<double>(i), names[i]});
  }
  return ticks;
}

}  // namespace ferry::vision

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>

#include "data/labels.h"

namespace ferry::data {
namespace {

constexpr size_t kMaxRows = 100'000;    // of one picture
constexpr size_t kMaxColumns = 20'001;  // 10 000 points
// What a coordinate may leave the picture by: rounding of whoever wrote the file.
constexpr double kRounding = 1e-4;

std::optional<double> number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [at, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || at != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::vector<std::string_view> columns_of(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r\f\v";
  std::vector<std::string_view> columns;
  for (size_t begin = line.find_first_not_of(kBlank);
       begin != line.npos && columns.size() <= kMaxColumns;) {
    const size_t end = std::min(line.find_first_of(kBlank, begin), line.size());
    columns.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(kBlank, end);
  }
  return columns;
}

// The box around an outline.
void set_hull(Label& label, const std::vector<double>& polygon) {
  double x1 = 1, y1 = 1, x2 = 0, y2 = 0;
  for (size_t i = 0; i + 1 < polygon.size(); i += 2) {
    x1 = std::min(x1, polygon[i]);
    x2 = std::max(x2, polygon[i]);
    y1 = std::min(y1, polygon[i + 1]);
    y2 = std::max(y2, polygon[i + 1]);
  }
  label.x = (x1 + x2) / 2;
  label.y = (y1 + y2) / 2;
  label.width = x2 - x1;
  label.height = y2 - y1;
}

struct Judged {
  Label label;
  std::optional<Problem> problem;
};

Judged judge(const std::vector<std::string_view>& columns, int64_t classes) {
  const auto bad = [](std::string message) {
    return Judged{{}, Problem{Trouble::kBadRow, {}, std::move(message)}};
  };
  if (columns.size() > kMaxColumns)
    return bad(fmt::format("an outline of more than {} points", kMaxColumns / 2));
  const bool is_outline = columns.size() >= 7 && columns.size() % 2 == 1;
  if (columns.size() != 5 && !is_outline) {
    return bad(fmt::format(
        "{} columns{}; a box has 5 (class x y width height), an outline 7, 9, … "
        "(class and at least three points)",
        columns.size(), columns.size() == 6 ? " (a prediction's, with its score?)" : ""));
  }
  std::vector<double> values;
  for (const std::string_view column : columns) {
    const std::optional<double> value = number(column);
    if (!value) return bad(fmt::format("'{}' is not a finite number", column.substr(0, 40)));
    values.push_back(*value);
  }
  if (values[0] != std::floor(values[0]) || values[0] < 0 || values[0] > 1e6) {
    return bad(fmt::format("class {} is not a whole number from 0", columns[0].substr(0, 40)));
  }
  if (classes >= 0 && values[0] >= static_cast<double>(classes)) {
    return bad(fmt::format("class {}, but the classes are 0 to {}", columns[0].substr(0, 40),
                           classes - 1));
  }
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i] < -kRounding || values[i] > 1 + kRounding) {
      return bad(fmt::format("{} is outside of the picture: coordinates are parts of it, 0 to 1",
                             columns[i].substr(0, 40)));
    }
    values[i] = std::clamp(values[i], 0.0, 1.0);
  }
  Judged judged;
  judged.label.class_id = static_cast<int32_t>(values[0]);
  if (is_outline) {
    judged.label.polygons.emplace_back(values.begin() + 1, values.end());
    set_hull(judged.label, judged.label.polygons[0]);
  } else {
    judged.label.x = values[1];
    judged.label.y = values[2];
    judged.label.width = values[3];
    judged.label.height = values[4];
  }
  judged.problem = judge_box(judged.label, kRounding, kRounding);
  return judged;
}

}  // namespace

std::optional<Problem> judge_box(Label& label, double slack_x, double slack_y) {
  const auto bad = [](std::string message) {
    return Problem{Trouble::kBadRow, {}, std::move(message)};
  };
  if (label.width < 0 || label.height < 0) return bad("width or height is negative");
  if (label.width == 0 || label.height == 0)
    return Problem{Trouble::kZeroArea, {}, "the box has no area"};
  if (label.width > 1 + slack_x || label.height > 1 + slack_y) {
    return bad(
        fmt::format("the box is larger than the picture: {:.4g} of its width, {:.4g} of its "
                    "height",
                    label.width, label.height));
  }
  if (label.x < -slack_x || label.x > 1 + slack_x || label.y < -slack_y || label.y > 1 + slack_y) {
    return bad(fmt::format("the box's centre is outside of the picture, at {:.4g} {:.4g} of it",
                           label.x, label.y));
  }
  label.x = std::clamp(label.x, 0.0, 1.0);
  label.y = std::clamp(label.y, 0.0, 1.0);
  label.width = std::min(label.width, 1.0);
  label.height = std::min(label.height, 1.0);
  return std::nullopt;
}

std::optional<Problem> judge_pixel_box(Label& label, int64_t width, int64_t height) {
  const auto w = static_cast<double>(width), h = static_cast<double>(height);
  label.x /= w;
  label.y /= h;
  label.width /= w;
  label.height /= h;
  for (std::vector<double>& polygon : label.polygons)
    for (size_t i = 0; i < polygon.size(); ++i) polygon[i] /= i % 2 == 0 ? w : h;
  return judge_box(label, 1 / w, 1 / h);
}

Labels read_yolo_rows(std::string_view text, std::string_view where, int64_t classes) {
  Labels labels{.has_file = true};
  if (text.starts_with("\xEF\xBB\xBF")) {
    text.remove_prefix(3);
    labels.windows_text = true;
  }
  int64_t number_of_line = 0;
  std::set<std::tuple<int32_t, float, float, float, float>> seen;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number_of_line;
    if (line.ends_with('\r')) labels.windows_text = true;
    const std::vector<std::string_view> columns = columns_of(line);
    if (columns.empty()) continue;
    const auto place = [&] { return fmt::format("{}:{}", where, number_of_line); };
    if (labels.labels.size() + labels.problems.size() >= kMaxRows) {
      labels.problems.push_back({Trouble::kBadRow, place(),
                                 fmt::format("more than {} rows; the rest is left out", kMaxRows)});
      break;
    }
    Judged judged = judge(columns, classes);
    if (judged.problem) {
      judged.problem->where = place();
      labels.problems.push_back(*std::move(judged.problem));
      continue;
    }
    const Label& l = judged.label;
    if (!seen.insert({l.class_id, static_cast<float>(l.x), static_cast<float>(l.y),
                      static_cast<float>(l.width), static_cast<float>(l.height)})
             .second) {
      labels.problems.push_back({Trouble::kDuplicate, place(), "the same box again"});
      continue;
    }
    labels.labels.push_back(std::move(judged.label));
  }
  return labels;
}

}  // namespace ferry::data

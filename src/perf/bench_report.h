// What `ferry bench` measured, as text for people, Markdown, CSV and JSON.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "perf/bench.h"
#include "perf/machine.h"
#include "perf/peak.h"

namespace ferry::perf {

struct BenchRow {
  std::string model;        // as the user named it, without folder and extension: "yolov5n"
  std::string description;  // "YOLOv5 v6.0 or newer (…), …"
  int64_t height = 0, width = 0;
  std::string work = "network";  // or "end to end"
  RowResult result;
};

struct BenchRun {
  Machine machine;
  std::vector<Peak> peaks;  // one a number of threads
  std::vector<BenchRow> rows;
  std::string version, date, commit;  // ferry's; ISO 8601, UTC; as the user said, may be empty
};

std::string machine_text(const Machine& machine, std::span<const Peak> peaks);
std::string row_text(const BenchRow& row);          // a block for each engine
std::string table_text(std::span<const BenchRow>);  // all rows, aligned for a terminal
std::string markdown(const BenchRun& run);
std::string csv(const BenchRun& run);
std::string json_text(const BenchRun& run);                         // with every time
std::string record_line(const BenchRun& run, const BenchRow& row);  // one line; without the times

}  // namespace ferry::perf

// Timed spans as a file that chrome://tracing and Perfetto open: the Trace Event Format, with
// complete events ("X"), counters ("C") and names of threads ("M").
//
// Viewers nest the spans of one thread by what contains what, so times are kept as whole
// nanoseconds: a child that ends with its parent still does after printing.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace ferry::perf {

struct Span {
  std::string name = {};
  std::string category = {};  // what viewers filter by: "stage", "node"
  int64_t start_ns = 0;       // since the trace began
  int64_t duration_ns = 0;
  int thread = 1;
  std::map<std::string, std::string> texts = {};  // shown when the span is selected
  std::map<std::string, double> numbers = {};
};

// A value that changes over time.
struct Counter {
  std::string name = {};
  int64_t time_ns = 0;
  double value = 0;
};

struct Trace {
  std::string process = {};                 // its name in the viewer
  std::map<int, std::string> threads = {};  // number: name
  std::map<std::string, std::string> about = {};
  std::vector<Span> spans = {};
  std::vector<Counter> counters = {};
};

// One JSON object; times in microseconds, as the format wants them.
std::string trace_json(const Trace& trace);

}  // namespace ferry::perf

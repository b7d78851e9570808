// What `ferry inspect` knows about a model file, and the two forms in which it says it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "import/model.h"

namespace ferry::cli {

struct InspectedFile {
  std::string path = {};
  int64_t bytes = 0;
  std::string sha256 = {};  // hexadecimal
};

struct Totals {
  int64_t nodes = 0;
  int64_t params = 0;  // elements of the floating constants that nodes use, each counted once
  int64_t macs = 0;    // of one run of the graph at its input size, batch included
  double gflops = 0;   // as Ultralytics prints them: two per multiply-add, of one picture
};

Totals totals_of(const import::Model& model);

// Lines for people.
std::string text_report(const InspectedFile& file, const import::Model& model);
// One JSON object.
std::string json_report(const InspectedFile& file, const import::Model& model);
// For a file that is no model: {"file", "bytes", "sha256", "error"}.
std::string json_refusal(const InspectedFile& file, std::string_view why);

}  // namespace ferry::cli

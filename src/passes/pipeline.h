// The list of passes, run in order, each timed, switchable by name and followed by the verifier.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"

namespace ferry::passes {

struct PassOptions {
  std::vector<std::string> disable = {};  // names of passes to leave out
  std::vector<std::string> dump =
      {};  // names of passes to print the graph before and after; "all" for every one
  // (optional) Takes what `dump` prints; null: standard error.
  std::function<void(std::string_view)> print = {};
};

struct PassRun {
  std::string_view name;
  bool disabled = false;
  double ms = 0;  // the pass alone, without verifier and dump
  int rewrites = 0;
  int nodes_before = 0, nodes_after = 0;
};

struct PassReport {
  std::vector<PassRun> runs;  // in order
  int rewrites() const;
};

std::vector<std::string_view> pass_names();  // in the order they run

// Rewrites `graph` for speed; what it computes stays the same (up to the rounding of reordered
// sums). REQUIRES: verify(graph).ok(). Fails for names that no pass has (the message lists those
// that exist); after another failure, which is a bug in a pass, the graph is not to be used.
Result<PassReport> optimise(graph::Graph& graph, const PassOptions& options = {});

}  // namespace ferry::passes

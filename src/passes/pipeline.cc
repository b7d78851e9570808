#include "passes/pipeline.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>

#include "graph/text.h"
#include "passes/passes.h"
#include "passes/recognise_detect.h"

namespace ferry::passes {

using graph::Graph;

namespace {

// The passes in their order. `pass(name, function)` runs one, or only notes its name.
template <class Pass>
Status list(Pass&& pass) {
  // Here the graph is what the file says, spelled as its exporter spells.
  FERRY_CHECK_OK(pass("fold_constants", fold_constants));
  FERRY_CHECK_OK(pass("remove_no_ops", remove_no_ops));
  FERRY_CHECK_OK(pass("share_duplicates", share_duplicates));
  FERRY_CHECK_OK(pass("recognise_detect", recognise_detect));
  // From here on every value is computed once, and the head is one node, whatever its exporter
  // wrote.

  FERRY_CHECK_OK(pass("recognise_activations", recognise_activations));
  FERRY_CHECK_OK(pass("recognise_focus", recognise_focus));
  FERRY_CHECK_OK(pass("flatten_concat", flatten_concat));
  // From here on spelling no longer matters: an activation is one node, whoever exported it.

  FERRY_CHECK_OK(pass("focus_to_conv", focus_to_conv));
  FERRY_CHECK_OK(pass("distribute_over_concat", distribute_over_concat));
  FERRY_CHECK_OK(pass("fold_batch_norm", fold_batch_norm));
  // From here on no batch norm stands behind a convolution: weights change only by being joined,
  // split or rearranged.

  FERRY_CHECK_OK(pass("chain_max_pools", chain_max_pools));
  FERRY_CHECK_OK(pass("fuse_activation", fuse_activation));
  // From here on a convolution knows its activation, so that two of them can be compared.

  FERRY_CHECK_OK(pass("merge_siblings", merge_siblings));
  // From here on no convolution is joined with another; behind a concat one 1x1 convolution reads
  // where two did.

  FERRY_CHECK_OK(pass("fold_upsample", fold_upsample));
  FERRY_CHECK_OK(pass("fuse_residual", fuse_residual));
  // From here on a convolution's epilogue is fixed: bias, residual, activation.

  FERRY_CHECK_OK(pass("remove_dead", remove_dead));
  // Every node that is left is needed. Layouts, placement of concats and memory are the device's
  // plan.
  return {};
}

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

bool names(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

Status check_names(const std::vector<std::string>& wanted, bool all) {
  const std::vector<std::string_view> known = pass_names();
  for (const std::string& name : wanted) {
    if (all && name == "all") continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string text;
    for (const std::string_view k : known) text += (text.empty() ? "" : ", ") + std::string(k);
    return error(Code::kNotFound, "there is no pass '{}'; the passes are {}", name, text);
  }
  return {};
}

void print_graph(const PassOptions& options, std::string_view when, std::string_view name,
                 const Graph& graph) {
  const std::string text =
      fmt::format("# {} {}\n{}", when, name, graph::print(graph, graph::ConstantText::kElided));
  if (options.print) {
    options.print(text);
  } else {
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
}

}  // namespace

std::vector<std::string_view> pass_names() {
  std::vector<std::string_view> out;
  const Status status = list([&](std::string_view name, auto) {
    out.push_back(name);
    return Status();
  });
  FERRY_ASSERT(status.ok(), "noting a name does not fail");
  return out;
}

int PassReport::rewrites() const {
  return std::accumulate(runs.begin(), runs.end(), 0,
                         [](int sum, const PassRun& run) { return sum + run.rewrites; });
}

Result<PassReport> optimise(Graph& graph, const PassOptions& options) {
  FERRY_CHECK_OK(check_names(options.disable, false));
  FERRY_CHECK_OK(check_names(options.dump, true));
  PassReport report;
  FERRY_CHECK_OK(list([&](std::string_view name, Result<int> (*pass)(Graph&)) -> Status {
    PassRun run{.name = name, .disabled = names(options.disable, name)};
    run.nodes_before = run.nodes_after = static_cast<int>(graph.nodes.size());
    if (!run.disabled) {
      const bool dump = names(options.dump, name) || names(options.dump, "all");
      if (dump) print_graph(options, "before", name, graph);
      const auto start = std::chrono::steady_clock::now();
      FERRY_TRY(rewrites, pass(graph).within(name));
      run.ms = ms_since(start);
      run.rewrites = rewrites;
      run.nodes_after = static_cast<int>(graph.nodes.size());
      if (dump) print_graph(options, "after", name, graph);
      if (Status status = verify(graph); !status.ok()) {
        return error(Code::kBug, "pass '{}' broke the graph: {}", name, status.error().message);
      }
    }
    report.runs.push_back(run);
    return {};
  }));
  return report;
}

}  // namespace ferry::passes

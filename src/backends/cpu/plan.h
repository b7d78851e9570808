// A compiled graph and what runs it: a plan holds steps and packed weights and is shared; a context
// holds the memory of one stream of frames. These are the C ABI's ferry_device, ferry_plan and
// ferry_context (entry.cc).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/isa.h"
#include "backends/cpu/lowering.h"
#include "backends/cpu/placement.h"
#include "backends/cpu/weights.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "ferry/backend.h"

namespace ferry::cpu {

struct Device {
  explicit Device(int threads) : pool(threads) {}
  ThreadPool pool;  // shared by every context
  WeightCache weights;
  Isa isa = best_isa();
};

class Plan {
 public:
  // The graph must outlive the plan; see ferry_backend::compile.
  static Result<std::unique_ptr<Plan>> compile(Device& device, const ferry_host& host,
                                               const ferry_graph& graph, bool tune);

  struct StepRow {
    int node = 0;
    std::unique_ptr<Step> step;
  };
  struct Io {
    int64_t offset = 0;  // bytes from the arena's start
    int32_t value = 0;
    int32_t layout = FERRY_ROW_MAJOR;
  };

  Device& device;
  const ferry_graph& graph;
  std::vector<StepRow> steps;
  std::vector<Io> inputs, outputs;
  int64_t arena_bytes = 0;  // activations, and behind them the scratch memory of the steps
  int64_t scratch_offset = 0;
  int64_t peak_bytes = 0;
  std::vector<bool> keeps_constant;  // per value: evaluated by the host, so its bytes must stay

 private:
  Plan(Device& d, const ferry_graph& g) : device(d), graph(g) {}
};

class Context {
 public:
  static Result<std::unique_ptr<Context>> create(const Plan& plan);

  // Milliseconds of each step go to `step_ms` (optional). Fails only where the host evaluates a
  // step; it knows why.
  ferry_code run(double* step_ms);
  std::byte* at(int64_t offset) const { return memory_.data() + offset; }
  const Plan& plan() const { return plan_; }

 private:
  explicit Context(const Plan& plan)
      : plan_(plan), memory_(static_cast<size_t>(plan.arena_bytes)) {}
  const Plan& plan_;
  AlignedBytes memory_;
};

}  // namespace ferry::cpu

// How a node becomes a step with fast kernels: one row a file in src/backends/cpu/lower. A node
// that no row takes is evaluated by the host's reference loops, so a new op works before it is
// fast.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels/activation.h"
#include "backends/cpu/kernels/storage.h"
#include "backends/cpu/kernels/view.h"
#include "backends/cpu/node.h"
#include "backends/cpu/weights.h"
#include "base/thread_pool.h"

namespace ferry::cpu {

// What a step runs on: a context's memory, and the device's threads.
struct RunArgs {
  std::byte* arena;
  std::byte* scratch;
  ThreadPool& pool;
};

// Where a picture lies: an offset in the arena and the shape of the view.
struct PictureRef {
  int64_t offset = 0;  // bytes
  int64_t batch = 0, h = 0, w = 0, c = 0;
  int64_t stride = 0;  // elements a pixel
  Storage storage{};

  // REQUIRES: kept as floats
  View in(std::byte* arena) const {
    return {reinterpret_cast<float*>(arena + offset), batch, h, w, c, stride};
  }
  StoredView stored(std::byte* arena) const {
    return {arena + offset, batch, h, w, c, stride, storage};
  }
};

// One step of a plan. Immutable; contexts run it at the same time on their own memory.
class Step {
 public:
  virtual ~Step() = default;
  virtual void run(const RunArgs& args) const = 0;
  virtual int64_t weight_bytes() const { return 0; }

  std::string kernel;        // for profiles
  size_t scratch_bytes = 0;  // of RunArgs::scratch
  int64_t layout_bytes = 0;  // of ferry_step
};

// What a lowering may ask the plan that is being made.
class LowerContext {
 public:
  virtual ~LowerContext() = default;
  virtual PictureRef picture(int32_t value) const = 0;  // REQUIRES: the value is a placed picture
  virtual WeightCache& weights() = 0;
  virtual Isa isa() const = 0;
  virtual ThreadPool& pool() = 0;
  virtual bool tune() const = 0;  // time candidates instead of choosing by rule
};

struct Lowering {
  std::span<const std::string_view> ops;
  // Can this node be lowered? Sees types and attributes only. Its computed inputs and its outputs
  // become pictures; an input that is not taken as a picture must be constant or absent.
  bool (*accepts)(const NodeRef& node);
  // Index of the input that output 0 may overwrite element by element, or -1. (optional)
  int (*in_place)(const NodeRef& node) = nullptr;
  // The step; null when nothing is left to do (a view). REQUIRES: accepts().
  std::unique_ptr<Step> (*lower)(const NodeRef& node, LowerContext& context) = nullptr;
};

std::span<const Lowering* const> lowering_table();  // generated: the folder is the table

// Which activation the node's attributes `activation` and `alpha` ask for; nullopt when no kernel
// has it.
std::optional<Activation> activation_of(std::string_view name, double alpha);

}  // namespace ferry::cpu

// Compiling, top down: which nodes have kernels -> which values are NHWC pictures -> where
// everything lies (placement.h) -> one step a node, with its weights packed. Nodes without a kernel
// become a HostStep.
#include "backends/cpu/plan.h"

#include <algorithm>
#include <chrono>

#include "backends/cpu/kernels/eltwise.h"

namespace ferry::cpu {
namespace {

const Lowering* find_lowering(const NodeRef& node) {
  for (const Lowering* row : lowering_table()) {
    if (std::ranges::find(row->ops, node.op()) != row->ops.end())
      return row->accepts(node) ? row : nullptr;
  }
  return nullptr;
}

// A node evaluated by ferry's reference loops, on row-major copies of its pictures.
class HostStep final : public Step {
 public:
  struct Operand {
    const void* constant = nullptr;
    int64_t offset = -1;                // row-major bytes in the arena; -1 with no constant: absent
    std::optional<PictureRef> picture;  // lies as NHWC: copied through scratch
    int64_t scratch_offset = 0;
  };

  HostStep(const ferry_host& host, const ferry_graph& graph, int node, Isa isa)
      : host_(host), graph_(graph), node_(node), isa_(isa) {
    kernel = "reference";
  }

  void run(const RunArgs& args) const override {
    std::vector<const void*> in;
    std::vector<void*> out;
    for (const Operand& operand : inputs) {
      if (operand.picture) {
        nhwc_to_nchw(operand.picture->stored(args.arena), scratch(args, operand), isa_, args.pool);
      }
      in.push_back(operand.constant ? operand.constant : address(args, operand));
    }
    for (const Operand& operand : outputs) out.push_back(address(args, operand));
    status_ = host_.evaluate(&graph_, node_, in.data(), out.data());
    for (const Operand& operand : outputs) {
      if (operand.picture)
        nchw_to_nhwc(scratch(args, operand), operand.picture->stored(args.arena), isa_, args.pool);
    }
  }

  static ferry_code take_status() { return std::exchange(status_, FERRY_OK); }

  std::vector<Operand> inputs, outputs;

 private:
  static float* scratch(const RunArgs& args, const Operand& operand) {
    return reinterpret_cast<float*>(args.scratch + operand.scratch_offset);
  }
  static void* address(const RunArgs& args, const Operand& operand) {
    if (operand.picture) return scratch(args, operand);
    return operand.offset < 0 ? nullptr : args.arena + operand.offset;
  }

  const ferry_host& host_;
  const ferry_graph& graph_;
  int node_;
  Isa isa_;
  static thread_local ferry_code status_;  // of this thread's last host evaluation
};

thread_local ferry_code HostStep::status_ = FERRY_OK;

int64_t aligned(int64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

class Compiler final : public LowerContext {
 public:
  Compiler(Device& device, const ferry_host& host, const ferry_graph& graph, bool tune)
      : device_(device), host_(host), graph_(graph), tune_(tune) {}

  Status run(Plan& plan) {
    choose_lowerings();
    choose_pictures();
    FERRY_CHECK_OK(check_storages());
    placement_ = place(values_, steps_);
    plan.keeps_constant.resize(static_cast<size_t>(graph_.value_count), false);
    int64_t scratch = 0;
    for (int n = 0; n < graph_.node_count; ++n) {
      const NodeRef node{&graph_, n};
      const Lowering* row = lowerings_[static_cast<size_t>(n)];
      std::unique_ptr<Step> step;
      if (row != nullptr) {
        step = row->lower(node, *this);
        if (step == nullptr && !is_view(node)) {
          return error(Code::kNoMemory, "{} '{}': no memory for its weights", node.op(),
                       node.name());
        }
      } else {
        step = host_step(node, plan.keeps_constant);
      }
      release_constants(n, plan.keeps_constant);
      if (step == nullptr) continue;
      scratch = std::max(scratch, static_cast<int64_t>(step->scratch_bytes));
      plan.steps.push_back({n, std::move(step)});
    }
    for (int i = 0; i < graph_.input_count; ++i) plan.inputs.push_back(io(graph_.inputs[i]));
    for (int i = 0; i < graph_.output_count; ++i) plan.outputs.push_back(io(graph_.outputs[i]));
    plan.scratch_offset = placement_.arena_bytes;
    plan.arena_bytes = placement_.arena_bytes + scratch;
    plan.peak_bytes = placement_.peak_bytes;
    return {};
  }

  // LowerContext
  PictureRef picture(int32_t value) const override {
    const ferry_value& v = *graph_.values[value];
    const Spot& spot = placement_.spots[static_cast<size_t>(value)];
    return {.offset = offset(value),
            .batch = v.dims[0],
            .h = v.dims[2],
            .w = v.dims[3],
            .c = v.dims[1],
            .stride = spot.stride,
            .storage = storage_of(v)};
  }
  WeightCache& weights() override { return device_.weights; }
  Isa isa() const override { return device_.isa; }
  ThreadPool& pool() override { return device_.pool; }
  bool tune() const override { return tune_; }

 private:
  void choose_lowerings() {
    for (int n = 0; n < graph_.node_count; ++n) lowerings_.push_back(find_lowering({&graph_, n}));
  }

  static bool is_view(const NodeRef& node) {
    return node.op() == "concat" || node.op() == "split" || node.op() == "identity";
  }

  // Constants that node `n` was the last to use and that are packed now.
  void release_constants(int n, const std::vector<bool>& keeps_constant) {
    if (last_use_.empty()) {
      last_use_.resize(static_cast<size_t>(graph_.value_count), -1);
      for (int i = 0; i < graph_.node_count; ++i) {
        for (const int32_t id : NodeRef{&graph_, i}.inputs()) {
          if (id >= 0) last_use_[static_cast<size_t>(id)] = i;
        }
      }
    }
    for (const int32_t id : NodeRef{&graph_, n}.inputs()) {
      if (id < 0 || !is_constant(*graph_.values[id])) continue;
      if (last_use_[static_cast<size_t>(id)] == n && !keeps_constant[static_cast<size_t>(id)]) {
        host_.constant_done(&graph_, id);
      }
    }
  }

  // A value is kept as NHWC where a kernel reads or writes it; between two host evaluations it
  // stays row-major.
  void choose_pictures() {
    values_.resize(static_cast<size_t>(graph_.value_count));
    const auto touch = [&](int32_t id, bool kernel) {
      if (id < 0 || is_constant(*graph_.values[id])) return;
      PlacedValue& v = values_[static_cast<size_t>(id)];
      v.needed = true;
      const ferry_value& c = *graph_.values[id];
      v.picture = v.picture || (is_picture(c) && (kernel || c.storage != FERRY_F32));
    };
    for (int n = 0; n < graph_.node_count; ++n) {
      const NodeRef node{&graph_, n};
      const bool kernel = lowerings_[static_cast<size_t>(n)] != nullptr;
      for (const int32_t id : node.inputs()) touch(id, kernel);
      for (const int32_t id : node.outputs()) touch(id, kernel);
    }
    for (int i = 0; i < graph_.input_count; ++i) {
      touch(graph_.inputs[i], false);
      value(graph_.inputs[i]).input = value(graph_.inputs[i]).pinned = true;
    }
    for (int i = 0; i < graph_.output_count; ++i) {
      const int32_t id = graph_.outputs[i];
      if (is_constant(*graph_.values[id])) continue;
      touch(id, false);
      value(id).output = value(id).pinned = true;
    }
    for (int32_t id = 0; id < graph_.value_count; ++id) {
      const ferry_value& v = *graph_.values[id];
      PlacedValue& placed = value(id);
      placed.bytes = elements(v) * element_size(v.dtype);
      if (!placed.picture) continue;
      placed.pixels = v.dims[0] * v.dims[2] * v.dims[3];
      placed.channels = v.dims[1];
      placed.element_bytes = element_bytes(storage_of(v).dtype);
      const auto known = std::ranges::find(storages_, storage_of(v));
      placed.storage = static_cast<int>(known - storages_.begin());
      if (known == storages_.end()) storages_.push_back(storage_of(v));
    }
    for (int n = 0; n < graph_.node_count; ++n) steps_.push_back(placed_step({&graph_, n}));
  }

  // Only pictures have kernels that read other storages than floats.
  Status check_storages() {
    for (int32_t id = 0; id < graph_.value_count; ++id) {
      const ferry_value& v = *graph_.values[id];
      if (!value(id).needed || value(id).picture || v.dtype != FERRY_F32) continue;
      if (v.storage == FERRY_F32) continue;
      return error(Code::kUnsupported, "value '{}' is no picture, so it can only be kept as fp32",
                   v.name);
    }
    return {};
  }

  PlacedStep placed_step(const NodeRef& node) {
    PlacedStep step;
    const Lowering* row = lowerings_[static_cast<size_t>(node.index)];
    for (const int32_t id : node.inputs()) {
      if (id >= 0 && !is_constant(*graph_.values[id])) step.reads.push_back(id);
    }
    step.writes.assign(node.outputs().begin(), node.outputs().end());
    if (row == nullptr) return step;
    if (node.op() == "concat") step.kind = PlacedStep::Kind::kConcat;
    if (node.op() == "split") step.kind = PlacedStep::Kind::kSplit;
    const int in_place = row->in_place ? row->in_place(node) : -1;
    if (in_place < 0) return step;
    const int32_t id = node.inputs()[static_cast<size_t>(in_place)];
    // conv(x) + x reads x's neighbourhood too: then it must stay.
    if (std::ranges::count(node.inputs(), id) == 1) step.in_place = id;
    return step;
  }

  std::unique_ptr<Step> host_step(const NodeRef& node, std::vector<bool>& keeps_constant) {
    auto step = std::make_unique<HostStep>(host_, graph_, node.index, device_.isa);
    int64_t scratch = 0;
    const auto operand = [&](int32_t id) {
      HostStep::Operand out;
      if (id < 0) return out;
      if (is_constant(*graph_.values[id])) {
        keeps_constant[static_cast<size_t>(id)] = true;
        out.constant = graph_.values[id]->data;
      } else if (value(id).picture) {
        out.picture = picture(id);
        out.scratch_offset = scratch;
        scratch += aligned(value(id).bytes);
        step->layout_bytes += 2 * value(id).bytes;
      } else {
        out.offset = offset(id);
      }
      return out;
    };
    for (const int32_t id : node.inputs()) step->inputs.push_back(operand(id));
    for (const int32_t id : node.outputs()) step->outputs.push_back(operand(id));
    step->scratch_bytes = static_cast<size_t>(scratch);
    return step;
  }

  Plan::Io io(int32_t id) {
    return {.offset = is_constant(*graph_.values[id]) ? -1 : offset(id),
            .value = id,
            .layout = value(id).picture ? FERRY_NHWC : FERRY_ROW_MAJOR};
  }

  int64_t offset(int32_t id) const {
    const Spot& spot = placement_.spots[static_cast<size_t>(id)];
    return placement_.buffer_offsets[static_cast<size_t>(spot.buffer)] +
           spot.channel * values_[static_cast<size_t>(id)].element_bytes;
  }

  PlacedValue& value(int32_t id) { return values_[static_cast<size_t>(id)]; }

  Device& device_;
  const ferry_host& host_;
  const ferry_graph& graph_;
  bool tune_;
  std::vector<const Lowering*> lowerings_;  // per node; null: evaluated by the host
  std::vector<PlacedValue> values_;
  std::vector<Storage> storages_;  // of pictures, each once
  std::vector<PlacedStep> steps_;
  std::vector<int> last_use_;  // per value: the last node that reads it
  Placement placement_;
};

}  // namespace

int64_t element_size(int32_t dtype) {
  switch (static_cast<ferry_dtype>(dtype)) {
    case FERRY_F64:
    case FERRY_I64:
      return 8;
    case FERRY_F32:
    case FERRY_I32:
      return 4;
    case FERRY_F16:
    case FERRY_BF16:
    case FERRY_I16:
    case FERRY_U16:
      return 2;
    case FERRY_I8:
    case FERRY_U8:
    case FERRY_BOOL:
      return 1;
  }
  return 0;
}

Result<std::unique_ptr<Plan>> Plan::compile(Device& device, const ferry_host& host,
                                            const ferry_graph& graph, bool tune) {
  std::unique_ptr<Plan> plan(new Plan(device, graph));
  FERRY_CHECK_OK(Compiler(device, host, graph, tune).run(*plan));
  return plan;
}

Result<std::unique_ptr<Context>> Context::create(const Plan& plan) {
  std::unique_ptr<Context> context(new Context(plan));
  if (context->memory_.data() == nullptr) {
    return error(Code::kNoMemory, "no memory for a context of {} MiB", plan.arena_bytes >> 20);
  }
  return context;
}

ferry_code Context::run(double* step_ms) {
  const RunArgs args{memory_.data(), memory_.data() + plan_.scratch_offset, plan_.device.pool};
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const auto start =
        step_ms ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
    plan_.steps[i].step->run(args);
    if (step_ms) {
      step_ms[i] =
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
              .count();
    }
    if (const ferry_code code = HostStep::take_status(); code != FERRY_OK) return code;
  }
  return FERRY_OK;
}

}  // namespace ferry::cpu

// The CPU's row of the backend ABI: C functions over Device, Plan and Context.
#include <string>

#include "backends/cpu/entry.h"
#include "backends/cpu/plan.h"

using ferry::Code;
using ferry::cpu::Context;
using ferry::cpu::Device;
using ferry::cpu::Plan;

struct ferry_device : Device {
  explicit ferry_device(int threads)
      : Device(threads),
        text(fmt::format("{}, {} thread{}", isa_name(isa), pool.threads(),
                         pool.threads() == 1 ? "" : "s")) {}
  std::string text;
};
struct ferry_plan {
  std::unique_ptr<Plan> plan;
};
struct ferry_context {
  std::unique_ptr<Context> context;
};

namespace {

const ferry_host* g_host = nullptr;  // set once, by the entry

ferry_code fail(const ferry::Error& error) {
  g_host->set_error(error.message.c_str());
  return static_cast<ferry_code>(static_cast<int>(error.code) + 1);
}

int32_t device_count() { return 1; }

ferry_code device_open(const ferry_device_options* options, ferry_device** device) {
  if (options->index != 0) {
    return fail(ferry::error(
        Code::kNotFound, "there is one CPU device, cpu:0; cpu:{} was asked for", options->index));
  }
  *device = new ferry_device(options->threads);
  return FERRY_OK;
}

void device_close(ferry_device* device) { delete device; }

const char* device_text(const ferry_device* device) { return device->text.c_str(); }

ferry_code supports(ferry_device*, const ferry_graph* graph, const char** reasons) {
  for (int i = 0; i < graph->node_count; ++i)
    reasons[i] = nullptr;  // the reference loops do what no kernel does
  return FERRY_OK;
}

ferry_code compile(ferry_device* device, const ferry_graph* graph,
                   const ferry_compile_options* options, ferry_plan** out) {
  auto plan = Plan::compile(*device, *g_host, *graph, options->tune == FERRY_TUNE_FAST);
  if (!plan.ok()) return fail(plan.error());
  *out = new ferry_plan{*std::move(plan)};
  return FERRY_OK;
}

void plan_free(ferry_plan* plan) { delete plan; }

int32_t plan_uses_constant(const ferry_plan* plan, int32_t value) {
  return plan->plan->keeps_constant[static_cast<size_t>(value)];
}

void plan_info(const ferry_plan* plan, ferry_plan_info* info) {
  *info = {.size = sizeof(ferry_plan_info),
           .weight_bytes = 0,
           .context_bytes = plan->plan->arena_bytes,
           .peak_bytes = plan->plan->peak_bytes,
           .step_count = static_cast<int32_t>(plan->plan->steps.size())};
  for (const Plan::StepRow& row : plan->plan->steps) info->weight_bytes += row.step->weight_bytes();
}

void plan_step(const ferry_plan* plan, int32_t index, ferry_step* step) {
  const Plan::StepRow& row = plan->plan->steps[static_cast<size_t>(index)];
  const ferry::cpu::NodeRef node{&plan->plan->graph, row.node};
  int64_t bytes = 0;
  const auto count = [&](const ferry_value& value) {
    bytes += ferry::cpu::elements(value) * ferry::cpu::element_size(value.storage);
  };
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    if (node.input(i) != nullptr) count(*node.input(i));
  }
  for (size_t i = 0; i < node.outputs().size(); ++i) count(node.output(i));
  const bool reads = !node.inputs().empty() && node.input(0) != nullptr;
  const ferry_value& first = reads ? *node.input(0) : node.output(0);
  *step = {.size = sizeof(ferry_step),
           .node = node.node().name,
           .op = node.node().op,
           .kernel = row.step->kernel.c_str(),
           .macs = node.node().macs,
           .bytes = bytes,
           .dtype = first.storage,
           .layout_bytes = row.step->layout_bytes};
}

ferry_code context_new(ferry_plan* plan, ferry_context** out) {
  auto context = Context::create(*plan->plan);
  if (!context.ok()) return fail(context.error());
  *out = new ferry_context{*std::move(context)};
  return FERRY_OK;
}

void context_free(ferry_context* context) { delete context; }

void describe(const Context& context, const Plan::Io& row, ferry_io* io) {
  const ferry_value& value = *context.plan().graph.values[row.value];
  void* data = row.offset >= 0 ? context.at(row.offset) : const_cast<void*>(value.data);
  *io = {.size = sizeof(ferry_io),
         .data = data,
         .dtype = data == value.data ? value.dtype : value.storage,
         .layout = row.layout,
         .rank = value.rank,
         .dims = value.dims,
         .scale = value.storage == FERRY_U8 && value.scale_count == 1 ? value.scales[0] : 1.0f,
         .zero_point = value.zero_point};
}

void context_input(ferry_context* context, int32_t index, ferry_io* io) {
  describe(*context->context, context->context->plan().inputs[static_cast<size_t>(index)], io);
}

void context_output(ferry_context* context, int32_t index, ferry_io* io) {
  describe(*context->context, context->context->plan().outputs[static_cast<size_t>(index)], io);
}

ferry_code run_timed(ferry_context* context, double* step_ms) {
  return context->context->run(step_ms);
}

ferry_code run(ferry_context* context) { return run_timed(context, nullptr); }

const ferry_backend kBackend = {
    .size = sizeof(ferry_backend),
    .abi = FERRY_BACKEND_ABI,
    .name = "cpu",
    .version = "1",
    .device_count = device_count,
    .device_open = device_open,
    .device_close = device_close,
    .device_text = device_text,
    .supports = supports,
    .compile = compile,
    .plan_free = plan_free,
    .plan_uses_constant = plan_uses_constant,
    .plan_info = plan_info,
    .plan_step = plan_step,
    .context_new = context_new,
    .context_free = context_free,
    .context_input = context_input,
    .context_output = context_output,
    .run = run,
    .run_timed = run_timed,
    .query = nullptr,
};

}  // namespace

const ferry_backend* ferry_cpu_backend_entry(const ferry_host* host) {
  g_host = host;
  return &kBackend;
}

#include "runtime/device.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <thread>

#include "backends/cpu/entry.h"
#include "graph/op_def.h"

namespace ferry::runtime {
namespace {

thread_local std::string last_error;  // what a backend said through set_error on this thread

void set_error(const char* message) { last_error = message; }

ferry_code to_code(const Error& error) {
  last_error = error.message;
  return static_cast<ferry_code>(static_cast<int>(error.code) + 1);
}

Status to_status(ferry_code code) {
  if (code == FERRY_OK) return {};
  std::string message = std::exchange(last_error, {});
  if (message.empty())
    message = fmt::format("the backend failed with code {} and no reason", static_cast<int>(code));
  return Error{static_cast<Code>(code - 1), std::move(message)};
}

// ferry_host::evaluate: tensors over the backend's memory, one node.
ferry_code evaluate(const ferry_graph* c, int32_t index, const void* const* inputs,
                    void* const* outputs) {
  const graph::Graph& graph = CGraph::of(c).graph();
  const graph::Node& node = graph.nodes[static_cast<size_t>(index)];
  std::vector<graph::Tensor> in, out;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const bool absent = node.inputs[i] == graph::kNone;
    in.push_back(absent
                     ? graph::Tensor()
                     : graph::Tensor::view(graph.value(node.inputs[i]).type, nullptr, inputs[i]));
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    out.push_back(graph::Tensor::view(graph.value(node.outputs[i]).type, nullptr, outputs[i]));
    std::memset(outputs[i], 0, out.back().bytes().size());  // as EvalArgs promises
  }
  std::vector<const graph::Tensor*> in_pointers;
  std::vector<graph::Tensor*> out_pointers;
  for (size_t i = 0; i < in.size(); ++i)
    in_pointers.push_back(node.inputs[i] == graph::kNone ? nullptr : &in[i]);
  for (graph::Tensor& tensor : out) out_pointers.push_back(&tensor);
  const Status status = node.op->eval({node, in_pointers, out_pointers});
  return status.ok() ? FERRY_OK : to_code(status.error());
}

// ferry_host::constant_done. A constant that is an output of the graph stays.
void constant_done(const ferry_graph* c, int32_t value) {
  CGraph& graph = CGraph::of(c);
  if (!graph::is_output(graph.graph(), value)) graph.release_constant(value);
}

constexpr ferry_host kHost = {sizeof(ferry_host), FERRY_BACKEND_ABI, set_error, evaluate,
                              constant_done};

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
  return std::max(1u, std::thread::hardware_concurrency());
}

struct Backend {
  std::string_view name;
  const ferry_backend* (*entry)(const ferry_host*);
};
constexpr Backend kBackends[] = {{"cpu", ferry_cpu_backend_entry}};

std::span<const int64_t> dims(const ferry_io& io) {
  return {io.dims, static_cast<size_t>(io.rank)};
}

// Element `i` of a buffer, which keeps floats as its dtype says.
void put_element(const ferry_io& io, int64_t i, float value) {
  if (io.dtype == FERRY_U8) {
    const float q = std::nearbyint(value / io.scale) + static_cast<float>(io.zero_point);
    static_cast<uint8_t*>(io.data)[i] =
        static_cast<uint8_t>(std::isnan(q) ? io.zero_point : std::clamp(q, 0.0f, 255.0f));
  } else if (io.dtype == FERRY_BF16) {
    static_cast<uint16_t*>(io.data)[i] = graph::f32_to_bf16(value);
  } else {
    static_cast<float*>(io.data)[i] = value;
  }
}

float get_element(const ferry_io& io, int64_t i) {
  if (io.dtype == FERRY_U8)
    return static_cast<float>(static_cast<const uint8_t*>(io.data)[i] - io.zero_point) * io.scale;
  if (io.dtype == FERRY_BF16) return graph::bf16_to_f32(static_cast<const uint16_t*>(io.data)[i]);
  return static_cast<const float*>(io.data)[i];
}

// Calls move(row-major index, buffer index) for every element of a picture.
template <class Move>
void each_nhwc(const ferry_io& io, Move move) {
  const int64_t batch = io.dims[0], c = io.dims[1], h = io.dims[2], w = io.dims[3];
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t k = 0; k < c; ++k) {
      for (int64_t p = 0; p < h * w; ++p) move((n * c + k) * h * w + p, (n * h * w + p) * c + k);
    }
  }
}

}  // namespace

Result<std::shared_ptr<Device>> Device::open(std::string_view name, DeviceOptions options) {
  const size_t colon = name.find(':');
  const std::string_view kind = name.substr(0, colon);
  int index = 0;
  if (colon != std::string_view::npos) {
    const std::string_view digits = name.substr(colon + 1);
    const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (failed != std::errc() || end != digits.data() + digits.size()) {
      return error(Code::kInvalid, "device '{}': write it like cpu or cpu:0", name);
    }
  }
  const auto* row = std::ranges::find(kBackends, kind, &Backend::name);
  if (row == std::end(kBackends)) {
    return error(Code::kNotFound, "device '{}': this build has no such backend; it has cpu", name);
  }
  last_error.clear();
  const ferry_backend* backend = row->entry(&kHost);
  if (backend == nullptr) return error(Code::kDevice, "device '{}': {}", name, last_error);
  if (backend->abi != FERRY_BACKEND_ABI) {
    return error(Code::kUnsupported, "device '{}': the backend speaks ABI {}, this ferry {}", name,
                 backend->abi, FERRY_BACKEND_ABI);
  }
  const ferry_device_options c_options = {
      sizeof c_options, index, options.threads > 0 ? options.threads : usable_processors()};
  ferry_device* handle = nullptr;
  FERRY_CHECK_OK(to_status(backend->device_open(&c_options, &handle)));
  return std::shared_ptr<Device>(new Device(*backend, handle));
}

Device::~Device() { backend_.device_close(handle_); }

Result<std::shared_ptr<Plan>> Plan::compile(std::shared_ptr<Device> device, graph::Graph graph,
                                            Tune tune) {
  std::shared_ptr<Plan> plan(new Plan(std::move(device), std::move(graph)));
  const ferry_backend& backend = plan->device_->backend();
  std::vector<const char*> reasons(plan->graph().nodes.size(), nullptr);
  FERRY_CHECK_OK(
      to_status(backend.supports(plan->device_->handle(), &plan->graph_.c(), reasons.data())));
  for (size_t i = 0; i < reasons.size(); ++i) {
    if (reasons[i] == nullptr) continue;
    const graph::Node& node = plan->graph().nodes[i];
    return error(Code::kUnsupported, "{}: {} '{}': {}", backend.name, node.op->name, node.name,
                 reasons[i]);
  }
  const ferry_compile_options options = {sizeof options,
                                         tune == Tune::kFast ? FERRY_TUNE_FAST : FERRY_TUNE_OFF};
  FERRY_CHECK_OK(to_status(
      backend.compile(plan->device_->handle(), &plan->graph_.c(), &options, &plan->handle_)));
  for (size_t i = 0; i < plan->graph().values.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const bool output = graph::is_output(plan->graph(), id);
    if (!output && !backend.plan_uses_constant(plan->handle_, id))
      plan->graph_.release_constant(id);
  }
  return plan;
}

Plan::~Plan() {
  if (handle_ != nullptr) device_->backend().plan_free(handle_);
}

ferry_plan_info Plan::info() const {
  ferry_plan_info info{};
  info.size = sizeof info;
  device_->backend().plan_info(handle_, &info);
  return info;
}

std::vector<StepInfo> Plan::steps() const {
  std::vector<StepInfo> out;
  for (int32_t i = 0; i < info().step_count; ++i) {
    ferry_step step{};
    step.size = sizeof step;
    device_->backend().plan_step(handle_, i, &step);
    out.push_back({.node = step.node,
                   .op = step.op,
                   .kernel = step.kernel,
                   .macs = step.macs,
                   .bytes = step.bytes,
                   .dtype = static_cast<graph::DType>(step.dtype),
                   .layout_bytes = step.layout_bytes});
  }
  return out;
}

Result<std::unique_ptr<Context>> Context::create(std::shared_ptr<const Plan> plan) {
  std::unique_ptr<Context> context(new Context(std::move(plan)));
  const Plan& p = *context->plan_;
  FERRY_CHECK_OK(to_status(p.device_->backend().context_new(p.handle_, &context->handle_)));
  return context;
}

Context::~Context() {
  if (handle_ != nullptr) plan_->device_->backend().context_free(handle_);
}

ferry_io Context::input(size_t index) const {
  ferry_io io{};
  io.size = sizeof io;
  plan_->device_->backend().context_input(handle_, static_cast<int32_t>(index), &io);
  return io;
}

ferry_io Context::output(size_t index) const {
  ferry_io io{};
  io.size = sizeof io;
  plan_->device_->backend().context_output(handle_, static_cast<int32_t>(index), &io);
  return io;
}

Status Context::run() { return to_status(plan_->device_->backend().run(handle_)); }

Status Context::run_timed(std::vector<double>& step_ms) {
  const ferry_backend& backend = plan_->device_->backend();
  if (!FERRY_HAS(&backend, run_timed)) {
    return error(Code::kUnsupported, "backend {} does not time its steps", backend.name);
  }
  step_ms.assign(static_cast<size_t>(plan_->info().step_count), 0.0);
  return to_status(backend.run_timed(handle_, step_ms.data()));
}

void write_input(const ferry_io& io, const graph::Tensor& tensor) {
  const bool picture = io.layout == FERRY_NHWC;
  const auto dtype = picture ? graph::DType::kF32 : static_cast<graph::DType>(io.dtype);
  FERRY_ASSERT(std::ranges::equal(dims(io), tensor.shape()) && tensor.dtype() == dtype,
               "a tensor of another type than the input");
  if (!picture) {
    std::memcpy(io.data, tensor.data(), tensor.bytes().size());
    return;
  }
  const float* from = tensor.as<float>().data();
  each_nhwc(io, [&](int64_t row_major, int64_t nhwc) { put_element(io, nhwc, from[row_major]); });
}

Status write_picture(const ferry_io& io, int64_t image, const float* nhwc) {
  // A buffer of pixels holds floats, in whatever storage; others are what their dtype says.
  if (io.rank != 4 || (io.layout != FERRY_NHWC && io.dtype != FERRY_F32))
    return error(Code::kUnsupported, "the input is no picture of floats");
  const int64_t c = io.dims[1], pixels = io.dims[2] * io.dims[3], first = image * c * pixels;
  if (io.layout == FERRY_NHWC && io.dtype == FERRY_F32) {
    std::copy_n(nhwc, c * pixels, static_cast<float*>(io.data) + first);
    return {};
  }
  for (int64_t p = 0; p < pixels; ++p) {
    for (int64_t k = 0; k < c; ++k) {
      const int64_t to = io.layout == FERRY_NHWC ? p * c + k : k * pixels + p;
      put_element(io, first + to, nhwc[p * c + k]);
    }
  }
  return {};
}

Result<graph::Tensor> read_output(const ferry_io& io) {
  const bool picture = io.layout == FERRY_NHWC;
  FERRY_TRY(tensor,
            graph::Tensor::make({picture ? graph::DType::kF32 : static_cast<graph::DType>(io.dtype),
                                 {dims(io).begin(), dims(io).end()}}));
  if (!picture) {
    std::memcpy(tensor.mut_bytes().data(), io.data, tensor.bytes().size());
    return tensor;
  }
  float* to = tensor.mut<float>().data();
  each_nhwc(io, [&](int64_t row_major, int64_t nhwc) { to[row_major] = get_element(io, nhwc); });
  return tensor;
}

}  // namespace ferry::runtime

// Devices, compiled plans and contexts: the C ABI of ferry/backend.h in C++, with ownership.
//
//   Device  --compile-->  Plan (weights, shared)  --context-->  Context (activations of one stream
//   of frames)
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ferry/backend.h"
#include "graph/graph.h"
#include "runtime/c_graph.h"

namespace ferry::runtime {

struct DeviceOptions {
  int threads = 0;  // host threads one run may use; 0: the processors this process may run on
};

enum class Tune {
  kOff,
  kFast
};  // kFast times candidate kernels while compiling: the choice may differ between runs

// An opened device. Threads may share it. Plans and contexts keep it alive.
class Device : public std::enable_shared_from_this<Device> {
 public:
  // `name` is "cpu" or "cpu:0". Fails with kNotFound for a device this build or machine does not
  // have.
  static Result<std::shared_ptr<Device>> open(std::string_view name, DeviceOptions options = {});
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const ferry_backend& backend() const { return backend_; }
  std::string text() const {
    return backend_.device_text(handle_);
  }  // for people: "avx512, 2 threads"
  ferry_device* handle() const { return handle_; }

 private:
  Device(const ferry_backend& backend, ferry_device* handle) : backend_(backend), handle_(handle) {}
  const ferry_backend& backend_;
  ferry_device* handle_;
};

struct StepInfo {
  std::string node, op, kernel;
  int64_t macs = 0;
  int64_t bytes = 0;                        // of operands and results
  graph::DType dtype = graph::DType::kF32;  // what it computes in
  int64_t layout_bytes = 0;  // moved only to change layouts, before and after; not in `bytes`
};

// A graph compiled for a device, with its packed weights. Immutable; shared by contexts and
// threads. Plans of the same constants (one model at several picture sizes) share packed weights
// where the kernels allow.
class Plan {
 public:
  // `graph` must satisfy verify().
  static Result<std::shared_ptr<Plan>> compile(std::shared_ptr<Device> device, graph::Graph graph,
                                               Tune tune = Tune::kOff);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const graph::Graph& graph() const { return graph_.graph(); }
  ferry_plan_info info() const;
  std::vector<StepInfo> steps() const;

 private:
  friend class Context;
  Plan(std::shared_ptr<Device> device, graph::Graph graph)
      : device_(std::move(device)), graph_(std::move(graph)) {}
  std::shared_ptr<Device> device_;
  CGraph graph_;
  ferry_plan* handle_ = nullptr;
};

// The memory of one stream of frames. One thread at a time.
class Context {
 public:
  static Result<std::unique_ptr<Context>> create(std::shared_ptr<const Plan> plan);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // The buffers to fill before and to read after a run. They stay where they are; a run leaves the
  // inputs as they were.
  ferry_io input(size_t index) const;
  ferry_io output(size_t index) const;
  Status run();
  Status run_timed(std::vector<double>& step_ms);  // kUnsupported where the backend cannot

  const Plan& plan() const { return *plan_; }

 private:
  explicit Context(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}
  std::shared_ptr<const Plan> plan_;
  ferry_context* handle_ = nullptr;
};

// Row-major copies in and out of a buffer, whatever its layout and storage: pictures are f32
// tensors. REQUIRES: the tensor has the value's type.
void write_input(const ferry_io& io, const graph::Tensor& tensor);
Result<graph::Tensor> read_output(const ferry_io& io);
// One image of a batch from [height, width, channels] floats.
Status write_picture(const ferry_io& io, int64_t image, const float* nhwc);

}  // namespace ferry::runtime

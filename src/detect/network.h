// A detector's network, ready to run: the optimised graph of one model file, compiled for the input
// sizes that turn up.
//
// `Network` is what detectors share: device, graph, plans with their packed weights. `Lane` is what
// one thread needs beside it: a context for each input size in use. Both keep the few sizes used
// last, so that a folder of pictures of every shape does not fill the memory.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "ferry/ferry.h"
#include "import/model.h"
#include "passes/raw_heads.h"
#include "runtime/device.h"
#include "vision/head_decode.h"

namespace ferry::detect {

struct InputShape {
  int64_t batch = 1, height = 0, width = 0;
  bool operator==(const InputShape&) const = default;
};

class Network {
 public:
  static Result<std::shared_ptr<Network>> load(const std::string& path, const LoadOptions& options);

  // The plan for a shape; compiled when it is not among the last used. Thread-safe.
  Result<std::shared_ptr<const runtime::Plan>> plan(const InputShape& shape);

  const import::DetectorInfo& info() const { return info_; }
  const import::SourceInfo& source() const { return source_; }
  const InputShape& nominal() const {
    return nominal_;
  }                                            // what the file fixes, or the options asked for
  bool any_size() const { return any_size_; }  // false: only the nominal shape can run
  int64_t stride() const { return stride_; }   // the largest of the head
  bool raw_heads() const { return !anchors_.empty(); }  // outputs are logits; else decoded rows
  const std::string& description() const { return description_; }
  std::string device_text() const {
    return fmt::format("{}: {}", device_->backend().name, device_->text());
  }

  // The raw maps of image `image` in a context that has run. REQUIRES: raw_heads()
  std::vector<vision::HeadMap> head_maps(const runtime::Context& context, int64_t image) const;

 private:
  Network() = default;

  std::shared_ptr<runtime::Device> device_;
  graph::Graph graph_;
  import::DetectorInfo info_;
  import::SourceInfo source_;
  std::vector<std::vector<vision::Anchor>> anchors_;  // a level each
  InputShape nominal_;
  bool any_size_ = false;
  bool tune_ = false;
  int64_t stride_ = 32;
  std::string description_;

  struct Entry {
    InputShape shape;
    std::shared_ptr<const runtime::Plan> plan;
  };
  std::mutex mutex_;
  std::deque<Entry> plans_;  // guarded by mutex_; last used first
};

class Lane {
 public:
  explicit Lane(std::shared_ptr<Network> network) : network_(std::move(network)) {}

  Network& network() const { return *network_; }
  const std::shared_ptr<Network>& shared_network() const { return network_; }
  // The context for a shape; valid until the next call.
  Result<runtime::Context*> context(const InputShape& shape);
  // (optional) The one that the last call gave.
  const runtime::Context* last_context() const {
    return contexts_.empty() ? nullptr : contexts_.front().context.get();
  }

 private:
  struct Entry {
    InputShape shape;
    std::unique_ptr<runtime::Context> context;
  };
  std::shared_ptr<Network> network_;
  std::deque<Entry> contexts_;  // last used first
};

}  // namespace ferry::detect

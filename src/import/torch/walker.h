// From module tree to graph. The walker calls the row of each module's class (module_def.h); rows
// call it back for their children, for constants and for nodes.
//
// Node names are module paths ("model.0.conv"). The output of layer i is the value named
// "model.<i>".
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"
#include "import/model.h"
#include "import/torch/module.h"
#include "import/torch/tensors.h"

namespace ferry::import::torch {

class Walker {
 public:
  // `tensors` reads tensors that are attributes (the head's stride); null for trees made from a
  // yaml. `constant_bytes` bounds the f32 constants made, so that many modules cannot share one
  // storage to exhaust memory.
  Walker(TensorReader* tensors, int64_t constant_bytes)
      : tensors_(tensors), constant_budget_(constant_bytes) {}

  // --- for rows ---

  // What `module` computes of `inputs`. Errors name class and path.
  Result<graph::ValueId> run(const Module& module, std::span<const graph::ValueId> inputs);
  Result<graph::ValueId> run(const Module& module, graph::ValueId input) {
    return run(module, {&input, 1});
  }
  // The same for a child that must be there.
  Result<graph::ValueId> run_child(const Module& module, std::string_view name,
                                   graph::ValueId input);
  // The same for a child that may be absent: then the input itself.
  Result<graph::ValueId> run_optional(const Module& module, std::string_view name,
                                      graph::ValueId input);

  // A node named by a path.
  Result<graph::ValueId> op(std::string_view op, std::string_view name,
                            std::vector<graph::ValueId> inputs, graph::Attrs attrs = {});
  Result<graph::ValueId> add(const std::string& name, graph::ValueId a, graph::ValueId b) {
    return op("add", name, {a, b});
  }
  Result<graph::ValueId> concat(const std::string& name, std::vector<graph::ValueId> inputs) {
    return op("concat", name, std::move(inputs), {{"axis", int64_t{1}}});
  }

  // The module's tensor as an f32 constant named "<path>.<name>", made once. Fails when it is
  // absent.
  Result<graph::ValueId> constant(const Module& module, std::string_view name);
  Result<graph::ValueId> optional_constant(const Module& module,
                                           std::string_view name);  // kNone when absent
  graph::ValueId constant(std::string_view name, graph::Tensor tensor);
  // A tensor that is an attribute or a buffer, as f32; nullopt when absent or None.
  Result<std::optional<graph::Tensor>> attribute_tensor(const Module& module,
                                                        std::string_view name);

  const graph::Shape& shape(graph::ValueId id) const { return graph_.value(id).type.shape; }

  int64_t input_height() const { return shape(graph_.inputs[0])[2]; }

  // A batch norm behind a convolution without bias turns into that convolution's bias when it is
  // folded.
  void count_folded(int64_t parameters) { folded_parameters_ += parameters; }
  // A node was made that is right for this input size only.
  void fix_size() { is_any_size_ = false; }
  void warn(std::string sentence) { warnings_.push_back(std::move(sentence)); }
  void set_detector(DetectorInfo detector) { detector_ = std::move(detector); }

  // --- for the importer ---

  struct Output {
    graph::Graph graph;
    DetectorInfo detector;
    bool any_size = true;           // no node holds a size that belongs to this input only
    int64_t folded_parameters = 0;  // how many fewer parameters the fused network has
    std::vector<std::string> warnings;
  };
  // Walks the layers of a YOLO model's `model` child, each with attributes `i` and `f`, from an
  // input of `images`.
  Result<Output> walk_layers(const Module& layers, const graph::Shape& images);

 private:
  Result<std::vector<graph::ValueId>> layer_inputs(const Module& layer,
                                                   const std::vector<graph::ValueId>& outputs);

  TensorReader* tensors_;
  int64_t constant_budget_;
  int64_t runs_ = 0;
  bool error_is_located_ = false;  // the innermost module that failed has said where
  graph::Graph graph_;
  std::map<std::string, int> name_uses_;
  std::map<std::pair<const Module*, std::string>, graph::ValueId> constants_;
  int64_t folded_parameters_ = 0;
  bool is_any_size_ = true;
  DetectorInfo detector_;
  std::vector<std::string> warnings_;
};

// The only input, or an error that says how many there are.
Result<graph::ValueId> only_input(std::span<const graph::ValueId> inputs);

}  // namespace ferry::import::torch

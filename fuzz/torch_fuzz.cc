// Any bytes as a checkpoint (zip or legacy, pickle, module tree, walker) and as a model yaml: an
// error, or a graph that verifies, in bounded time and memory.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "graph/graph.h"
#include "import/torch/import_torch.h"
#include "import/yaml/import_yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (ferry::import::looks_like_yaml(bytes)) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    ferry::import::parse_model_yaml(text).ok();  // no weights: their memory is bounded, but large
    return 0;
  }
  const auto owner = std::make_shared<int>();  // the bytes outlive the model here
  const auto model = ferry::import::import_torch_bytes({owner, bytes}, {.height = 64, .width = 64});
  if (model.ok() && !ferry::graph::verify(model->graph).ok()) std::abort();
  return 0;
}

// Any bytes as an ONNX file: an error or a model that verifies, in bounded time and memory.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "graph/graph.h"
#include "import/onnx/import_onnx.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto owner = std::make_shared<int>();  // the bytes outlive the model here
  const auto model = ferry::import::import_onnx(bytes, owner, {.height = 32, .width = 32});
  if (model.ok() && !ferry::graph::verify(model->graph).ok()) std::abort();
  return 0;
}

// Turns a TensorProto into a constant of the graph.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/mapped_file.h"
#include "base/result.h"
#include "graph/tensor.h"
#include "import/onnx/proto.h"

namespace ferry::import::onnx {

// Where the model's bytes lie: what views of them keep alive, and the folder for external data.
class TensorSource {
 public:
  // `owner` keeps the model's bytes alive. `folder` is where external data may lie; empty: there is
  // none, and tensors that need it are refused.
  TensorSource(std::shared_ptr<const void> owner, std::string folder)
      : owner_(std::move(owner)), folder_(std::move(folder)) {}

  // The tensor in its computed type (half, bfloat16 and double become f32; see computed_dtype). No
  // copy where the bytes already lie as the graph needs them: f32 and integers, little endian,
  // aligned. Refuses data whose length is not what the shape says, external paths that leave the
  // folder, strings and types that ferry does not have.
  Result<graph::Tensor> tensor(const Tensor& proto);

  // Bytes of float16, bfloat16 and double elements converted so far.
  int64_t converted() const { return converted_; }

 private:
  struct Located {
    ByteSpan bytes;
    std::shared_ptr<const void> owner;
  };
  Result<Located> external(const Tensor& proto, int64_t size);
  Result<graph::Tensor> from_raw(const graph::TensorType& type, int64_t onnx_type, Located data);
  Result<graph::Tensor> from_typed(const graph::TensorType& type, const Tensor& proto);

  std::shared_ptr<const void> owner_;
  std::string folder_;
  std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>> files_;
  int64_t converted_ = 0;
};

}  // namespace ferry::import::onnx

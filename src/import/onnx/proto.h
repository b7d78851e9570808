// ONNX's messages as ferry reads them: plain structs of views into the file. Only the fields that
// carry meaning for inference are here; others (doc strings, value_info, training) are skipped.
//
// Source: the field numbers of onnx.proto3 in the ONNX specification (IR version 3 to 11).
// Attributes and tensors are kept as bytes and read when a node needs them, so that a hostile file
// cannot make the reader hold much more than its own size.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "graph/tensor.h"
#include "import/onnx/wire.h"

namespace ferry::import::onnx {

// The numbers of TensorProto.DataType.
enum : int64_t {
  kOnnxFloat = 1,
  kOnnxUint8 = 2,
  kOnnxInt8 = 3,
  kOnnxUint16 = 4,
  kOnnxInt16 = 5,
  kOnnxInt32 = 6,
  kOnnxInt64 = 7,
  kOnnxString = 8,
  kOnnxBool = 9,
  kOnnxFloat16 = 10,
  kOnnxDouble = 11,
  kOnnxUint32 = 12,
  kOnnxUint64 = 13,
  kOnnxBfloat16 = 16,
};

// The type that ferry computes in: f32 for every floating type, i64 for u32 and u64, the same for
// the rest. Fails with the name of a type that ferry does not have.
Result<graph::DType> computed_dtype(int64_t onnx_type);
std::string_view onnx_type_name(int64_t onnx_type);  // "float16"; "type 77" names are "unknown"

struct Tensor {
  std::string_view name;
  int64_t data_type = 0;
  graph::Shape dims;
  ByteSpan message;             // the whole TensorProto: typed data is read from it
  std::optional<ByteSpan> raw;  // raw_data, little endian
  bool external = false;        // the data lies in another file:
  std::vector<std::pair<std::string_view, std::string_view>> external_entries;
};

enum class AttributeType : int64_t {
  kUndefined = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kSparseTensor = 11,
};

struct Attribute {
  std::string_view name;
  std::string_view ref_attr_name;  // set inside functions only
  int64_t type = 0;                // an AttributeType, or one that ferry does not know
  double f = 0;
  int64_t i = 0;
  std::string_view s;
  ByteSpan message;  // the TensorProto or GraphProto
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::vector<std::string_view> strings;
};

struct Node {
  std::string_view name, op_type, domain;
  std::vector<std::string_view> inputs, outputs;  // "": absent
  std::vector<ByteSpan> attributes;
};

struct Dimension {
  std::optional<int64_t> value;
  std::string_view symbol;  // "batch"; empty when it has none
};

struct ValueInfo {
  std::string_view name;
  bool is_tensor = false;
  int64_t elem_type = 0;
  std::optional<std::vector<Dimension>> shape;
};

struct Initializer {
  std::string_view name;
  ByteSpan message;
};

struct GraphProto {
  std::string_view name;
  std::vector<Node> nodes;
  std::vector<Initializer> initializers;
  std::vector<ValueInfo> inputs, outputs;
  bool has_sparse_initializers = false;
};

struct ModelProto {
  int64_t ir_version = 0;
  std::string_view producer_name, producer_version;
  std::vector<std::pair<std::string_view, int64_t>> opsets;  // domain, version
  GraphProto graph;
  std::vector<std::pair<std::string_view, std::string_view>> metadata;
  std::vector<std::string_view> functions;  // names, "domain::name" is not kept
};

// Far above any detector; a file that passes them is broken or hostile.
inline constexpr size_t kMaxNodes = 20000;
inline constexpr size_t kMaxNames = 200000;  // inputs, outputs, attributes of all nodes

// Each fails with the message's name and the byte that does not fit.
Result<ModelProto> read_model(ByteSpan message);
Result<GraphProto> read_graph(ByteSpan message);
Result<Attribute> read_attribute(ByteSpan message);
Result<Tensor> read_tensor(ByteSpan message);

}  // namespace ferry::import::onnx

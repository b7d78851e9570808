#include "import/onnx/proto.h"

#include <bit>

namespace ferry::import::onnx {
namespace {

using graph::DType;

struct TypeRow {
  int64_t number;
  std::string_view name;
  std::optional<DType> computed;
};
constexpr TypeRow kTypes[] = {
    {kOnnxFloat, "float", DType::kF32},   {kOnnxUint8, "uint8", DType::kU8},
    {kOnnxInt8, "int8", DType::kI8},      {kOnnxUint16, "uint16", DType::kU16},
    {kOnnxInt16, "int16", DType::kI16},   {kOnnxInt32, "int32", DType::kI32},
    {kOnnxInt64, "int64", DType::kI64},   {kOnnxString, "string", std::nullopt},
    {kOnnxBool, "bool", DType::kBool},    {kOnnxFloat16, "float16", DType::kF32},
    {kOnnxDouble, "double", DType::kF32}, {kOnnxUint32, "uint32", DType::kI64},
    {kOnnxUint64, "uint64", DType::kI64}, {14, "complex64", std::nullopt},
    {15, "complex128", std::nullopt},     {kOnnxBfloat16, "bfloat16", DType::kF32},
    {17, "float8e4m3fn", std::nullopt},   {18, "float8e4m3fnuz", std::nullopt},
    {19, "float8e5m2", std::nullopt},     {20, "float8e5m2fnuz", std::nullopt},
    {21, "uint4", std::nullopt},          {22, "int4", std::nullopt},
    {23, "float4e2m1", std::nullopt},
};

// What tells a field apart: its number and how it is written. A field written in an unexpected way
// counts as unknown and is skipped, as protobuf does.
constexpr uint32_t key(uint32_t number, Wire wire) {
  return number << 3 | static_cast<uint32_t>(wire);
}
constexpr uint32_t bytes(uint32_t number) { return key(number, Wire::kBytes); }
constexpr uint32_t varint(uint32_t number) { return key(number, Wire::kVarint); }
uint32_t key(const Field& field) { return key(field.number, field.wire); }

constexpr size_t kMaxDims = 64;         // of a declared shape; ferry's own limit is lower
constexpr size_t kMaxListed = 1 << 16;  // elements of an attribute's list
constexpr size_t kMaxMetadata = 1 << 12;
constexpr size_t kMaxInitializers = 100000;

// Calls `use(field)` for every field; `use` returns a Status.
template <class Use>
Status each_field(ByteSpan message, std::string_view what, const Use& use) {
  FieldReader fields(message);
  while (fields.next()) FERRY_CHECK_OK(use(fields.field()));
  return fields.status().within(what);
}

Status limit(size_t count, size_t most, std::string_view what) {
  if (count < most) return {};
  return error(Code::kUnsupported, "more than {} {}", most, what);
}

Result<std::pair<std::string_view, std::string_view>> read_entry(ByteSpan message) {
  std::pair<std::string_view, std::string_view> entry;
  const Status status =
      each_field(message, "StringStringEntryProto", [&](const Field& f) -> Status {
        if (key(f) == bytes(1)) entry.first = f.text();
        if (key(f) == bytes(2)) entry.second = f.text();
        return {};
      });
  FERRY_CHECK_OK(status);
  return entry;
}

Result<std::pair<std::string_view, int64_t>> read_opset(ByteSpan message) {
  std::pair<std::string_view, int64_t> opset;
  const Status status = each_field(message, "OperatorSetIdProto", [&](const Field& f) -> Status {
    if (key(f) == bytes(1)) opset.first = f.text();
    if (key(f) == varint(2)) opset.second = f.integer();
    return {};
  });
  FERRY_CHECK_OK(status);
  return opset;
}

Result<Dimension> read_dimension(ByteSpan message) {
  Dimension dim;
  const Status status = each_field(message, "Dimension", [&](const Field& f) -> Status {
    if (key(f) == varint(1)) dim.value = f.integer();
    if (key(f) == bytes(2)) dim.symbol = f.text();
    return {};
  });
  FERRY_CHECK_OK(status);
  return dim;
}

Result<std::vector<Dimension>> read_shape(ByteSpan message) {
  std::vector<Dimension> dims;
  const Status status = each_field(message, "TensorShapeProto", [&](const Field& f) -> Status {
    if (key(f) != bytes(1)) return {};
    FERRY_CHECK_OK(limit(dims.size(), kMaxDims, "dimensions"));
    FERRY_TRY(dim, read_dimension(f.bytes));
    dims.push_back(dim);
    return {};
  });
  FERRY_CHECK_OK(status);
  return dims;
}

Status read_tensor_type(ByteSpan message, ValueInfo& value) {
  return each_field(message, "TypeProto.Tensor", [&](const Field& f) -> Status {
    if (key(f) == varint(1)) value.elem_type = f.integer();
    if (key(f) == bytes(2)) {
      FERRY_TRY(shape, read_shape(f.bytes));
      value.shape = std::move(shape);
    }
    return {};
  });
}

Result<ValueInfo> read_value(ByteSpan message) {
  ValueInfo value;
  const Status status = each_field(message, "ValueInfoProto", [&](const Field& f) -> Status {
    if (key(f) == bytes(1)) value.name = f.text();
    if (key(f) != bytes(2)) return {};
    return each_field(f.bytes, "TypeProto", [&](const Field& type) -> Status {
      if (key(type) != bytes(1)) return {};
      value.is_tensor = true;
      return read_tensor_type(type.bytes, value);
    });
  });
  FERRY_CHECK_OK(status);
  return value;
}

Result<Node> read_node(ByteSpan message, size_t& names) {
  Node node;
  const Status status = each_field(message, "NodeProto", [&](const Field& f) -> Status {
    const bool listed = key(f) == bytes(1) || key(f) == bytes(2) || key(f) == bytes(5);
    if (listed) FERRY_CHECK_OK(limit(names++, kMaxNames, "inputs, outputs and attributes"));
    switch (key(f)) {
      case bytes(1):
        node.inputs.push_back(f.text());
        break;
      case bytes(2):
        node.outputs.push_back(f.text());
        break;
      case bytes(3):
        node.name = f.text();
        break;
      case bytes(4):
        node.op_type = f.text();
        break;
      case bytes(5):
        node.attributes.push_back(f.bytes);
        break;
      case bytes(7):
        node.domain = f.text();
        break;
    }
    return {};
  });
  FERRY_CHECK_OK(status);
  return node;
}

Result<Initializer> read_initializer(ByteSpan message) {
  Initializer initializer{{}, message};
  const Status status = each_field(message, "TensorProto", [&](const Field& f) -> Status {
    if (key(f) == bytes(8)) initializer.name = f.text();
    return {};
  });
  FERRY_CHECK_OK(status);
  return initializer;
}

Result<std::string_view> read_function_name(ByteSpan message) {
  std::string_view name;
  const Status status = each_field(message, "FunctionProto", [&](const Field& f) -> Status {
    if (key(f) == bytes(1)) name = f.text();
    return {};
  });
  FERRY_CHECK_OK(status);
  return name;
}

}  // namespace

std::string_view onnx_type_name(int64_t onnx_type) {
  for (const TypeRow& row : kTypes) {
    if (row.number == onnx_type) return row.name;
  }
  return "unknown";
}

Result<DType> computed_dtype(int64_t onnx_type) {
  for (const TypeRow& row : kTypes) {
    if (row.number == onnx_type && row.computed) return *row.computed;
  }
  return error(Code::kUnsupported, "element type {} ({}) is not supported", onnx_type,
               onnx_type_name(onnx_type));
}

Result<Tensor> read_tensor(ByteSpan message) {
  Tensor tensor;
  tensor.message = message;
  const Status status = each_field(message, "TensorProto", [&](const Field& f) -> Status {
    switch (key(f)) {
      case varint(1):
      case bytes(1):
        return append_varints(f, kMaxDims, tensor.dims);
      case varint(2):
        tensor.data_type = f.integer();
        break;
      case bytes(8):
        tensor.name = f.text();
        break;
      case bytes(9):
        tensor.raw = f.bytes;
        break;
      case varint(14):
        tensor.external = f.integer() == 1;
        break;
      case bytes(13): {
        FERRY_CHECK_OK(limit(tensor.external_entries.size(), kMaxDims, "external_data entries"));
        FERRY_TRY(entry, read_entry(f.bytes));
        tensor.external_entries.push_back(entry);
        break;
      }
      case bytes(3):
        return error(Code::kUnsupported, "TensorProto: segments are not supported");
    }
    return {};
  });
  FERRY_CHECK_OK(status);
  return tensor;
}

Result<Attribute> read_attribute(ByteSpan message) {
  Attribute attribute;
  std::vector<float> floats;
  const Status status = each_field(message, "AttributeProto", [&](const Field& f) -> Status {
    switch (key(f)) {
      case bytes(1):
        attribute.name = f.text();
        break;
      case key(2, Wire::kFixed32):
        attribute.f = std::bit_cast<float>(static_cast<uint32_t>(f.scalar));
        break;
      case varint(3):
        attribute.i = f.integer();
        break;
      case bytes(4):
        attribute.s = f.text();
        break;
      case bytes(5):
      case bytes(6):
        attribute.message = f.bytes;
        break;
      case key(7, Wire::kFixed32):
      case bytes(7):
        return append_floats(f, kMaxListed, floats);
      case varint(8):
      case bytes(8):
        return append_varints(f, kMaxListed, attribute.ints);
      case bytes(9):
        FERRY_CHECK_OK(limit(attribute.strings.size(), kMaxListed, "strings in a list"));
        attribute.strings.push_back(f.text());
        break;
      case varint(20):
        attribute.type = f.integer();
        break;
      case bytes(21):
        attribute.ref_attr_name = f.text();
        break;
    }
    return {};
  });
  FERRY_CHECK_OK(status);
  attribute.floats.assign(floats.begin(), floats.end());
  return attribute;
}

Result<GraphProto> read_graph(ByteSpan message) {
  GraphProto graph;
  size_t names = 0;
  const Status status = each_field(message, "GraphProto", [&](const Field& f) -> Status {
    switch (key(f)) {
      case bytes(1): {
        FERRY_CHECK_OK(limit(graph.nodes.size(), kMaxNodes, "nodes"));
        FERRY_TRY(node, read_node(f.bytes, names));
        graph.nodes.push_back(std::move(node));
        break;
      }
      case bytes(2):
        graph.name = f.text();
        break;
      case bytes(5): {
        FERRY_CHECK_OK(limit(graph.initializers.size(), kMaxInitializers, "initializers"));
        FERRY_TRY(initializer, read_initializer(f.bytes));
        graph.initializers.push_back(initializer);
        break;
      }
      case bytes(11):
      case bytes(12): {
        auto& list = f.number == 11 ? graph.inputs : graph.outputs;
        FERRY_CHECK_OK(limit(list.size(), kMaxInitializers, "inputs or outputs"));
        FERRY_TRY(value, read_value(f.bytes));
        list.push_back(std::move(value));
        break;
      }
      case bytes(15):
        graph.has_sparse_initializers = true;
        break;
    }
    return {};
  });
  FERRY_CHECK_OK(status);
  return graph;
}

Result<ModelProto> read_model(ByteSpan message) {
  ModelProto model;
  bool has_graph = false;
  const Status status = each_field(message, "ModelProto", [&](const Field& f) -> Status {
    switch (key(f)) {
      case varint(1):
        model.ir_version = f.integer();
        break;
      case bytes(2):
        model.producer_name = f.text();
        break;
      case bytes(3):
        model.producer_version = f.text();
        break;
      case bytes(7): {
        if (has_graph) return error(Code::kInvalid, "ModelProto: holds two graphs");
        has_graph = true;
        FERRY_TRY(graph, read_graph(f.bytes));
        model.graph = std::move(graph);
        break;
      }
      case bytes(8): {
        FERRY_CHECK_OK(limit(model.opsets.size(), kMaxMetadata, "opset imports"));
        FERRY_TRY(opset, read_opset(f.bytes));
        model.opsets.push_back(opset);
        break;
      }
      case bytes(14): {
        FERRY_CHECK_OK(limit(model.metadata.size(), kMaxMetadata, "metadata entries"));
        FERRY_TRY(entry, read_entry(f.bytes));
        model.metadata.push_back(entry);
        break;
      }
      case bytes(25): {
        FERRY_CHECK_OK(limit(model.functions.size(), kMaxMetadata, "functions"));
        FERRY_TRY(name, read_function_name(f.bytes));
        model.functions.push_back(name);
        break;
      }
    }
    return {};
  });
  FERRY_CHECK_OK(status);
  if (!has_graph) return error(Code::kInvalid, "ModelProto: holds no graph");
  return model;
}

}  // namespace ferry::import::onnx

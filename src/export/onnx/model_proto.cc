#include "export/onnx/model_proto.h"

#include "graph/onnx_form.h"

namespace ferry::exporter::onnx {
namespace {

using graph::Attr;
using graph::TensorType;

// The numbers of AttributeProto.AttributeType.
enum : int64_t { kFloat = 1, kInt = 2, kString = 3, kFloats = 6, kInts = 7 };
constexpr uint32_t kType = 20;  // the field that holds it

struct AttributeWriter {
  Message out;

  void operator()(int64_t value) { out.varint(3, value).varint(kType, kInt); }
  void operator()(double value) { out.fixed32(2, static_cast<float>(value)).varint(kType, kFloat); }
  void operator()(const std::string& value) { out.bytes(4, value).varint(kType, kString); }
  void operator()(const graph::Ints& values) {
    for (const int64_t value : values) out.varint(8, value);
    out.varint(kType, kInts);
  }
  void operator()(const graph::Floats& values) {
    for (const double value : values) out.fixed32(7, static_cast<float>(value));
    out.varint(kType, kFloats);
  }
};

Message attribute(const std::string& name, const Attr& value) {
  AttributeWriter writer;
  writer.out.bytes(1, name);
  std::visit(writer, value);
  return std::move(writer.out);
}

Message node_proto(const NodeForm& node) {
  Message out;
  for (const std::string& input : node.inputs) out.bytes(1, input);
  for (const std::string& output : node.outputs) out.bytes(2, output);
  out.bytes(3, node.name).bytes(4, node.op_type);
  for (const auto& [name, value] : node.attrs) out.message(5, attribute(name, value));
  return out;
}

Message tensor_proto(const NamedTensor& named) {
  Message out;
  for (const int64_t dim : named.tensor.shape()) out.varint(1, dim);
  return out.varint(2, graph::onnx_number(named.tensor.dtype()))
      .bytes(8, named.name)
      .borrow(9, named.tensor.bytes());
}

// `open`: names of the dimensions that are not fixed; "": fixed.
Message value_info(const NamedType& named, const std::vector<std::string>& open = {}) {
  Message shape;
  for (size_t i = 0; i < named.type.shape.size(); ++i) {
    Message dim;
    if (i < open.size() && !open[i].empty()) {
      dim.bytes(2, open[i]);
    } else {
      dim.varint(1, named.type.shape[i]);
    }
    shape.message(1, dim);
  }
  Message tensor;
  tensor.varint(1, graph::onnx_number(named.type.dtype)).message(2, shape);
  return Message().bytes(1, named.name).message(2, Message().message(1, tensor));
}

Message graph_proto(const Forms& forms, bool dynamic) {
  Message out;
  for (const NodeForm& node : forms.nodes) out.message(1, node_proto(node));
  out.bytes(2, "ferry");
  for (const NamedTensor& constant : forms.constants) out.message(5, tensor_proto(constant));
  for (const NamedType& input : forms.inputs) {
    using Open = std::vector<std::string>;
    out.message(11, value_info(input, dynamic ? Open{"batch", "", "height", "width"} : Open{}));
  }
  for (size_t i = 0; i < forms.outputs.size(); ++i) {
    std::vector<std::string> open;
    if (dynamic && forms.outputs[i].type.shape.size() == 4) {  // a raw map
      open = {"batch", "", fmt::format("height{}", i), fmt::format("width{}", i)};
    } else if (dynamic) {
      open = {"batch", "anchors"};
    }
    out.message(12, value_info(forms.outputs[i], open));
  }
  if (dynamic) return out;  // shapes of inner values are anybody's
  for (const NamedType& value : forms.inner) out.message(13, value_info(value));
  return out;
}

// The oldest IR version that may hold the opset (onnx/helper.py, VERSION_TABLE).
int64_t ir_version(int64_t opset) { return opset < 15 ? 7 : 8; }

}  // namespace

Message model_proto(const Forms& forms, const ModelText& text) {
  Message out;
  out.varint(1, ir_version(text.opset)).bytes(2, "ferry").bytes(3, text.producer_version);
  out.message(7, graph_proto(forms, text.dynamic));
  out.message(8, Message().bytes(1, "").varint(2, text.opset));
  for (const auto& [key, value] : text.metadata) {
    out.message(14, Message().bytes(1, key).bytes(2, value));
  }
  return out;
}

}  // namespace ferry::exporter::onnx

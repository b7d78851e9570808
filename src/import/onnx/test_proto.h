// Writes ONNX messages, for tests: the shortest way to files that no exporter would make.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::import::onnx::make {

// One message. Fields stand in the order of the calls.
struct Message {
  std::string bytes;

  Message& raw_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
    bytes.push_back(static_cast<char>(value));
    return *this;
  }
  Message& varint(uint32_t number, int64_t value) {
    return raw_varint(number << 3).raw_varint(static_cast<uint64_t>(value));
  }
  Message& text(uint32_t number, std::string_view value) {
    raw_varint(number << 3 | 2).raw_varint(value.size());
    bytes.append(value);
    return *this;
  }
  Message& fixed32(uint32_t number, float value) {
    raw_varint(number << 3 | 5);
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<char>(bits >> (8 * i)));
    return *this;
  }
  Message& message(uint32_t number, const Message& value) { return text(number, value.bytes); }
};

inline Message tensor(std::string_view name, int64_t type, const std::vector<int64_t>& dims,
                      std::string_view raw) {
  Message out;
  for (const int64_t dim : dims) out.varint(1, dim);
  return out.varint(2, type).text(8, name).text(9, raw);
}

inline std::string raw_floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}
inline std::string raw_ints(const std::vector<int64_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)};
}
inline Message floats(std::string_view name, const std::vector<int64_t>& dims,
                      const std::vector<float>& values) {
  return tensor(name, 1, dims, raw_floats(values));
}
inline Message ints(std::string_view name, const std::vector<int64_t>& values) {
  return tensor(name, 7, {static_cast<int64_t>(values.size())}, raw_ints(values));
}

inline Message attribute(std::string_view name, int64_t value) {
  return Message().text(1, name).varint(3, value).varint(20, 2);
}
inline Message attribute(std::string_view name, const std::vector<int64_t>& values) {
  Message out;
  out.text(1, name);
  for (const int64_t value : values) out.varint(8, value);
  return out.varint(20, 7);
}
inline Message tensor_attribute(std::string_view name, const Message& value) {
  return Message().text(1, name).message(5, value).varint(20, 4);
}
inline Message graph_attribute(std::string_view name, const Message& value) {
  return Message().text(1, name).message(6, value).varint(20, 5);
}

inline Message node(std::string_view op, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs, std::string_view name = {},
                    const std::vector<Message>& attributes = {}) {
  Message out;
  for (const auto& input : inputs) out.text(1, input);
  for (const auto& output : outputs) out.text(2, output);
  out.text(3, name).text(4, op);
  for (const auto& a : attributes) out.message(5, a);
  return out;
}

// Dimensions below -1 stand for symbols: -2 is "N".
inline Message value(std::string_view name, int64_t type, const std::vector<int64_t>& dims) {
  Message shape;
  for (const int64_t dim : dims) {
    shape.message(1, dim == -2 ? Message().text(2, "N") : Message().varint(1, dim));
  }
  const Message tensor_type = Message().varint(1, type).message(2, shape);
  return Message().text(1, name).message(2, Message().message(1, tensor_type));
}

struct Graph {
  std::vector<Message> nodes, initializers, inputs, outputs;

  Message message() const {
    Message out;
    for (const Message& n : nodes) out.message(1, n);
    out.text(2, "graph");
    for (const Message& i : initializers) out.message(5, i);
    for (const Message& i : inputs) out.message(11, i);
    for (const Message& o : outputs) out.message(12, o);
    return out;
  }
};

inline std::string model(const Message& graph, int64_t opset = 13,
                         const std::vector<std::pair<std::string, std::string>>& metadata = {},
                         int64_t ir_version = 8) {
  Message out;
  out.varint(1, ir_version).text(2, "ferry tests").message(7, graph);
  out.message(8, Message().text(1, "").varint(2, opset));
  for (const auto& [key, text] : metadata) {
    out.message(14, Message().text(1, key).text(2, text));
  }
  return out.bytes;
}
inline std::string model(const Graph& graph, int64_t opset = 13,
                         const std::vector<std::pair<std::string, std::string>>& metadata = {}) {
  return model(graph.message(), opset, metadata);
}

}  // namespace ferry::import::onnx::make

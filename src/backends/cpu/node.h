// Reading a node of the C graph.
#pragma once

#include <cstring>
#include <span>
#include <string_view>

#include "backends/cpu/kernels/storage.h"
#include "base/result.h"
#include "ferry/backend.h"

namespace ferry::cpu {

// A node and its graph. Attributes that the op declares are always there; asking for another is a
// bug.
struct NodeRef {
  const ferry_graph* graph;
  int index;

  const ferry_node& node() const { return *graph->nodes[index]; }
  std::string_view op() const { return node().op; }
  std::string_view name() const { return node().name; }
  std::span<const int32_t> inputs() const {
    return {node().inputs, static_cast<size_t>(node().input_count)};
  }
  std::span<const int32_t> outputs() const {
    return {node().outputs, static_cast<size_t>(node().output_count)};
  }
  // Null where input `i` is absent.
  const ferry_value* input(size_t i) const {
    return i < inputs().size() && inputs()[i] >= 0 ? graph->values[inputs()[i]] : nullptr;
  }
  const ferry_value& output(size_t i) const { return *graph->values[outputs()[i]]; }

  bool has(std::string_view name) const { return find(name) != nullptr; }
  int64_t integer(std::string_view name) const { return get(name).i; }
  double real(std::string_view name) const { return get(name).f; }
  std::string_view string(std::string_view name) const { return get(name).s; }
  std::span<const int64_t> integers(std::string_view name) const {
    return {get(name).ints, static_cast<size_t>(get(name).count)};
  }
  std::span<const double> reals(std::string_view name) const {
    return {get(name).floats, static_cast<size_t>(get(name).count)};
  }

 private:
  const ferry_attr* find(std::string_view name) const {
    for (int i = 0; i < node().attr_count; ++i) {
      if (name == node().attrs[i]->name) return node().attrs[i];
    }
    return nullptr;
  }
  const ferry_attr& get(std::string_view name) const {
    const ferry_attr* attr = find(name);
    FERRY_ASSERT(attr != nullptr, "the op has no such attribute");
    return *attr;
  }
};

inline std::span<const int64_t> dims(const ferry_value& value) {
  return {value.dims, static_cast<size_t>(value.rank)};
}
inline int64_t elements(const ferry_value& value) {
  int64_t n = 1;
  for (const int64_t dim : dims(value)) n *= dim;
  return n;
}
int64_t element_size(int32_t dtype);
inline bool is_constant(const ferry_value& value) { return value.data != nullptr; }
// fp32 with four dimensions, kept in memory as any storage has it.
inline bool is_picture(const ferry_value& value) {
  return value.dtype == FERRY_F32 && value.rank == 4 && !is_constant(value);
}
// The same, kept as floats: what most kernels work on.
inline bool is_float_picture(const ferry_value& value) {
  return is_picture(value) && value.storage == FERRY_F32;
}
// REQUIRES: an fp32 value.
inline Storage storage_of(const ferry_value& value) {
  switch (value.storage) {
    case FERRY_BF16:
      return {DType::kBf16};
    case FERRY_U8:
      return {DType::kU8, value.scales[0], value.zero_point};
    default:
      return {};
  }
}
inline bool same_storage(const ferry_value& a, const ferry_value& b) {
  return storage_of(a) == storage_of(b);
}

}  // namespace ferry::cpu

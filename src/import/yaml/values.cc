#include "import/yaml/values.h"

#include <yaml-cpp/yaml.h>

#include <charconv>

namespace ferry::import {
namespace {

using torch::Arena;
using torch::Kind;
using torch::Value;

constexpr size_t kMaxNodes = 100'000;
constexpr int kMaxDepth = 32;

// A plain scalar by YAML's core rules, with Python's spellings too, since args are Python in
// upstream's files.
const Value* scalar_value(Arena& arena, const std::string& text, bool is_quoted) {
  if (is_quoted) return arena.add_string(text);
  if (text.empty() || text == "~" || text == "null" || text == "None")
    return arena.add(Kind::kNone);
  if (text == "true" || text == "True") return arena.add_bool(true);
  if (text == "false" || text == "False") return arena.add_bool(false);
  const char* end = text.data() + text.size();
  const char* first = text.data() + (text.size() > 1 && text[0] == '+' ? 1 : 0);
  int64_t integer = 0;
  if (const auto [at, failure] = std::from_chars(first, end, integer);
      failure == std::errc() && at == end) {
    return arena.add_int(integer);
  }
  double real = 0;
  if (const auto [at, failure] = std::from_chars(first, end, real);
      failure == std::errc() && at == end) {
    return arena.add_float(real);
  }
  return arena.add_string(text);
}

Result<const Value*> to_value(Arena& arena, const YAML::Node& node, int depth) {
  if (depth > kMaxDepth || arena.values.size() > kMaxNodes)
    return error(Code::kInvalid, "the yaml is nested or repeated too much");
  switch (node.Type()) {
    case YAML::NodeType::Undefined:
    case YAML::NodeType::Null:
      return arena.add(Kind::kNone);
    case YAML::NodeType::Scalar:
      return scalar_value(arena, node.Scalar(), node.Tag() == "!");
    case YAML::NodeType::Sequence: {
      std::vector<const Value*> items;
      for (const YAML::Node& item : node) {
        FERRY_TRY(value, to_value(arena, item, depth + 1));
        items.push_back(value);
      }
      return arena.add_list(std::move(items));
    }
    case YAML::NodeType::Map: {
      Value* dict = arena.add(Kind::kDict);
      for (const auto& entry : node) {
        FERRY_TRY(name, to_value(arena, entry.first, depth + 1));
        FERRY_TRY(value, to_value(arena, entry.second, depth + 1));
        dict->pairs.insert(dict->pairs.end(), {name, value});
      }
      return dict;
    }
  }
  return error(Code::kBug, "unknown kind of yaml node");
}

}  // namespace

Result<const Value*> parse_yaml(Arena& arena, std::string_view text) {
  if (text.size() > kMaxYamlText)
    return error(Code::kInvalid, "the yaml has {} bytes; the limit is {}", text.size(),
                 kMaxYamlText);
  try {
    return to_value(arena, YAML::Load(std::string(text)), 0);
  } catch (const YAML::Exception& failure) {
    return error(Code::kInvalid, "line {}: {}", failure.mark.line + 1, failure.msg);
  }
}

}  // namespace ferry::import

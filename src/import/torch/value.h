// What a pickle says, as an inert tree: plain values, and calls that are written down but never
// made.
//
// A checkpoint's pickle builds objects by naming Python callables and their arguments. Here
// `models.common.Conv` is a name, `collections.OrderedDict()` is a kCall node holding that name and
// its arguments, and a persistent id (how torch names a storage) is a kPersistent node. Whoever
// reads the tree decides what a call means; nobody executes it.
//
// The tree is a graph: a value may be shared, and hostile or odd files make cycles. Readers bound
// their own depth and count what they visit.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/torch/zip.h"

namespace ferry::import::torch {

enum class Kind : unsigned char {
  kNone,
  kBool,    // integer: 0 or 1
  kInt,     // integer
  kBigInt,  // text: as written, little-endian bytes or decimal digits
  kFloat,   // real
  kString,  // text: UTF-8 (or raw bytes, from Python 2)
  kBytes,   // text
  kList,    // items
  kTuple,   // items
  kSet,     // items
  kDict,    // pairs: key, value, key, value, …
  kGlobal,  // text: "module.name"
  kCall,  // callable(args, **kwargs); then state (BUILD), items (APPENDS), pairs (SETITEMS) on what
          // it returned
  kPersistent,  // args: the id
};

struct Value {
  Kind kind = Kind::kNone;
  union {
    int64_t integer = 0;
    double real;
  };
  std::string_view text = {};
  std::vector<const Value*> items = {};
  std::vector<const Value*> pairs = {};
  const Value* callable = nullptr;
  const Value* args = nullptr;
  const Value* kwargs = nullptr;  // (optional)
  const Value* state = nullptr;   // (optional)

  bool is_none() const { return kind == Kind::kNone; }
  bool is_sequence() const { return kind == Kind::kList || kind == Kind::kTuple; }
  bool is_string() const { return kind == Kind::kString; }
};

// Owns the values of one pickle (or of one model yaml) and the texts they point to. Addresses are
// stable.
struct Arena {
  std::deque<Value> values;
  std::deque<std::string> strings;
  std::vector<Bytes> sources;  // kept alive for texts that point into them

  Value* add(Kind kind) {
    values.emplace_back();
    values.back().kind = kind;
    return &values.back();
  }
  std::string_view keep(std::string text) { return strings.emplace_back(std::move(text)); }

  Value* add_int(int64_t value);
  Value* add_float(double value);
  Value* add_bool(bool value);
  Value* add_string(std::string text);
  Value* add_global(std::string dotted_name);
  Value* add_list(std::vector<const Value*> items);
};

// "models.common.Conv" for a global, and for what a call of it makes (copyreg's helpers looked
// through); empty for all else. Legacy checkpoints name classes by a persistent id ('module',
// class, file, source): looked through as well.
std::string_view class_name(const Value& value);
// The last component: "Conv".
std::string_view short_name(std::string_view dotted);

// Keys and values of a dict, an OrderedDict, a defaultdict, or another call that got items. Empty
// for all else.
std::vector<std::pair<const Value*, const Value*>> entries(const Value& value);
bool is_mapping(const Value& value);
// The value under a string key; null when absent or when `value` is no mapping.
const Value* find(const Value& value, std::string_view key);
// The attributes an object was restored with: the dict given to BUILD (of a (dict, slots) tuple,
// the dict). May be null.
const Value* state_dict_of(const Value& object);

std::optional<int64_t> as_int(const Value* value);   // int, bool, and floats that hold an integer
std::optional<double> as_float(const Value* value);  // int, bool, float
std::optional<bool> as_bool(const Value* value);     // bool, int
// One integer, or a sequence of `count` of them (an integer is repeated): "k or (kh, kw)".
std::optional<std::vector<int64_t>> as_ints(const Value* value, size_t count);

// For messages: "None", "3", "'text'", "list of 4", "models.common.Conv(…)".
std::string describe(const Value& value);

}  // namespace ferry::import::torch

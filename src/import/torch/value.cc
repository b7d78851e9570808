#include "import/torch/value.h"

#include <cmath>

#include "base/result.h"

namespace ferry::import::torch {
namespace {

// copy_reg is Python 2's name of copyreg.
bool is_reconstructor(std::string_view name) {
  return name == "copyreg._reconstructor" || name == "copy_reg._reconstructor" ||
         name == "copyreg.__newobj__" || name == "copy_reg.__newobj__" ||
         name == "copyreg.__newobj_ex__";
}

}  // namespace

Value* Arena::add_int(int64_t value) {
  Value* v = add(Kind::kInt);
  v->integer = value;
  return v;
}

Value* Arena::add_float(double value) {
  Value* v = add(Kind::kFloat);
  v->real = value;
  return v;
}

Value* Arena::add_bool(bool value) {
  Value* v = add(Kind::kBool);
  v->integer = value;
  return v;
}

Value* Arena::add_string(std::string text) {
  Value* v = add(Kind::kString);
  v->text = keep(std::move(text));
  return v;
}

Value* Arena::add_global(std::string dotted_name) {
  Value* v = add(Kind::kGlobal);
  v->text = keep(std::move(dotted_name));
  return v;
}

Value* Arena::add_list(std::vector<const Value*> items) {
  Value* v = add(Kind::kList);
  v->items = std::move(items);
  return v;
}

std::string_view class_name(const Value& value) {
  const Value* v = &value;
  for (int hops = 0; hops < 4; ++hops) {
    switch (v->kind) {
      case Kind::kGlobal:
        return v->text;
      case Kind::kCall: {
        const Value* callable = v->callable;
        const bool through = callable->kind == Kind::kGlobal && is_reconstructor(callable->text) &&
                             v->args->is_sequence() && !v->args->items.empty();
        v = through ? v->args->items[0] : callable;
        break;
      }
      case Kind::kPersistent: {
        const Value& id = *v->args;
        const bool is_module = id.kind == Kind::kTuple && id.items.size() >= 2 &&
                               id.items[0]->is_string() && id.items[0]->text == "module";
        if (!is_module) return {};
        v = id.items[1];
        break;
      }
      case Kind::kNone:
      case Kind::kBool:
      case Kind::kInt:
      case Kind::kBigInt:
      case Kind::kFloat:
      case Kind::kString:
      case Kind::kBytes:
      case Kind::kList:
      case Kind::kTuple:
      case Kind::kSet:
      case Kind::kDict:
        return {};
    }
  }
  return {};
}

std::string_view short_name(std::string_view dotted) {
  const size_t dot = dotted.rfind('.');
  return dot == std::string_view::npos ? dotted : dotted.substr(dot + 1);
}

bool is_mapping(const Value& value) {
  if (value.kind == Kind::kDict) return true;
  if (value.kind != Kind::kCall) return false;
  const std::string_view name = short_name(class_name(value));
  return name == "OrderedDict" || name == "defaultdict" || name == "dict";
}

std::vector<std::pair<const Value*, const Value*>> entries(const Value& value) {
  std::vector<std::pair<const Value*, const Value*>> result;
  if (value.kind != Kind::kDict && value.kind != Kind::kCall) return result;
  // Protocols 0 and 1 give an OrderedDict its content as an argument: [[key, value], …].
  if (is_mapping(value) && value.args != nullptr && value.args->is_sequence() &&
      !value.args->items.empty()) {
    const Value& given = *value.args->items[0];
    for (const Value* pair : given.is_sequence() ? given.items : std::vector<const Value*>{}) {
      if (pair->is_sequence() && pair->items.size() == 2)
        result.emplace_back(pair->items[0], pair->items[1]);
    }
  }
  for (size_t i = 0; i + 1 < value.pairs.size(); i += 2)
    result.emplace_back(value.pairs[i], value.pairs[i + 1]);
  return result;
}

const Value* find(const Value& value, std::string_view key) {
  if (value.kind == Kind::kDict || (value.kind == Kind::kCall && !value.pairs.empty())) {
    for (size_t i = value.pairs.size(); i >= 2;
         i -= 2) {  // the last of equal keys wins, as in Python
      if (value.pairs[i - 2]->is_string() && value.pairs[i - 2]->text == key)
        return value.pairs[i - 1];
    }
    return nullptr;
  }
  const Value* found = nullptr;
  for (const auto& [k, v] : entries(value)) {
    if (k->is_string() && k->text == key) found = v;
  }
  return found;
}

const Value* state_dict_of(const Value& object) {
  const Value* state = object.state;
  if (state != nullptr && state->kind == Kind::kTuple && !state->items.empty())
    state = state->items[0];
  return state != nullptr && is_mapping(*state) ? state : nullptr;
}

std::optional<int64_t> as_int(const Value* value) {
  if (value == nullptr) return std::nullopt;
  if (value->kind == Kind::kInt || value->kind == Kind::kBool) return value->integer;
  const bool whole = value->kind == Kind::kFloat && std::nearbyint(value->real) == value->real &&
                     std::abs(value->real) < 1e15;
  if (whole) return static_cast<int64_t>(value->real);
  return std::nullopt;
}

std::optional<double> as_float(const Value* value) {
  if (value == nullptr) return std::nullopt;
  if (value->kind == Kind::kFloat) return value->real;
  if (value->kind == Kind::kInt || value->kind == Kind::kBool)
    return static_cast<double>(value->integer);
  return std::nullopt;
}

std::optional<bool> as_bool(const Value* value) {
  if (value == nullptr || (value->kind != Kind::kBool && value->kind != Kind::kInt))
    return std::nullopt;
  return value->integer != 0;
}

std::optional<std::vector<int64_t>> as_ints(const Value* value, size_t count) {
  if (const auto one = as_int(value)) return std::vector<int64_t>(count, *one);
  if (value == nullptr || !value->is_sequence() || value->items.size() != count)
    return std::nullopt;
  std::vector<int64_t> result;
  for (const Value* item : value->items) {
    const auto n = as_int(item);
    if (!n) return std::nullopt;
    result.push_back(*n);
  }
  return result;
}

std::string describe(const Value& value) {
  switch (value.kind) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return value.integer ? "True" : "False";
    case Kind::kInt:
      return fmt::format("{}", value.integer);
    case Kind::kBigInt:
      return "a large integer";
    case Kind::kFloat:
      return fmt::format("{}", value.real);
    case Kind::kString:
      return fmt::format("'{}'", value.text.substr(0, 80));
    case Kind::kBytes:
      return fmt::format("{} bytes", value.text.size());
    case Kind::kList:
      return fmt::format("a list of {}", value.items.size());
    case Kind::kTuple:
      return fmt::format("a tuple of {}", value.items.size());
    case Kind::kSet:
      return fmt::format("a set of {}", value.items.size());
    case Kind::kDict:
      return fmt::format("a dict of {}", value.pairs.size() / 2);
    case Kind::kGlobal:
      return std::string(value.text.substr(0, 120));
    case Kind::kCall:
      return fmt::format("{}(…)", class_name(value).substr(0, 120));
    case Kind::kPersistent:
      return "a persistent id";
  }
  return {};
}

}  // namespace ferry::import::torch

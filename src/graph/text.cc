#include "graph/text.h"

#include <charconv>
#include <cmath>
#include <map>

namespace ferry::graph {
namespace {

constexpr int64_t kMaxConstantElements = int64_t{1} << 26;
constexpr int64_t kElideAbove = 16;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '/' || c == ':';
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// --- printing ---

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

// A bare name may not start like a number, or be mistaken for a keyword or the absent input.
std::string name_text(std::string_view name) {
  bool bare = !name.empty() && !is_digit(name[0]) && name[0] != '.' && name != "_" &&
              name != "input" && name != "const" && name != "output";
  for (const char c : name) bare = bare && is_name_char(c);
  return bare ? std::string(name) : quoted(name);
}

// Shortest text that reads back to the same bits; always recognisable as floating point.
template <class T>
std::string float_text(T value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

template <class List, class Text>
std::string list_text(const List& list, Text text) {
  std::string out;
  for (const auto& item : list) out += (out.empty() ? "" : ",") + text(item);
  return "[" + out + "]";
}

std::string attr_text(const Attr& value) {
  struct Visitor {
    std::string operator()(int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const { return float_text(v); }
    std::string operator()(const std::string& v) const { return quoted(v); }
    std::string operator()(const Ints& v) const {
      return list_text(v, [](int64_t i) { return fmt::format("{}", i); });
    }
    std::string operator()(const Floats& v) const {
      return list_text(v, [](double f) { return float_text(f); });
    }
  };
  return std::visit(Visitor{}, value);
}

std::string element_text(const Tensor& tensor, size_t i) {
  switch (tensor.dtype()) {
    case DType::kF32:
      return float_text(tensor.as<float>()[i]);
    case DType::kF64:
      return float_text(tensor.as<double>()[i]);
    case DType::kI64:
      return fmt::format("{}", tensor.as<int64_t>()[i]);
    case DType::kI32:
      return fmt::format("{}", tensor.as<int32_t>()[i]);
    case DType::kI16:
      return fmt::format("{}", tensor.as<int16_t>()[i]);
    case DType::kU16:
      return fmt::format("{}", tensor.as<uint16_t>()[i]);
    case DType::kI8:
      return fmt::format("{}", tensor.as<int8_t>()[i]);
    case DType::kU8:
      return fmt::format("{}", tensor.as<uint8_t>()[i]);
    case DType::kF16:
      return float_text(f16_to_f32(static_cast<const uint16_t*>(tensor.data())[i]));
    case DType::kBf16:
      return float_text(bf16_to_f32(static_cast<const uint16_t*>(tensor.data())[i]));
    case DType::kBool:
      return static_cast<const uint8_t*>(tensor.data())[i] ? "1" : "0";
  }
  return {};
}

std::string constant_text(const Tensor& tensor, ConstantText mode) {
  if (mode == ConstantText::kElided && tensor.size() > kElideAbove) return "...";
  std::string out;
  for (int64_t i = 0; i < tensor.size(); ++i)
    out += (i ? ", " : "") + element_text(tensor, static_cast<size_t>(i));
  return "{" + out + "}";
}

// "f32[1,4,8,8] as u8(0.1, 12)".
std::string kind_text(const Value& value) {
  const std::string type = type_text(value.type);
  return value.storage == Storage{} ? type : type + " as " + storage_text(value.storage);
}

std::string node_line(const Graph& graph, const Node& node) {
  std::string line;
  for (const ValueId id : node.outputs) {
    line += fmt::format("{}{}: {}", line.empty() ? "" : ", ", name_text(graph.value(id).name),
                        kind_text(graph.value(id)));
  }
  line += fmt::format(" = {}(", node.op->name);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    line += i ? ", " : "";
    line += node.inputs[i] == kNone ? "_" : name_text(graph.value(node.inputs[i]).name);
  }
  line += ")";
  for (const AttrDef& def : node.op->attrs) {
    const auto found = node.attrs.find(def.name);
    if (found == node.attrs.end() || (!def.required && found->second == def.fallback)) continue;
    line += fmt::format(" {}={}", def.name, attr_text(found->second));
  }
  if (node.outputs.empty() || node.name != graph.value(node.outputs[0]).name)
    line += " @ " + quoted(node.name);
  return line;
}

// --- reading ---

class Parser {
 public:
  Parser(std::string_view text, std::span<const OpDef* const> ops) : text_(text), ops_(ops) {}

  Result<Graph> run() {
    Status status = read_graph();
    if (!status.ok())
      return std::move(status).error().within(fmt::format("line {}, column {}", line_, column()));
    FERRY_CHECK_OK(verify(graph_));
    return std::move(graph_);
  }

 private:
  Status read_graph() {
    FERRY_TRY(keyword, word());
    if (keyword != "graph") return error(Code::kInvalid, "expected 'graph'");
    FERRY_CHECK_OK(expect('{'));
    while (!accept('}')) {
      skip_space();
      if (at_end()) return error(Code::kInvalid, "the text ends inside the graph");
      FERRY_CHECK_OK(read_statement());
    }
    skip_space();
    return at_end() ? Status() : error(Code::kInvalid, "text behind the graph's '}}'");
  }

  Status read_statement() {
    const bool quoted_name = peek() == '"';
    FERRY_TRY(first, name());
    if (!quoted_name && first == "input") return read_input();
    if (!quoted_name && first == "const") return read_constant();
    if (!quoted_name && first == "output") return read_outputs();
    return read_node(std::move(first));
  }

  Status read_input() {
    FERRY_TRY(id, new_name());
    FERRY_CHECK_OK(expect(':'));
    FERRY_TRY(t, type());
    FERRY_TRY(kept, storage());
    ids_[id] = add_input(graph_, id, std::move(t));
    graph_.value(ids_[id]).storage = std::move(kept);
    return {};
  }

  Status read_constant() {
    FERRY_TRY(id, new_name());
    FERRY_CHECK_OK(expect(':'));
    FERRY_TRY(t, type());
    FERRY_CHECK_OK(check_shape(t.shape, t.dtype));
    constant_elements_ += elements(t.shape);
    if (constant_elements_ > kMaxConstantElements) {
      return error(Code::kNoMemory, "constants of more than {} elements", kMaxConstantElements);
    }
    FERRY_TRY(kept, storage());
    FERRY_CHECK_OK(check_storage(kept, t, true));
    FERRY_CHECK_OK(expect('='));
    FERRY_TRY(tensor, literal(t));
    if (kept != Storage{}) round_to(kept, tensor);
    ids_[id] = add_constant(graph_, id, std::move(tensor));
    graph_.value(ids_[id]).storage = std::move(kept);
    return {};
  }

  Status read_outputs() {
    do {
      FERRY_TRY(id, known_value());
      graph_.outputs.push_back(id);
    } while (accept(','));
    return {};
  }

  Status read_node(std::string first) {
    std::vector<std::string> names = {std::move(first)};
    std::vector<std::optional<TensorType>> types;
    std::vector<Storage> storages;
    for (;;) {
      if (ids_.contains(names.back()))
        return error(Code::kInvalid, "'{}' is defined twice", names.back());
      types.emplace_back();
      storages.emplace_back();
      if (accept(':')) {
        FERRY_TRY(t, type());
        FERRY_TRY(kept, storage());
        types.back() = std::move(t);
        storages.back() = std::move(kept);
      }
      if (!accept(',')) break;
      FERRY_TRY(next, name());
      names.push_back(std::move(next));
    }
    FERRY_CHECK_OK(expect('='));
    FERRY_TRY(op_name, word());
    const OpDef* op = nullptr;
    for (const OpDef* row : ops_) {
      if (row->name == op_name) op = row;
    }
    if (op == nullptr) return error(Code::kInvalid, "there is no op '{}'", op_name);
    FERRY_CHECK_OK(expect('('));
    std::vector<ValueId> inputs;
    while (!accept(')')) {
      if (!inputs.empty()) FERRY_CHECK_OK(expect(','));
      FERRY_TRY(id, known_value());
      inputs.push_back(id);
    }
    Attrs attrs;
    std::string node_name = names[0];
    for (;;) {
      skip_space();
      if (accept('@')) {
        FERRY_TRY(text, name());
        node_name = std::move(text);
        break;
      }
      if (!next_is_attribute()) break;
      FERRY_TRY(key, word());
      FERRY_CHECK_OK(expect('='));
      FERRY_TRY(value, attr_value());
      attrs[key] = std::move(value);
    }
    FERRY_TRY(outputs, add_node(graph_, *op, node_name, std::move(inputs), std::move(attrs),
                                static_cast<int>(names.size())));
    for (size_t i = 0; i < outputs.size(); ++i) {
      Value& value = graph_.value(outputs[i]);
      if (types[i] && *types[i] != value.type) {
        return error(Code::kInvalid, "'{}' is written as {}, the op gives {}", names[i],
                     type_text(*types[i]), type_text(value.type));
      }
      value.name = names[i];
      value.storage = std::move(storages[i]);
      ids_[names[i]] = outputs[i];
    }
    return {};
  }

  // An attribute is `word =`; anything else starts the next statement (`name: …`, `name, …`, `name
  // = op(`). The two differ in what follows `=`: a statement has `op(` there.
  bool next_is_attribute() {
    const size_t saved = at_;
    const int saved_line = line_;
    bool attribute = false;
    if (!at_end() && peek() != '"') {
      const auto key = word();
      if (key.ok() && accept('=')) {
        skip_space();
        const auto value = word();
        attribute = !(value.ok() && !value->empty() && accept('('));
      }
    }
    at_ = saved;
    line_ = saved_line;
    return attribute;
  }

  Result<Attr> attr_value() {
    skip_space();
    if (peek() == '"') {
      FERRY_TRY(text, name());
      return Attr(std::move(text));
    }
    if (!accept('[')) return number_attr();
    Ints ints;
    Floats floats;
    bool all_ints = true;
    while (!accept(']')) {
      if (!floats.empty()) FERRY_CHECK_OK(expect(','));
      FERRY_TRY(value, number_attr());
      if (const auto* i = std::get_if<int64_t>(&value)) {
        ints.push_back(*i);
        floats.push_back(static_cast<double>(*i));
      } else {
        all_ints = false;
        floats.push_back(std::get<double>(value));
      }
    }
    return all_ints ? Attr(std::move(ints)) : Attr(std::move(floats));
  }

  Result<Attr> number_attr() {
    FERRY_TRY(text, number_text());
    if (text.find_first_of(".eEnN") == std::string_view::npos) {
      int64_t value = 0;
      const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (failed == std::errc() && end == text.data() + text.size()) return Attr(value);
      return error(Code::kInvalid, "'{}' is not a 64-bit integer", text);
    }
    FERRY_TRY(value, to_double(text));
    return Attr(value);
  }

  Result<double> number() {
    FERRY_TRY(text, number_text());
    return to_double(text);
  }

  static Result<double> to_double(std::string_view text) {
    double value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc() || end != text.data() + text.size()) {
      return error(Code::kInvalid, "'{}' is not a number", text);
    }
    return value;
  }

  Result<std::string_view> number_text() {
    skip_space();
    const size_t start = at_;
    while (at_ < text_.size() &&
           (is_name_char(text_[at_]) || text_[at_] == '-' || text_[at_] == '+'))
      ++at_;
    if (at_ == start) return error(Code::kInvalid, "expected a number");
    return text_.substr(start, at_ - start);
  }

  Result<Tensor> literal(const TensorType& t) {
    const int64_t n = elements(t.shape);
    if (accept('{')) return list_literal(t, n);
    FERRY_TRY(generator, word());
    FERRY_CHECK_OK(expect('('));
    Floats arguments;
    while (!accept(')')) {
      if (!arguments.empty()) FERRY_CHECK_OK(expect(','));
      FERRY_TRY(value, number());
      arguments.push_back(value);
    }
    return generate(t, n, generator, arguments);
  }

  // Integers are read as integers, so that 64-bit values stay exact.
  Result<Tensor> list_literal(const TensorType& t, int64_t n) {
    const bool integers = t.dtype == DType::kI64;
    Floats floats;
    Ints ints;
    while (!accept('}')) {
      if (floats.size() + ints.size() > 0) FERRY_CHECK_OK(expect(','));
      if (static_cast<int64_t>(floats.size() + ints.size()) == n) {
        return error(Code::kInvalid, "more elements than {} holds", shape_text(t.shape));
      }
      if (integers) {
        FERRY_TRY(value, number_attr());
        if (!std::holds_alternative<int64_t>(value))
          return error(Code::kInvalid, "expected an integer");
        ints.push_back(std::get<int64_t>(value));
      } else {
        FERRY_TRY(value, number());
        floats.push_back(value);
      }
    }
    const auto given = static_cast<int64_t>(floats.size() + ints.size());
    if (given != n)
      return error(Code::kInvalid, "{} elements given, {} has {}", given, shape_text(t.shape), n);
    if (integers) return Tensor::of<int64_t>(t.shape, std::move(ints));
    return Tensor::of<double>(t.shape, std::move(floats)).cast(t.dtype);
  }

  static Result<Tensor> generate(const TensorType& t, int64_t n, std::string_view generator,
                                 const Floats& a) {
    const size_t needs = generator == "zeros"  ? 0
                         : generator == "full" ? 1
                         : generator == "iota" ? 2
                                               : 3;
    if (needs == 3 && generator != "uniform" && generator != "normal") {
      return error(Code::kInvalid,
                   "there is no generator '{}': use zeros, full, iota, uniform or normal",
                   generator);
    }
    if (a.size() != needs) return error(Code::kInvalid, "{} takes {} numbers", generator, needs);
    FERRY_TRY(wide, Tensor::make({DType::kF64, t.shape}));
    const std::span<double> out = wide.mut<double>();
    uint64_t state = needs == 3 && a[0] > 0 && a[0] < 1e18 ? static_cast<uint64_t>(a[0]) : 0;
    const auto random = [&state] {  // splitmix64 (Steele, Lea, Flood 2014), to [0, 1)
      state += 0x9e3779b97f4a7c15;
      uint64_t z = state;
      z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
      z = (z ^ z >> 27) * 0x94d049bb133111eb;
      return static_cast<double>((z ^ z >> 31) >> 11) * 0x1p-53;
    };
    for (int64_t i = 0; i < n; ++i) {
      double& v = out[static_cast<size_t>(i)];
      if (generator == "full") v = a[0];
      if (generator == "iota") v = a[0] + a[1] * static_cast<double>(i);
      if (generator == "uniform") v = a[1] + (a[2] - a[1]) * random();
      if (generator == "normal") {  // Box–Muller
        const double u = random();
        v = a[1] + a[2] * std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * M_PI * random());
      }
    }
    return wide.cast(t.dtype);
  }

  Result<TensorType> type() {
    FERRY_TRY(text, word());
    FERRY_TRY(dtype, dtype_from_name(text));
    FERRY_CHECK_OK(expect('['));
    TensorType t{dtype, {}};
    while (!accept(']')) {
      if (!t.shape.empty()) FERRY_CHECK_OK(expect(','));
      FERRY_TRY(dim, number_attr());
      if (!std::holds_alternative<int64_t>(dim))
        return error(Code::kInvalid, "a dimension is an integer");
      t.shape.push_back(std::get<int64_t>(dim));
    }
    FERRY_CHECK_OK(check_shape(t.shape, t.dtype));
    return t;
  }

  // ` as u8(0.1, 12)` behind a type, or nothing.
  Result<Storage> storage() {
    skip_space();
    if (text_.substr(at_, 3) != "as ") return Storage{};
    at_ += 3;
    FERRY_TRY(text, word());
    Storage kept;
    FERRY_TRY(dtype, dtype_from_name(text));
    kept.dtype = dtype;
    if (!accept('(')) return kept;
    do {
      FERRY_TRY(value, number());
      kept.scales.push_back(static_cast<float>(value));
    } while (accept(','));
    FERRY_CHECK_OK(expect(')'));
    if (dtype != DType::kU8) return kept;
    const float zero = kept.scales.back();
    kept.scales.pop_back();
    if (!(zero >= 0 && zero <= 255)) return error(Code::kInvalid, "a zero point of {}", zero);
    kept.zero_point = static_cast<int32_t>(zero);
    return kept;
  }

  Result<ValueId> known_value() {
    skip_space();
    const bool is_quoted = peek() == '"';
    FERRY_TRY(text, name());
    if (text == "_" && !is_quoted) return kNone;
    const auto found = ids_.find(text);
    if (found == ids_.end()) return error(Code::kInvalid, "'{}' is not defined above", text);
    return found->second;
  }

  Result<std::string> new_name() {
    FERRY_TRY(text, name());
    if (ids_.contains(text)) return error(Code::kInvalid, "'{}' is defined twice", text);
    return text;
  }

  Result<std::string> name() {
    skip_space();
    if (peek() != '"') return word();
    std::string out;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\n') break;
      if (text_[at_] != '\\') {
        out += text_[at_];
        continue;
      }
      if (++at_ >= text_.size()) break;
      unsigned code = 0;
      if (text_[at_] == 'x' && at_ + 2 < text_.size() &&
          std::from_chars(text_.data() + at_ + 1, text_.data() + at_ + 3, code, 16).ptr ==
              text_.data() + at_ + 3) {
        out += static_cast<char>(code);
        at_ += 2;
      } else {
        out += text_[at_];
      }
    }
    if (peek() != '"') return error(Code::kInvalid, "a quoted string does not end on its line");
    ++at_;
    if (out.empty()) return error(Code::kInvalid, "an empty name");
    return out;
  }

  Result<std::string> word() {
    skip_space();
    const size_t start = at_;
    while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
    // `a: f32[…]` — the colon that ends a name belongs to the type, one inside a name does not.
    while (at_ > start && text_[at_ - 1] == ':') --at_;
    if (at_ == start)
      return error(Code::kInvalid, "expected a name{}", at_end() ? ", found the end" : "");
    return std::string(text_.substr(start, at_ - start));
  }

  void skip_space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        if (c == '\n') ++line_;
        ++at_;
      } else {
        return;
      }
    }
  }

  bool at_end() const { return at_ >= text_.size(); }
  char peek() {
    skip_space();
    return at_end() ? '\0' : text_[at_];
  }
  bool accept(char c) {
    if (peek() != c || at_end()) return false;
    ++at_;
    return true;
  }
  Status expect(char c) {
    if (accept(c)) return {};
    return error(Code::kInvalid, "expected '{}'{}", c, at_end() ? ", found the end" : "");
  }
  size_t column() const {
    const size_t start = text_.substr(0, std::min(at_, text_.size())).find_last_of('\n');
    return at_ - (start == std::string_view::npos ? 0 : start + 1) + 1;
  }

  std::string_view text_;
  std::span<const OpDef* const> ops_;
  size_t at_ = 0;
  int line_ = 1;
  int64_t constant_elements_ = 0;
  Graph graph_;
  std::map<std::string, ValueId, std::less<>> ids_;
};

}  // namespace

std::string print(const Graph& graph, ConstantText constants) {
  std::string out = "graph {\n";
  for (const ValueId id : graph.inputs) {
    out += fmt::format("  input {}: {}\n", name_text(graph.value(id).name),
                       kind_text(graph.value(id)));
  }
  for (const Value& value : graph.values) {
    if (!value.constant) continue;
    out += fmt::format("  const {}: {} = {}\n", name_text(value.name), kind_text(value),
                       constant_text(*value.constant, constants));
  }
  for (const Node& node : graph.nodes) out += fmt::format("  {}\n", node_line(graph, node));
  if (!graph.outputs.empty()) {
    out += "  output ";
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      out += (i ? ", " : "") + name_text(graph.value(graph.outputs[i]).name);
    }
    out += "\n";
  }
  return out + "}\n";
}

Result<Graph> parse(std::string_view text, std::span<const OpDef* const> ops) {
  return Parser(text, ops).run();
}

}  // namespace ferry::graph

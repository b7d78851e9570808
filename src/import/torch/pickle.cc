// The pickle machine: a stack of values, a stack of marks, a memo. One method an instruction
// family; the table of instructions is the switch in step(), at the end.
#include "import/torch/pickle.h"

#include <bit>
#include <charconv>
#include <cstdlib>

#include "import/torch/pickle_text.h"

namespace ferry::import::torch {
namespace {

class Machine {
 public:
  Machine(const Bytes& bytes, const PickleLimits& limits)
      : limits_(limits), in_(bytes.text()), arena_(std::make_shared<Arena>()) {
    arena_->sources.push_back(bytes);
    none_ = arena_->add(Kind::kNone);
    false_ = arena_->add_bool(false);
    true_ = arena_->add_bool(true);
    empty_tuple_ = arena_->add(Kind::kTuple);
  }

  Result<Pickle> run() {
    if (in_.size() > limits_.bytes) {
      return error(Code::kNoMemory, "pickle: {} bytes; the limit is {}", in_.size(), limits_.bytes);
    }
    while (!stopped_) {
      opcode_at_ = at_;
      if (at_ == in_.size())
        return error(Code::kInvalid, "pickle: ends after {} bytes without a STOP", at_);
      const auto opcode = static_cast<unsigned char>(in_[at_++]);
      if (Status status = step(opcode); !status.ok()) {
        return std::move(status).error().within(
            fmt::format("pickle: instruction 0x{:02x} at offset {}", opcode, opcode_at_));
      }
      if (arena_->values.size() > limits_.nodes)
        return error(Code::kNoMemory, "pickle: more than {} objects", limits_.nodes);
      if (items_ > limits_.items)
        return error(Code::kNoMemory, "pickle: more than {} list entries", limits_.items);
      if (stack_.size() > limits_.stack || marks_.size() > limits_.stack) {
        return error(Code::kNoMemory, "pickle: more than {} values on the stack", limits_.stack);
      }
    }
    return Pickle{arena_, root_, at_};
  }

 private:
  // --- reading the bytes ---

  Result<std::string_view> take(uint64_t size) {
    if (size > in_.size() - at_) {
      return error(Code::kInvalid, "needs {} bytes, {} are left", size, in_.size() - at_);
    }
    const std::string_view taken = in_.substr(at_, size);
    at_ += size;
    return taken;
  }

  Result<uint64_t> take_unsigned(int bytes) {
    FERRY_TRY(raw, take(static_cast<uint64_t>(bytes)));
    uint64_t value = 0;
    for (int i = bytes; i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(raw[static_cast<size_t>(i)]);
    return value;
  }

  Result<std::string_view> take_counted(int length_bytes) {
    FERRY_TRY(size, take_unsigned(length_bytes));
    return take(size);
  }

  Result<std::string_view> take_line() {
    const size_t end = in_.find('\n', at_);
    if (end == std::string_view::npos) return error(Code::kInvalid, "the line does not end");
    const std::string_view line = in_.substr(at_, end - at_);
    at_ = end + 1;
    return line;
  }

  // --- the stack ---

  // Values below the topmost mark belong to an unfinished list and cannot be popped.
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  Status push(Result<Value*> value) {
    if (!value.ok()) return std::move(value).error();
    stack_.push_back(*value);
    return {};
  }

  static Status drop(Result<std::vector<const Value*>> values) {
    if (!values.ok()) return std::move(values).error();
    return {};
  }

  Result<Value*> pop() {
    if (stack_.size() <= floor()) return error(Code::kInvalid, "the stack is empty");
    Value* value = stack_.back();
    stack_.pop_back();
    return value;
  }

  Result<Value*> top() {
    if (stack_.size() <= floor()) return error(Code::kInvalid, "the stack is empty");
    return stack_.back();
  }

  // Everything above the topmost mark, which goes too.
  Result<std::vector<const Value*>> pop_to_mark() {
    if (marks_.empty()) return error(Code::kInvalid, "there is no mark");
    std::vector<const Value*> values(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()),
                                     stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return values;
  }

  // --- instruction families ---

  Status push_text(Kind kind, Result<std::string_view> text) {
    if (!text.ok()) return std::move(text).error();
    Value* value = arena_->add(kind);
    value->text = *text;
    return push(value);
  }

  Status push_unsigned(Result<uint64_t> value) {
    if (!value.ok()) return std::move(value).error();
    return push(arena_->add_int(static_cast<int64_t>(*value)));
  }

  Status push_signed(Result<uint64_t> bits) {  // 32 bits, two's complement
    if (!bits.ok()) return std::move(bits).error();
    return push(arena_->add_int(static_cast<int32_t>(static_cast<uint32_t>(*bits))));
  }

  // Two's complement, little-endian, any length.
  Status push_long(Result<std::string_view> raw) {
    if (!raw.ok()) return std::move(raw).error();
    if (raw->size() > 8) return push_text(Kind::kBigInt, *raw);
    uint64_t bits = !raw->empty() && (raw->back() & 0x80) ? ~uint64_t{0} : 0;
    for (size_t i = raw->size(); i-- > 0;) bits = bits << 8 | static_cast<unsigned char>((*raw)[i]);
    return push(arena_->add_int(std::bit_cast<int64_t>(bits)));
  }

  // "12", "12L"; INT also writes False as "00" and True as "01".
  Status push_decimal(Result<std::string_view> line, bool may_be_bool) {
    if (!line.ok()) return std::move(line).error();
    if (may_be_bool && (*line == "00" || *line == "01"))
      return push(*line == "01" ? true_ : false_);
    std::string_view digits = *line;
    if (digits.ends_with('L')) digits.remove_suffix(1);
    const char* last = digits.data() + digits.size();
    int64_t value = 0;
    const auto [end, failure] = std::from_chars(digits.data(), last, value);
    if (end != last || failure == std::errc::invalid_argument) {
      return error(Code::kInvalid, "'{}' is not an integer", digits.substr(0, 40));
    }
    if (failure != std::errc()) return push_text(Kind::kBigInt, digits);
    return push(arena_->add_int(value));
  }

  Status push_float_text() {
    FERRY_TRY(line, take_line());
    const std::string text(
        line);  // from_chars of g++ 12 knows doubles, but not "+1.0" or " 1.0" as Python's repr may
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end == text.c_str() || *end != 0)
      return error(Code::kInvalid, "'{}' is not a number", text.substr(0, 40));
    return push(arena_->add_float(value));
  }

  Status push_float_bits() {
    FERRY_TRY(raw, take(8));
    uint64_t bits = 0;
    for (const char c : raw) bits = bits << 8 | static_cast<unsigned char>(c);
    return push(arena_->add_float(std::bit_cast<double>(bits)));
  }

  Status push_global(std::string_view module, std::string_view name) {
    return push(arena_->add_global(fmt::format("{}.{}", module, name)));
  }

  Status push_container(Kind kind, Result<std::vector<const Value*>> content) {
    if (!content.ok()) return std::move(content).error();
    items_ += content->size();
    if (kind == Kind::kDict && content->size() % 2 != 0)
      return error(Code::kInvalid, "a dict has a key without a value");
    Value* value = arena_->add(kind);
    (kind == Kind::kDict ? value->pairs : value->items) = *std::move(content);
    return push(value);
  }

  Status push_small_tuple(size_t size) {
    if (stack_.size() - floor() < size)
      return error(Code::kInvalid, "the stack holds fewer than {} values", size);
    Value* tuple = arena_->add(Kind::kTuple);
    tuple->items.assign(stack_.end() - static_cast<std::ptrdiff_t>(size), stack_.end());
    stack_.resize(stack_.size() - size);
    items_ += size;
    return push(tuple);
  }

  Status push_call(const Value* callable, const Value* args, const Value* kwargs = nullptr) {
    Value* call = arena_->add(Kind::kCall);
    call->callable = callable;
    call->args = args;
    call->kwargs = kwargs;
    return push(call);
  }

  Status push_call_of_list(const Value* callable, std::vector<const Value*> args) {
    Value* tuple = arena_->add(Kind::kTuple);
    items_ += args.size();
    tuple->items = std::move(args);
    return push_call(callable, tuple);
  }

  Status push_persistent(Result<Value*> id) {
    if (!id.ok()) return std::move(id).error();
    Value* value = arena_->add(Kind::kPersistent);
    value->args = *id;
    return push(value);
  }

  Status append(Result<std::vector<const Value*>> values) {
    if (!values.ok()) return std::move(values).error();
    FERRY_TRY(target, top());
    const bool fits =
        target->kind == Kind::kList || target->kind == Kind::kSet || target->kind == Kind::kCall;
    if (!fits) return error(Code::kInvalid, "cannot append to {}", describe(*target));
    items_ += values->size();
    target->items.insert(target->items.end(), values->begin(), values->end());
    return {};
  }

  Status set_items(Result<std::vector<const Value*>> values) {
    if (!values.ok()) return std::move(values).error();
    FERRY_TRY(target, top());
    if (target->kind != Kind::kDict && target->kind != Kind::kCall) {
      return error(Code::kInvalid, "cannot set items of {}", describe(*target));
    }
    if (values->size() % 2 != 0) return error(Code::kInvalid, "there is a key without a value");
    items_ += values->size();
    target->pairs.insert(target->pairs.end(), values->begin(), values->end());
    return {};
  }

  Status build() {
    FERRY_TRY(state, pop());
    FERRY_TRY(target, top());
    if (target->kind != Kind::kCall)
      return error(Code::kInvalid, "cannot set the state of {}", describe(*target));
    target->state = state;
    return {};
  }

  Status put(Result<uint64_t> at) {
    FERRY_TRY(index, std::move(at));
    FERRY_TRY(value, top());
    if (index > limits_.memo)
      return error(Code::kNoMemory, "memo index {} is above {}", index, limits_.memo);
    if (index >= memo_.size())
      memo_.resize(std::max<size_t>(index + 1, std::min(2 * memo_.size(), limits_.memo)));
    if (memo_[index] == nullptr) ++memo_used_;
    memo_[index] = value;
    return {};
  }

  Status get(Result<uint64_t> at) {
    FERRY_TRY(index, std::move(at));
    if (index >= memo_.size() || memo_[index] == nullptr)
      return error(Code::kInvalid, "memo {} is empty", index);
    return push(memo_[index]);
  }

  Result<uint64_t> take_decimal_index() {
    FERRY_TRY(line, take_line());
    uint64_t index = 0;
    const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), index);
    if (failure != std::errc() || end != line.data() + line.size()) {
      return error(Code::kInvalid, "'{}' is not a memo index", line.substr(0, 40));
    }
    return index;
  }

  Status take_extension(int bytes) {
    FERRY_TRY(code, take_unsigned(bytes));
    return push_global("copyreg.extension", fmt::format("{}", code));
  }

  Status take_protocol() {
    FERRY_TRY(protocol, take_unsigned(1));
    if (protocol > 5) return error(Code::kUnsupported, "protocol {}; 0 to 5 are known", protocol);
    return {};
  }

  Status take_frame() {
    FERRY_TRY(size, take_unsigned(8));
    if (size > in_.size() - at_) {
      return error(Code::kInvalid, "a frame of {} bytes, {} are left", size, in_.size() - at_);
    }
    return {};
  }

  Status step(unsigned char opcode);

  const PickleLimits& limits_;
  std::string_view in_;
  size_t at_ = 0;
  size_t opcode_at_ = 0;
  std::shared_ptr<Arena> arena_;
  std::vector<Value*> stack_;
  std::vector<size_t> marks_;  // heights of the stack
  std::vector<Value*> memo_;   // null where unused
  size_t memo_used_ = 0;
  size_t items_ = 0;
  bool stopped_ = false;
  const Value* root_ = nullptr;
  Value *none_, *false_, *true_, *empty_tuple_;
};

Status Machine::step(unsigned char opcode) {
  switch (opcode) {
    // Frame, protocol, end.
    case 0x80:
      return take_protocol();
    case 0x95:
      return take_frame();
    case '.': {
      FERRY_TRY(value, pop());
      root_ = value;
      stopped_ = true;
      return {};
    }
    // Stack and memo.
    case '(':
      marks_.push_back(stack_.size());
      return {};
    case '0': {  // POP: a value, or the mark when nothing stands above it
      if (!marks_.empty() && stack_.size() == marks_.back()) {
        marks_.pop_back();
        return {};
      }
      FERRY_TRY(value, pop());
      static_cast<void>(value);
      return {};
    }
    case '1':
      return drop(pop_to_mark());
    case '2':
      return push(top());
    case 'p':
      return put(take_decimal_index());
    case 'q':
      return put(take_unsigned(1));
    case 'r':
      return put(take_unsigned(4));
    case 0x94:
      return put(uint64_t{memo_used_});
    case 'g':
      return get(take_decimal_index());
    case 'h':
      return get(take_unsigned(1));
    case 'j':
      return get(take_unsigned(4));
    // Plain values.
    case 'N':
      return push(none_);
    case 0x88:
      return push(true_);
    case 0x89:
      return push(false_);
    case 'I':
      return push_decimal(take_line(), true);
    case 'L':
      return push_decimal(take_line(), false);
    case 'J':
      return push_signed(take_unsigned(4));
    case 'K':
      return push_unsigned(take_unsigned(1));
    case 'M':
      return push_unsigned(take_unsigned(2));
    case 0x8a:
      return push_long(take_counted(1));
    case 0x8b:
      return push_long(take_counted(4));
    case 'F':
      return push_float_text();
    case 'G':
      return push_float_bits();
    case 'S': {
      FERRY_TRY(line, take_line());
      auto text = decode_repr(line);
      if (!text) return error(Code::kInvalid, "the string has no closing quote or a bad escape");
      return push(arena_->add_string(*std::move(text)));
    }
    case 'V': {
      FERRY_TRY(line, take_line());
      return push(arena_->add_string(decode_raw_unicode(line)));
    }
    case 'T':
    case 'X':
      return push_text(Kind::kString, take_counted(4));
    case 'U':
    case 0x8c:
      return push_text(Kind::kString, take_counted(1));
    case 0x8d:
      return push_text(Kind::kString, take_counted(8));
    case 'C':
      return push_text(Kind::kBytes, take_counted(1));
    case 'B':
      return push_text(Kind::kBytes, take_counted(4));
    case 0x8e:
    case 0x96:
      return push_text(Kind::kBytes, take_counted(8));
    case 0x97:
      return error(Code::kUnsupported, "data outside the pickle (out-of-band buffers)");
    case 0x98:
      return {};  // READONLY_BUFFER changes nothing that is kept
    // Containers.
    case ')':
      return push(empty_tuple_);
    case ']':
      return push(arena_->add(Kind::kList));
    case '}':
      return push(arena_->add(Kind::kDict));
    case 0x8f:
      return push(arena_->add(Kind::kSet));
    case 0x85:
      return push_small_tuple(1);
    case 0x86:
      return push_small_tuple(2);
    case 0x87:
      return push_small_tuple(3);
    case 't':
      return push_container(Kind::kTuple, pop_to_mark());
    case 'l':
      return push_container(Kind::kList, pop_to_mark());
    case 'd':
      return push_container(Kind::kDict, pop_to_mark());
    case 0x91:
      return push_container(Kind::kSet, pop_to_mark());
    case 'a': {
      FERRY_TRY(value, pop());
      return append({{value}});
    }
    case 'e':
    case 0x90:
      return append(pop_to_mark());
    case 's': {
      FERRY_TRY(value, pop());
      FERRY_TRY(key, pop());
      return set_items({{key, value}});
    }
    case 'u':
      return set_items(pop_to_mark());
    // Names, calls, objects: written down, never done.
    case 'c': {
      FERRY_TRY(module, take_line());
      FERRY_TRY(name, take_line());
      return push_global(module, name);
    }
    case 0x93: {
      FERRY_TRY(name, pop());
      FERRY_TRY(module, pop());
      if (!name->is_string() || !module->is_string())
        return error(Code::kInvalid, "a global's name is not a string");
      return push_global(module->text, name->text);
    }
    case 0x82:
      return take_extension(1);
    case 0x83:
      return take_extension(2);
    case 0x84:
      return take_extension(4);
    case 'R':
    case 0x81: {
      FERRY_TRY(args, pop());
      FERRY_TRY(callable, pop());
      return push_call(callable, args);
    }
    case 0x92: {
      FERRY_TRY(kwargs, pop());
      FERRY_TRY(args, pop());
      FERRY_TRY(callable, pop());
      return push_call(callable, args, kwargs);
    }
    case 'i': {
      FERRY_TRY(module, take_line());
      FERRY_TRY(name, take_line());
      FERRY_TRY(args, pop_to_mark());
      return push_call_of_list(arena_->add_global(fmt::format("{}.{}", module, name)),
                               std::move(args));
    }
    case 'o': {
      FERRY_TRY(values, pop_to_mark());
      if (values.empty()) return error(Code::kInvalid, "there is no class to make an object of");
      return push_call_of_list(values[0], {values.begin() + 1, values.end()});
    }
    case 'b':
      return build();
    case 'P': {
      FERRY_TRY(line, take_line());
      return push_persistent(arena_->add_string(std::string(line)));
    }
    case 'Q':
      return push_persistent(pop());
    default:
      return error(Code::kInvalid, "not a pickle instruction");
  }
}

}  // namespace

Result<Pickle> read_pickle(const Bytes& bytes, const PickleLimits& limits) {
  return Machine(bytes, limits).run();
}

}  // namespace ferry::import::torch

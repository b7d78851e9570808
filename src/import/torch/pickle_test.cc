#include "import/torch/pickle.h"

#include <gtest/gtest.h>

#include "import/torch/test_zip.h"

namespace ferry::import::torch {
namespace {

using test::bytes_of;

std::string unhex(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return out;
}

// The tree as text, close to Python; deep and shared parts end in "...".
std::string text_of(const Value& v, int depth = 0) {
  if (depth > 4) return "...";
  const auto list = [&](const std::vector<const Value*>& items) {
    std::string out;
    for (const Value* item : items) out += (out.empty() ? "" : ", ") + text_of(*item, depth + 1);
    return out;
  };
  switch (v.kind) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return v.integer ? "True" : "False";
    case Kind::kInt:
      return fmt::format("{}", v.integer);
    case Kind::kBigInt:
      return "big";
    case Kind::kFloat:
      return fmt::format("{}", v.real);
    case Kind::kString:
      return fmt::format("'{}'", v.text);
    case Kind::kBytes:
      return fmt::format("{} bytes", v.text.size());
    case Kind::kList:
      return "[" + list(v.items) + "]";
    case Kind::kTuple:
      return "(" + list(v.items) + ")";
    case Kind::kSet:
      return "{" + list(v.items) + "}";
    case Kind::kDict:
      return "{" + list(v.pairs) + "}";
    case Kind::kGlobal:
      return std::string(v.text);
    case Kind::kPersistent:
      return "persistent" + text_of(*v.args, depth + 1);
    case Kind::kCall: {
      std::string out = text_of(*v.callable, depth + 1) + text_of(*v.args, depth + 1);
      if (v.kwargs) out += "**" + text_of(*v.kwargs, depth + 1);
      if (!v.items.empty()) out += "+[" + list(v.items) + "]";
      if (!v.pairs.empty()) out += "+{" + list(v.pairs) + "}";
      if (v.state) out += "<-" + text_of(*v.state, depth + 1);
      return out;
    }
  }
  return {};
}

std::string read(const std::string& bytes, const PickleLimits& limits = {}) {
  auto pickle = read_pickle(bytes_of(bytes), limits);
  return pickle.ok() ? text_of(*pickle->root) : pickle.error().message;
}

// What CPython 3.11's pickle.dumps(value, protocol) wrote for protocols 0 to 5, value =
//   {'a': [1, -2, 300, 70000, 2**40, -2**70], 'f': 1.5, 't': (True, False, None), 's': 'hé 安全😀',
//   'b': b'\x00\xff', 'e': (),
//    'set': {7}, 'od': OrderedDict([('k', 2)]), 'c': complex, 'self': L}   with L = [1, L]
constexpr std::string_view kDumps[] = {
    // protocol 0
    "286470300a56610a70310a286c70320a49310a61492d320a61493330300a614937303030300a614c31303939353131"
    "363237"
    "3737364c0a614c2d313138303539313632303731373431313330333432344c0a617356660a70330a46312e350a7356"
    "740a70"
    "340a284930310a4930300a4e7470350a7356730a70360a5668e9205c75356238395c75353136385c55303030316636"
    "30300a"
    "70370a7356620a70380a635f636f646563730a656e636f64650a70390a28565c7530303030ff0a7031300a566c6174"
    "696e31"
    "0a7031310a747031320a527031330a7356650a7031340a287473567365740a7031350a635f5f6275696c74696e5f5f"
    "0a7365"
    "740a7031360a28286c7031370a49370a61747031380a527031390a73566f640a7032300a63636f6c6c656374696f6e"
    "730a4f"
    "726465726564446963740a7032310a2874527032320a566b0a7032330a49320a737356630a7032340a635f5f627569"
    "6c7469"
    "6e5f5f0a636f6d706c65780a7032350a735673656c660a7032360a286c7032370a49310a616732370a61732e",
    // protocol 1
    "7d71002858010000006171015d7102284b014afeffffff4d2c014a701101004c313039393531313632373737364c0a"
    "4c2d31"
    "3138303539313632303731373431313330333432344c0a655801000000667103473ff8000000000000580100000074"
    "710428"
    "4930310a4930300a4e7471055801000000737106580e00000068c3a920e5ae89e585a8f09f98807107580100000062"
    "710863"
    "5f636f646563730a656e636f64650a710928580300000000c3bf710a58060000006c6174696e31710b74710c52710d"
    "580100"
    "000065710e295803000000736574710f635f5f6275696c74696e5f5f0a7365740a7110285d71114b07617471125271"
    "135802"
    "0000006f64711463636f6c6c656374696f6e730a4f726465726564446963740a71152952711658010000006b71174b"
    "027358"
    "01000000637118635f5f6275696c74696e5f5f0a636f6d706c65780a7119580400000073656c66711a5d711b284b01"
    "681b65"
    "752e",
    // protocol 2
    "80027d71002858010000006171015d7102284b014afeffffff4d2c014a701101008a060000000000018a0900000000"
    "000000"
    "00c0655801000000667103473ff8000000000000580100000074710488894e8771055801000000737106580e000000"
    "68c3a9"
    "20e5ae89e585a8f09f988071075801000000627108635f636f646563730a656e636f64650a7109580300000000c3bf"
    "710a58"
    "060000006c6174696e31710b86710c52710d580100000065710e295803000000736574710f635f5f6275696c74696e"
    "5f5f0a"
    "7365740a71105d71114b076185711252711358020000006f64711463636f6c6c656374696f6e730a4f726465726564"
    "446963"
    "740a71152952711658010000006b71174b02735801000000637118635f5f6275696c74696e5f5f0a636f6d706c6578"
    "0a7119"
    "580400000073656c66711a5d711b284b01681b65752e",
    // protocol 3
    "80037d71002858010000006171015d7102284b014afeffffff4d2c014a701101008a060000000000018a0900000000"
    "000000"
    "00c0655801000000667103473ff8000000000000580100000074710488894e8771055801000000737106580e000000"
    "68c3a9"
    "20e5ae89e585a8f09f988071075801000000627108430200ff7109580100000065710a295803000000736574710b63"
    "627569"
    "6c74696e730a7365740a710c5d710d4b076185710e52710f58020000006f64711063636f6c6c656374696f6e730a4f"
    "726465"
    "726564446963740a71112952711258010000006b71134b02735801000000637114636275696c74696e730a636f6d70"
    "6c6578"
    "0a7115580400000073656c6671165d7117284b01681765752e",
    // protocol 4
    "800495cb000000000000007d94288c0161945d94284b014afeffffff4d2c014a701101008a060000000000018a0900"
    "000000"
    "00000000c0658c016694473ff80000000000008c01749488894e87948c0173948c0e68c3a920e5ae89e585a8f09f98"
    "80948c"
    "016294430200ff948c016594298c03736574948f94284b07908c026f64948c0b636f6c6c656374696f6e73948c0b4f"
    "726465"
    "726564446963749493942952948c016b944b02738c0163948c086275696c74696e73948c07636f6d706c6578949394"
    "8c0473"
    "656c66945d94284b01681865752e",
    // protocol 5
    "800595cb000000000000007d94288c0161945d94284b014afeffffff4d2c014a701101008a060000000000018a0900"
    "000000"
    "00000000c0658c016694473ff80000000000008c01749488894e87948c0173948c0e68c3a920e5ae89e585a8f09f98"
    "80948c"
    "016294430200ff948c016594298c03736574948f94284b07908c026f64948c0b636f6c6c656374696f6e73948c0b4f"
    "726465"
    "726564446963749493942952948c016b944b02738c0163948c086275696c74696e73948c07636f6d706c6578949394"
    "8c0473"
    "656c66945d94284b01681865752e",
};

TEST(Pickle, EveryProtocolReadsAsPythonWroteIt) {
  for (size_t protocol = 0; protocol < std::size(kDumps); ++protocol) {
    // Before protocols 3 and 4, bytes and sets are written as calls; before 3, modules have Python
    // 2's names.
    const std::string builtins = protocol >= 3 ? "builtins" : "__builtin__";
    const std::string bytes =
        protocol >= 3 ? "2 bytes" : std::string("_codecs.encode('\0ÿ', 'latin1')", 31);
    const std::string set = protocol >= 4 ? "{7}" : builtins + ".set([7])";
    EXPECT_EQ(read(unhex(kDumps[protocol])),
              "{'a', [1, -2, 300, 70000, 1099511627776, big], 'f', 1.5, 't', (True, False, None), "
              "'s', 'hé 安全😀', 'b', " +
                  bytes + ", 'e', (), 'set', " + set +
                  ", 'od', collections.OrderedDict()+{'k', 2}, 'c', " + builtins +
                  ".complex, 'self', [1, [1, [1, [..., ...]]]]}")
        << "protocol " << protocol;
  }
}

TEST(Pickle, EveryPrefixOfAPickleIsRefused) {
  for (const std::string_view hex : kDumps) {
    const std::string whole = unhex(hex);
    for (size_t size = 0; size < whole.size(); ++size)
      EXPECT_FALSE(read_pickle(bytes_of(whole.substr(0, size))).ok()) << size;
  }
}

TEST(Pickle, CallsAreWrittenDownAndNeverMade) {
  // What an attack looks like: os.system("touch /tmp/owned") as REDUCE, as OBJ, as INST.
  EXPECT_EQ(read("cos\nsystem\n(S'id'\ntR."), "os.system('id')");
  EXPECT_EQ(read("(cos\nsystem\nS'id'\no."), "os.system('id')");
  EXPECT_EQ(read("(S'id'\nios\nsystem\n."), "os.system('id')");
  EXPECT_EQ(read("c__builtin__\neval\n(V1+1\ntR."), "__builtin__.eval('1+1')");
}

TEST(Pickle, ObjectsKeepArgumentsStateItemsAndKeywords) {
  EXPECT_EQ(read("\x80\x02"
                 "cm\nC\n)\x81}U\x01xK\x05sb."),
            "m.C()<-{'x', 5}");
  EXPECT_EQ(read("\x80\x04\x8c\x01m\x8c\x01"
                 "C\x93)}\x8c\x01kK\x01s\x92."),
            "m.C()**{'k', 1}");
  EXPECT_EQ(read("cm\nL\n)R(K\x01K\x02"
                 "e."),
            "m.L()+[1, 2]");
  EXPECT_EQ(read("(U\x07storageK\x01tQ."), "persistent('storage', 1)");
  EXPECT_EQ(read("Pid 7\n."), "persistent'id 7'");
  EXPECT_EQ(read("\x82\x07."), "copyreg.extension.7");
}

TEST(Pickle, PythonTwoStringsAndEscapesAreDecoded) {
  EXPECT_EQ(read("S'a\\x41\\n\\'q\\''\n."), "'aA\n'q''");
  EXPECT_EQ(read("V\\u5b89\\U0001f600\n."), "'安😀'");
  EXPECT_EQ(read("F-2.5e3\n."), "-2500");
  EXPECT_EQ(read("I01\n."), "True");
  EXPECT_EQ(read("L99999999999999999999L\n."), "big");
}

TEST(Pickle, SeveralPicklesInARowAreToldApart) {
  const Bytes bytes = bytes_of("K\x01.K\x02.");
  auto first = read_pickle(bytes);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->consumed, 3u);
}

TEST(Pickle, BrokenInstructionsAreNamedWithTheirOffset) {
  EXPECT_EQ(read("."), "pickle: instruction 0x2e at offset 0: the stack is empty");
  EXPECT_EQ(read("K\x01h\x05."), "pickle: instruction 0x68 at offset 2: memo 5 is empty");
  EXPECT_EQ(read("K\x01t."), "pickle: instruction 0x74 at offset 2: there is no mark");
  EXPECT_EQ(read("(K\x01"
                 "d."),
            "pickle: instruction 0x64 at offset 3: a dict has a key without a value");
  EXPECT_EQ(read("K\x01K\x02"
                 "b."),
            "pickle: instruction 0x62 at offset 4: cannot set the state of 1");
  EXPECT_EQ(read("K\x01K\x02"
                 "a."),
            "pickle: instruction 0x61 at offset 4: cannot append to 1");
  EXPECT_EQ(
      read("(K\x01(K\x02sl."),
      "pickle: instruction 0x73 at offset 6: the stack is empty");  // does not reach below a mark
  EXPECT_EQ(read("\xff."), "pickle: instruction 0xff at offset 0: not a pickle instruction");
  EXPECT_EQ(read("X\xff\xff\xff\xff."),
            "pickle: instruction 0x58 at offset 0: needs 4294967295 bytes, 1 are left");
  EXPECT_EQ(read("\x8e\xff\xff\xff\xff\xff\xff\xff\xff."),
            "pickle: instruction 0x8e at offset 0: needs 18446744073709551615 bytes, 1 are left");
  EXPECT_EQ(read("\x80\x09."),
            "pickle: instruction 0x80 at offset 0: protocol 9; 0 to 5 are known");
  EXPECT_EQ(read("Izz\n."), "pickle: instruction 0x49 at offset 0: 'zz' is not an integer");
}

TEST(Pickle, LimitsHold) {
  std::string marks(5000, '('), lists, memo;
  EXPECT_EQ(read(marks, {.stack = 1000}), "pickle: more than 1000 values on the stack");
  for (int i = 0; i < 5000; ++i) lists += ']';
  EXPECT_EQ(read(lists, {.nodes = 1000}), "pickle: more than 1000 objects");
  EXPECT_EQ(read("](" + std::string(5000, 'N') + "e.", {.items = 1000}),
            "pickle: more than 1000 list entries");
  EXPECT_EQ(read("Nr\xff\xff\xff\xff."),
            "pickle: instruction 0x72 at offset 1: memo index 4294967295 is above 4000000");
  EXPECT_EQ(read("N.", {.bytes = 1}), "pickle: 2 bytes; the limit is 1");
}

TEST(Pickle, DeepNestingNeedsNoStackOfOurs) {
  std::string deep;
  for (int i = 0; i < 200'000; ++i) deep += ']';
  for (int i = 0; i < 199'999; ++i) deep += 'a';
  auto pickle = read_pickle(bytes_of(deep + "."));
  ASSERT_TRUE(pickle.ok()) << pickle.error().message;
  int64_t depth = 1;
  for (const Value* v = pickle->root; !v->items.empty(); v = v->items[0]) ++depth;
  EXPECT_EQ(depth, 200'000);
}

}  // namespace
}  // namespace ferry::import::torch

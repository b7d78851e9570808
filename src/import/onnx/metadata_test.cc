#include "import/onnx/metadata.h"

#include <gtest/gtest.h>

namespace ferry::import::onnx {
namespace {

using Names = std::vector<std::string>;

TEST(OnnxNames, a_dict_and_a_list_name_the_same_classes) {
  EXPECT_EQ(*parse_names("{0: 'person', 1: 'bicycle'}"), (Names{"person", "bicycle"}));
  EXPECT_EQ(*parse_names("['person', \"bicycle\"]"), (Names{"person", "bicycle"}));
  EXPECT_EQ(*parse_names("{\"0\": \"person\", \"1\": \"bicycle\"}"), (Names{"person", "bicycle"}));
  EXPECT_EQ(*parse_names(" ( 'a' , 'b' , ) "), (Names{"a", "b"}));
}

TEST(OnnxNames, keys_may_come_in_any_order_and_gaps_get_their_number) {
  EXPECT_EQ(*parse_names("{2: 'c', 0: 'a'}"), (Names{"a", "1", "c"}));
}

TEST(OnnxNames, escapes_and_quotes_are_what_python_means) {
  EXPECT_EQ(
      *parse_names(R"(['it\'s', "a \"b\"", 'x\ty', '\u5b89\u5168\u5e3d', '\xe9', 'C:\\d', '\d'])"),
      (Names{"it's", "a \"b\"", "x\ty", "安全帽", "é", "C:\\d", "\\d"}));
  EXPECT_EQ(*parse_names("['头盔', '\\ud83d\\ude00', '\\ud83d']"),
            (Names{"头盔", "😀", "\xef\xbf\xbd"}));
}

TEST(OnnxNames, empty_ones_are_no_names) {
  EXPECT_EQ(*parse_names("{}"), Names{});
  EXPECT_EQ(*parse_names("[]"), Names{});
}

TEST(OnnxNames, anything_else_is_refused_and_never_evaluated) {
  for (const char* text :
       {"", "person", "{0: 'a'", "['a'", "['a' 'b']", "{0 'a'}", "{-1: 'a'}", "{0.5: 'a'}",
        "{99999999999: 'a'}", "{nan: 'a'}", "['a']]", "__import__('os').system('id')", "['a\\",
        "['\\x4'", "['\\uZZZZ']", "[1, 2]", "{0: ['a']}", "['\\U00110000']"}) {
    EXPECT_FALSE(parse_names(text).ok()) << text;
  }
}

TEST(OnnxNumbers, single_numbers_lists_and_tuples_are_read) {
  EXPECT_EQ(*parse_numbers("32"), (std::vector<double>{32}));
  EXPECT_EQ(*parse_numbers("[640, 480]"), (std::vector<double>{640, 480}));
  EXPECT_EQ(*parse_numbers("(8.0, 16.0, 32.0,)"), (std::vector<double>{8, 16, 32}));
  for (const char* text : {"", "[", "[]", "[1", "1 2", "max(1, 2)", "[[1]]"}) {
    EXPECT_FALSE(parse_numbers(text).ok()) << text;
  }
}

}  // namespace
}  // namespace ferry::import::onnx

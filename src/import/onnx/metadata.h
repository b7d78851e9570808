// What exporters write beside the graph: class names as the text of a Python dict or list
// ("{0: 'person', 1: 'bicycle'}"), or JSON, and single numbers or lists of them. The text is read
// as data; nothing in it is evaluated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ferry::import::onnx {

// Class names in the order of their numbers. Takes ['a', "b"], {0: 'a', 1: 'b'} and {"0": "a"}, in
// any order of keys; a class without a name gets its number. Fails on anything else, on more than
// 100000 classes and on keys outside 0..99999.
Result<std::vector<std::string>> parse_names(std::string_view text);

// "32", "[640, 640]", "[8.0, 16.0]", "(640, 640)". Fails on anything else.
Result<std::vector<double>> parse_numbers(std::string_view text);

}  // namespace ferry::import::onnx

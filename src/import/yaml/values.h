// Yaml text as inert values (torch/value.h), the form that a checkpoint's `yaml` attribute has,
// too.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"
#include "import/torch/value.h"

namespace ferry::import {

inline constexpr size_t kMaxYamlText = size_t{1} << 20;

// Scalars by YAML's core rules and Python's spellings (None, True), since args are Python in
// upstream's files; quoted ones are strings. Limits: kMaxYamlText bytes, 100 000 values (aliases
// counted each time), 32 levels. Errors name the line.
Result<const torch::Value*> parse_yaml(torch::Arena& arena, std::string_view text);

}  // namespace ferry::import

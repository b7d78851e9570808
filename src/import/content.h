// Tells what a file that is no model really is, for refusals: a saved web page, a Git LFS pointer,
// a picture.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ferry::import {

// A noun phrase with what to do, such as "a web page (titled 'Not Found'), saved in place of the
// file: download it again"; empty when the bytes look like nothing known.
std::string describe_foreign(std::span<const std::byte> file);

}  // namespace ferry::import

// SHA-256 of bytes in memory (FIPS 180-4), by libcrypto.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ferry {

// The digest as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace ferry

#include "base/sha256.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace ferry {
namespace {

std::string digest_of(std::string_view text) { return sha256_hex(std::as_bytes(std::span(text))); }

// The examples that NIST publishes with FIPS 180-4, and the empty message.
TEST(Sha256, AgreesWithThePublishedExamples) {
  EXPECT_EQ(digest_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

}  // namespace
}  // namespace ferry

#include "import/torch/zip.h"

#include <gtest/gtest.h>

#include "import/torch/test_zip.h"

namespace ferry::import::torch {
namespace {

using test::bytes_of;
using test::make_zip;
using test::ZipFile;

std::string open_error(const std::string& file) {
  auto archive = open_zip(bytes_of(file));
  return archive.ok() ? "opened" : archive.error().message;
}

std::string content(const std::string& file, std::string_view name, uint64_t limit = 1 << 20) {
  auto archive = open_zip(bytes_of(file));
  if (!archive.ok()) return archive.error().message;
  const ZipEntry* entry = archive->find(name);
  if (entry == nullptr) return "absent";
  auto bytes = read_entry(*archive, *entry, limit);
  return bytes.ok() ? std::string(bytes->text()) : bytes.error().message;
}

TEST(Zip, StoredEntriesAreViewsOfTheFile) {
  const Bytes file =
      bytes_of(make_zip({{.name = "a/x", .data = "first"}, {.name = "a/y", .data = "second"}}));
  auto archive = open_zip(file);
  ASSERT_TRUE(archive.ok()) << archive.error().message;
  ASSERT_EQ(archive->entries.size(), 2u);
  auto bytes = read_entry(*archive, *archive->find("a/y"), 100);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(bytes->text(), "second");
  EXPECT_GE(bytes->span.data(), file.span.data());
  EXPECT_LT(bytes->span.data(), file.span.data() + file.span.size());
  EXPECT_TRUE(checksum_matches(*archive->find("a/y"), *bytes));
  EXPECT_FALSE(checksum_matches(*archive->find("a/x"), *bytes));
}

TEST(Zip, DeflatedEntriesUnpack) {
  const std::string text(100'000, 'z');
  EXPECT_EQ(content(make_zip({{.name = "x", .data = text, .deflated = true}}), "x"), text);
  EXPECT_EQ(content(make_zip({{.name = "x", .data = "", .deflated = true}}), "x"), "");
}

TEST(Zip, Zip64FieldsAreRead) {
  EXPECT_EQ(content(make_zip({{.name = "x", .data = "big", .zip64 = true}}), "x"), "big");
}

TEST(Zip, FoldersAreNoEntries) {
  auto archive = open_zip(bytes_of(make_zip({{.name = "a/"}, {.name = "a/x", .data = "1"}})));
  ASSERT_TRUE(archive.ok());
  EXPECT_EQ(archive->entries.size(), 1u);
}

TEST(Zip, AnArchiveWithoutItsDirectoryIsCutShort) {
  const std::string whole = make_zip({{.name = "x", .data = "data"}});
  EXPECT_NE(open_error(whole.substr(0, whole.size() - 22)).find("cut short"), std::string::npos);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(open_error(whole.substr(0, size)), "opened") << size;
}

TEST(Zip, EntriesOutsideTheFileAreRefused) {
  EXPECT_NE(
      open_error(
          make_zip({{.name = "x", .data = "data", .claimed_size = 400, .claimed_stored = 400}}))
          .find("claims 400 bytes"),
      std::string::npos);
  EXPECT_NE(open_error(make_zip({{.name = "x", .data = "data", .claimed_offset = 0xfffffff0}}))
                .find("no local header"),
            std::string::npos);
  EXPECT_NE(open_error(make_zip({{.name = "x",
                                  .data = "data",
                                  .claimed_size = 0x7fffffffffffffff,
                                  .claimed_stored = 0x7fffffffffffffff,
                                  .zip64 = true}}))
                .find("claims"),
            std::string::npos);
}

TEST(Zip, OverlappingEntriesAreRefused) {
  const std::string file =
      make_zip({{.name = "x", .data = "data"}, {.name = "x", .data = "data", .claimed_offset = 0}});
  EXPECT_NE(open_error(file), "opened");
  // Entry y lies inside the data of x: a quoted overlap, as zip bombs are built.
  const std::string inner = make_zip({{.name = "y", .data = "inside"}}, true);
  EXPECT_NE(open_error(make_zip({{.name = "x", .data = inner},
                                 {.name = "y", .data = "inside", .claimed_offset = 31}}))
                .find("overlap"),
            std::string::npos);
}

TEST(Zip, TwoEntriesOfOneNameAreRefused) {
  EXPECT_NE(open_error(make_zip({{.name = "x", .data = "1"}, {.name = "x", .data = "2"}}))
                .find("two entries are named 'x'"),
            std::string::npos);
}

TEST(Zip, EncryptedAndUnknownMethodsAreRefused) {
  EXPECT_NE(open_error(make_zip({{.name = "x", .data = "1", .flags = 1}})).find("encrypted"),
            std::string::npos);
  EXPECT_NE(open_error(make_zip({{.name = "x", .data = "1", .method = 12}})).find("method 12"),
            std::string::npos);
}

TEST(Zip, StoredEntriesCannotUnpackToAnotherLength) {
  EXPECT_NE(open_error(make_zip({{.name = "x", .data = "1234", .claimed_size = 5}}))
                .find("is stored, but claims"),
            std::string::npos);
}

TEST(Zip, DeflatedEntriesMustUnpackToWhatTheyDeclare) {
  const std::string text(1000, 'q');
  for (const int64_t lie : {0, 1, 999, 1001, 5000}) {
    EXPECT_NE(
        content(make_zip({{.name = "x", .data = text, .deflated = true, .claimed_size = lie}}), "x")
            .find("zip: 'x'"),
        std::string::npos)
        << lie;
  }
}

TEST(Zip, ABombIsRefusedBeforeItUnpacks) {
  const std::string zeros(1 << 20, '\0');
  EXPECT_NE(content(make_zip({{.name = "x", .data = zeros, .deflated = true}}), "x", 1000)
                .find("the limit for it is 1000"),
            std::string::npos);
  EXPECT_NE(
      content(
          make_zip({{.name = "x", .data = zeros, .deflated = true, .claimed_size = 4'000'000'000}}),
          "x", uint64_t{1} << 40)
          .find("deflate cannot do"),
      std::string::npos);
}

TEST(Zip, LocalHeadersOfACutArchiveAreWalked) {
  // The second entry has its lengths in a descriptor behind its data, as PyTorch writes them.
  const std::string local =
      make_zip({{.name = "a", .data = "whole"},
                {.name = "b", .data = "PK\x07\x08 looks like one", .flags = 8},
                {.name = "c", .data = std::string(100, 'c'), .flags = 8}},
               true);
  const Bytes cut = bytes_of(local.substr(0, local.size() - 60));
  const ZipRemains remains = walk_local_headers(cut);
  ASSERT_EQ(remains.whole.size(), 2u);
  EXPECT_EQ(remains.whole[1].name, "b");
  EXPECT_EQ(remains.whole[1].size, 19u);
  EXPECT_EQ(remains.cut_name, "c");
  EXPECT_EQ(remains.cut_bytes, 56u);  // 100 + 16 of the descriptor - 60
}

}  // namespace
}  // namespace ferry::import::torch

#include "perf/npy.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "base/mapped_file.h"

namespace ferry::perf {
namespace {

class Npy : public testing::Test {
 protected:
  Npy() : path_(testing::TempDir() + "/ferry_npy_test.npy") {}
  ~Npy() override { std::remove(path_.c_str()); }

  std::string refusal(const std::string& content) {
    EXPECT_TRUE(write_file(path_, std::string_view(content)).ok());
    const auto array = read_npy(path_);
    return array.ok() ? "none" : array.error().message.substr(path_.size());
  }
  // Format 1 with this header and as many bytes of data.
  static std::string file(std::string header, size_t bytes) {
    std::string content("\x93NUMPY\x01\0", 8);
    content += static_cast<char>(header.size());
    content += '\0';
    return content + header + std::string(bytes, '\0');
  }

  std::string path_;
};

TEST_F(Npy, ComesBackAsItWasWritten) {
  const NpyArray array{{1, 2, 3}, {1, -2, 3.5, 4, 5, 1e-20F}};
  ASSERT_TRUE(write_npy(path_, array).ok());
  const auto read = read_npy(path_);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->shape, array.shape);
  EXPECT_EQ(read->values, array.values);
}

TEST_F(Npy, TheHeaderIsAlignedAsNumpysIs) {
  ASSERT_TRUE(write_npy(path_, {{2}, {1, 2}}).ok());
  const auto mapped = MappedFile::open(path_);
  ASSERT_TRUE(mapped.ok());
  EXPECT_EQ(((*mapped)->bytes().size() - 8) % 64, 0U);
}

TEST_F(Npy, OtherFilesAreRefused) {
  EXPECT_EQ(refusal(""), ": is no NumPy file");
  EXPECT_EQ(refusal("a text that is no array"), ": is no NumPy file");
  EXPECT_EQ(refusal(std::string("\x93NUMPY\x01\0\xff\xff{", 11) + "  "),
            ": ends within its header");
  EXPECT_EQ(refusal(file("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", 8)),
            ": holds no 32-bit floats");
  EXPECT_EQ(refusal(file("{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", 8)),
            ": is not in C order");
  EXPECT_EQ(refusal(file("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 8)),
            ": is shorter than its shape says");
  EXPECT_EQ(refusal(file("{'descr': '<f4', 'fortran_order': False, 'shape': "
                         "(99999999999, 99999999999), }",
                         8)),
            ": is shorter than its shape says");
  EXPECT_EQ(refusal(file("{'descr': '<f4', 'fortran_order': False, 'shape': "
                         "(99999999999999999999999,), }",
                         8)),
            ": is shorter than its shape says");
}

TEST_F(Npy, AScalarAndAnEmptyArrayAreArrays) {
  EXPECT_EQ(refusal(file("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 4)), "none");
  EXPECT_EQ(refusal(file("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 5), }", 0)),
            "none");
}

}  // namespace
}  // namespace ferry::perf

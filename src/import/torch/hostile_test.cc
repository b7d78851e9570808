// Checkpoints that no training ever wrote: refused with a sentence, in bounded time and memory.
// Each file is made here.
#include <gtest/gtest.h>

#include "import/torch/import_torch.h"
#include "import/torch/test_pickle.h"
#include "import/torch/test_support.h"
#include "ops/evaluate.h"

namespace ferry::import {
namespace {

using namespace test;

Result<Model> import(const std::string& file) {
  return import_torch_bytes(bytes_of(file), {.height = 32, .width = 32});
}

std::string outcome(const std::string& file) {
  auto model = import(file);
  return model.ok() ? "imported" : model.error().message;
}

// A model of one 1x1 convolution with this weight, and storage "0" of 24 floats beside it.
std::string conv_of(const std::string& weight) {
  return py_module({"torch.nn.modules.conv", "Conv2d", {py_string("weight"), weight}});
}
std::string with_weight(const std::string& weight,
                        const std::string& record = std::string(96, '\0')) {
  return torch_archive(py_checkpoint({conv_of(weight)}), {{"0", record}});
}

#define EXPECT_OUTCOME(file, part)                                                \
  do {                                                                            \
    const std::string got = outcome(file);                                        \
    EXPECT_NE(got.find(part), std::string::npos) << got << "\nlacks: " << (part); \
  } while (false)

TEST(HostileCheckpoint, ItsPlainFormImports) {  // so that the refusals below have one cause each
  EXPECT_EQ(outcome(with_weight(py_tensor({py_storage("0", 24), 0, {8, 3, 1, 1}, {3, 1, 1, 1}}))),
            "imported");
}

TEST(HostileCheckpoint, TensorsMustLieInTheirStorage) {
  const std::string storage = py_storage("0", 24);
  EXPECT_OUTCOME(with_weight(py_tensor({storage, 1, {8, 3, 1, 1}, {3, 1, 1, 1}})),
                 "reaches element 25 of storage '0', which has 24");
  EXPECT_OUTCOME(with_weight(py_tensor({storage, -1, {8, 3, 1, 1}, {3, 1, 1, 1}})),
                 "has offset -1");
  EXPECT_OUTCOME(with_weight(py_tensor({storage, 0, {8, -3, 1, 1}, {3, 1, 1, 1}})),
                 "shape contains -3");
  EXPECT_OUTCOME(with_weight(py_tensor({storage, 0, {8, 3, 1, 1}, {3, -1, 1, 1}})),
                 "strides contains -1");
  EXPECT_OUTCOME(with_weight(py_tensor({storage, 0, {8, 3, 1, 1}, {INT64_MAX / 2, 1, 1, 1}})),
                 "overflow");
  EXPECT_OUTCOME(with_weight(py_tensor({storage, INT64_MAX, {8, 3, 1, 1}, {3, 1, 1, 1}})),
                 "overflow");
  EXPECT_OUTCOME(with_weight(py_tensor({storage, 0, {8, 3, 1, 1}, {3, 1, 1}})), "3 strides");
  EXPECT_OUTCOME(with_weight(py_tensor({storage, 0, {INT64_MAX, INT64_MAX}, {0, 0}})), "GiB");
  EXPECT_OUTCOME(
      with_weight(py_tensor({storage, 0, std::vector<int64_t>(9, 1), std::vector<int64_t>(9, 1)})),
      "9 dimensions");
}

TEST(HostileCheckpoint, StoragesMustBeWhatTheyDeclare) {
  const auto weight = [](const std::string& storage) {
    return py_tensor({storage, 0, {8, 3, 1, 1}, {3, 1, 1, 1}});
  };
  EXPECT_OUTCOME(with_weight(weight(py_storage("0", 25))),
                 "'archive/data/0' has 96 bytes, its tensors say 100");
  EXPECT_OUTCOME(with_weight(weight(py_storage("1", 24))), "the archive has no 'archive/data/1'");
  EXPECT_OUTCOME(with_weight(weight(py_storage("0", INT64_MAX))),
                 "claims 9223372036854775807 elements");
  EXPECT_OUTCOME(with_weight(weight(py_storage("0", 24, "QUInt8Storage"))),
                 "a storage of type 'torch.QUInt8Storage'");
  EXPECT_OUTCOME(with_weight(weight(py_storage("../../etc/passwd", 24))), "the archive has no");
  EXPECT_OUTCOME(with_weight(weight(py_string("0"))), "a tensor's storage is '0'");
}

TEST(HostileCheckpoint, AHugeViewOfASmallStorageIsNotMade) {
  // 2^30 equal elements by a stride of 0: 4 GiB from 4 bytes.
  EXPECT_OUTCOME(
      with_weight(py_tensor({py_storage("0", 24), 0, {1 << 15, 1 << 15, 1, 1}, {0, 0, 0, 0}})),
      "views that unpack to many times its length");
}

TEST(HostileCheckpoint, ManyModulesOfOneStorageDoNotMultiplyIt) {
  // 400 convolutions that all view one megabyte of f16: as f32, 800 megabytes.
  const int64_t channels = 724;
  Parts layers;
  for (int i = 0; i < 400; ++i) {
    layers.push_back(conv_of(py_tensor({py_storage("0", channels * channels, "HalfStorage"),
                                        0,
                                        {channels, channels, 1, 1},
                                        {channels, 1, 1, 1}})));
  }
  layers.insert(
      layers.begin(),
      conv_of(py_tensor(
          {py_storage("1", 3 * channels, "HalfStorage"), 0, {channels, 3, 1, 1}, {3, 1, 1, 1}})));
  const std::string record(static_cast<size_t>(channels * channels * 2), '\0');
  EXPECT_OUTCOME(torch_archive(py_checkpoint(layers),
                               {{"0", record}, {"1", std::string(3 * channels * 2, '\0')}}),
                 "unpack to many times");
}

TEST(HostileCheckpoint, AModuleThatContainsItselfIsRefused) {
  // The state's `_modules` dict holds the module whose state it is.
  const std::string self =
      "\x80\x02" + py_put(py_global("torch.nn.modules.container", "Sequential") + ")\x81", 7) +
      py_dict({py_string("_modules"), py_dict({py_string("model"), py_get(7)})}) + "b.";
  EXPECT_OUTCOME(torch_archive(self), "module 'model' contains itself");
}

TEST(HostileCheckpoint, DeepModulesAreRefused) {
  std::string module = py_module({"torch.nn.modules.linear", "Identity"});
  for (int i = 0; i < 100; ++i)
    module = py_module({"torch.nn.modules.container", "Sequential", {}, {py_string("0"), module}});
  EXPECT_OUTCOME(torch_archive(py_checkpoint({module})), "nested more than 64 deep");
}

TEST(HostileCheckpoint, SharedModulesThatDoubleAtEveryLevelAreRefused) {
  // Each level holds the one below twice: 2^40 modules in 2 KB.
  std::string module = py_put(py_module({"torch.nn.modules.linear", "Identity"}), 100);
  for (int i = 0; i < 40; ++i) {
    module = py_put(py_module({"torch.nn.modules.container",
                               "Sequential",
                               {},
                               {py_string("0"), module, py_string("1"), py_get(100 + i)}}),
                    101 + i);
  }
  EXPECT_OUTCOME(torch_archive(py_checkpoint({module})), "the network has more than 20000 modules");
}

TEST(HostileCheckpoint, SharedConvolutionsAreBoundedInNodes) {
  std::string module = py_put(py_module({"torch.nn.modules.activation", "SiLU"}), 100);
  for (int i = 0; i < 40; ++i) {
    module = py_put(py_module({"torch.nn.modules.container",
                               "Sequential",
                               {},
                               {py_string("0"), module, py_string("1"), py_get(100 + i)}}),
                    101 + i);
  }
  EXPECT_OUTCOME(torch_archive(py_checkpoint({module})), "the network has more than");
}

TEST(HostileCheckpoint, LayersTakeInputsOnlyFromLayersBeforeThem) {
  for (const int64_t from : {int64_t{0}, int64_t{5}, int64_t{-2}, INT64_MIN, INT64_MAX}) {
    const std::string layer =
        py_module({"torch.nn.modules.linear", "Identity", {}, {}, {py_string("f"), py_int(from)}});
    EXPECT_OUTCOME(torch_archive(py_checkpoint({layer})), "which does not come before it");
  }
}

TEST(HostileCheckpoint, AHeadWithoutLevelsIsRefused) {
  const std::string list = py_module({"torch.nn.modules.container", "ModuleList"});
  const std::string head = py_module(
      {"models.yolo", "Detect", {}, {py_string("m"), list}, {py_string("f"), py_list({})}});
  EXPECT_OUTCOME(torch_archive(py_checkpoint({head})), "has 0 convolutions for 0 inputs");
}

TEST(HostileCheckpoint, BigEndianWeightsAreRefused) {
  EXPECT_OUTCOME(torch_archive("N.", {}, {{.name = "archive/byteorder", .data = "big"}}),
                 "'big' byte order");
}

TEST(HostileCheckpoint, OtherArchivesAreNamed) {
  EXPECT_OUTCOME(make_zip({{.name = "images/1.jpg", .data = "x"}}), "without data.pkl");
  EXPECT_OUTCOME(make_zip({{.name = "yolov5s.pt", .data = "x"}}),
                 "a zip archive that contains 'yolov5s.pt': unpack it first");
  EXPECT_OUTCOME(
      make_zip({{.name = "a/data.pkl", .data = "N."}, {.name = "b/data.pkl", .data = "N."}}),
      "several checkpoints");
  EXPECT_OUTCOME(make_zip({}), "without data.pkl");
}

TEST(HostileCheckpoint, OtherContentIsNamed) {
  EXPECT_OUTCOME(torch_archive("\x80\x02K\x05."), "the checkpoint holds 5, not a model");
  EXPECT_OUTCOME(
      torch_archive("\x80\x02" +
                    py_dict({py_string("epoch"), py_int(3), py_string("optimizer"), "N"}) + "."),
      "holds no model: neither 'ema' nor 'model' is one (keys: 'epoch', 'optimizer')");
  EXPECT_OUTCOME(std::string("\x80\x02]q\x01.", 6),
                 "a Python pickle, but not one that torch.save wrote");
  EXPECT_OUTCOME("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a Git LFS pointer");
  EXPECT_OUTCOME(std::string("\x1f\x8b\x08", 3), "a gzip file");
  EXPECT_OUTCOME("{\"message\": \"Not Found\"}", "JSON text");
  EXPECT_OUTCOME(std::string(100, '\0'), "a file of zeros");
  EXPECT_OUTCOME("hello", "neither a zip archive nor a stream of pickles");
}

TEST(HostileCheckpoint, ADamagedRecordIsReportedAndReadAsPyTorchReadsIt) {
  // torch.load does not look at checksums either.
  std::string file = with_weight(py_tensor({py_storage("0", 24), 0, {8, 3, 1, 1}, {3, 1, 1, 1}}),
                                 std::string(96, '\1'));
  file[file.find(std::string(96, '\1')) + 5] ^= 0x40;
  auto model = import(file);
  ASSERT_TRUE(model.ok()) << model.error().message;
  ASSERT_EQ(model->source.warnings.size(), 1u);
  EXPECT_NE(model->source.warnings[0].find("checksum of 'archive/data/0'"), std::string::npos);
}

TEST(HostileCheckpoint, ADeflatedBombInARecordIsRefused) {
  // 80 MiB of zeros in 80 KB.
  const int64_t elements = 20 << 20;
  const std::string pickle = py_checkpoint(
      {conv_of(py_tensor({py_storage("0", elements), 0, {elements / 3, 3, 1, 1}, {3, 1, 1, 1}}))});
  const std::string file = make_zip({{.name = "archive/data.pkl", .data = pickle},
                                     {.name = "archive/data/0",
                                      .data = std::string(static_cast<size_t>(elements) * 4, '\0'),
                                      .deflated = true}});
  EXPECT_OUTCOME(file, "the limit for it is");
}

// Truncations and single-byte changes of small real checkpoints end in a model or a sentence.
TEST(HostileCheckpoint, ChangedBytesOfRealCheckpointsNeverCrash) {
  for (const char* name : {"tiny.pt", "tiny_legacy.pt"}) {
    const std::string whole = read_file(std::string("tests/data/checkpoints/") + name);
    ASSERT_FALSE(whole.empty()) << name;
    ASSERT_TRUE(import(whole).ok()) << name;
    for (size_t at = 0; at < whole.size(); at += 11) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ (1 << (at % 8)));
      import(changed).ok();
      EXPECT_FALSE(import(whole.substr(0, at)).ok()) << name << " cut to " << at;
    }
  }
}

}  // namespace
}  // namespace ferry::import

// Weight files: against files of Hugging Face's library. array_files_test.cpp has small and damaged ones.
#include "core/data/safetensors.h"

#include "core/base/file.h"
#include "tests/support/data_files.h"
#include "tests/support/growth.h"
#include "tests/support/resource_limit.h"

namespace sweep::safetensors_test {

// A file with this header and that many bytes of data.
std::string file_of(const std::string& header, std::size_t data_bytes) {
  return test::safetensors_file(header, test::some_bytes(data_bytes));
}

TEST(ReadSafetensors, ConvertsEveryFloatFormatAsNumpyDoes) {
  // tests/data/make_float_formats.py wrote it with Hugging Face's library.
  const TensorFile file = read_safetensors(SWEEP_TEST_DATA "/float_formats.safetensors");
  EXPECT_EQ(file.tensors.size(), 8u);
  for (const std::string format : {"F16", "BF16", "F64"}) {
    SCOPED_TRACE(format);
    const NamedTensor* values = TensorIndex(file).find(format);
    const NamedTensor* expected = TensorIndex(file).find(format + ".expected");
    ASSERT_TRUE(values != nullptr && expected != nullptr);
    EXPECT_EQ(values->shape, expected->shape);
    ASSERT_EQ(values->values.size(), expected->values.size());
    ASSERT_GE(values->values.size(), 20u);
    for (std::size_t i = 0; i < values->values.size(); ++i) {
      const float found = values->values[i], wanted = expected->values[i];
      if (std::isnan(wanted))
        EXPECT_TRUE(std::isnan(found)) << i;
      else
        EXPECT_EQ(std::memcmp(&found, &wanted, 4), 0) << i << ": " << found << " instead of " << wanted;
    }
  }
  EXPECT_THAT(TensorIndex(file).find("empty")->shape, ElementsAre(3, 0, 2));
  EXPECT_TRUE(TensorIndex(file).find("empty")->values.empty());
  EXPECT_THAT(TensorIndex(file).find("scalar")->shape, ElementsAre());
  EXPECT_THAT(TensorIndex(file).find("scalar")->values, ElementsAre(2.5f));
  EXPECT_EQ(file.metadata.at("key"), "välue");
  EXPECT_EQ(TensorIndex(file).find("F32"), nullptr);
}

TEST(ReadSafetensors, ReadsAStateDictOfPyTorch) {
  const TensorFile file = read_safetensors(SWEEP_TEST_DATA "/cnn.safetensors");
  std::vector<std::string> names;
  for (const NamedTensor& tensor : file.tensors) names.push_back(tensor.name);
  EXPECT_THAT(names, ElementsAre("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight",
                                 "fc1.bias", "fc2.weight", "fc2.bias", "out.weight", "out.bias"));
  EXPECT_THAT(TensorIndex(file).find("conv2.weight")->shape, ElementsAre(12, 6, 5, 5));
  // torch.manual_seed(0); torch.nn.Conv2d(1, 6, 5).weight[0, 0, 0, :3]
  EXPECT_FLOAT_EQ(TensorIndex(file).find("conv1.weight")->values[0], -0.0014973640f);
  EXPECT_FLOAT_EQ(TensorIndex(file).find("conv1.weight")->values[1], 0.1072887182f);
  EXPECT_FLOAT_EQ(TensorIndex(file).find("conv1.weight")->values[2], -0.1646090299f);
}

TEST(ReadSafetensors, TakesAFileWithoutTensors) {
  EXPECT_TRUE(parse_safetensors(file_of("{}", 0), "FILE").tensors.empty());
  EXPECT_THAT(parse_safetensors(file_of(R"({"__metadata__":{"a":"b"}})", 0), "FILE").metadata,
              ElementsAre(Pair("a", "b")));
}

TensorFile some_tensors() {
  return {{{"conv1.weight", {2, 1, 1, 2}, {1, -2.5f, 3e-45f, std::numeric_limits<float>::infinity()}},
           {"größe \"x\"\n", {3}, {0.1f, -0.0f, 3.4e38f}},
           {"nothing", {0, 4}, {}},
           {"scalar", {}, {7}}},
          {{"epoch", "3"}, {"state", "{\"a\": 1}"}}};
}

template <class File>
std::string written(const File& file) {
  const test::TemporaryDirectory directory;
  write_safetensors(directory.path() / "file", file);
  return read_file(directory.path() / "file");
}

TEST(WriteSafetensors, KeepsNamesShapesBitsAndMetadata) {
  const TensorFile file = parse_safetensors(written(some_tensors()), "FILE");
  const TensorFile expected = some_tensors();
  EXPECT_EQ(file.metadata, expected.metadata);
  ASSERT_EQ(file.tensors.size(), expected.tensors.size());
  for (std::size_t i = 0; i < file.tensors.size(); ++i) {
    EXPECT_EQ(file.tensors[i].name, expected.tensors[i].name);
    EXPECT_EQ(file.tensors[i].shape, expected.tensors[i].shape);
    EXPECT_EQ(test::bytes_of(file.tensors[i].values), test::bytes_of(expected.tensors[i].values));
  }
}

TEST(WriteSafetensors, WritesTheBytesThatTheFormatAsksFor) {
  const std::string header =
      R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  std::string expected = {static_cast<char>(padded.size()), 0, 0, 0, 0, 0, 0, 0};
  expected +=
      padded + std::string("\x00\x00\x80\x3f\x00\x00\x00\xc0", 8);  // 1 and -2 in IEEE 754, little-endian
  EXPECT_EQ(written(TensorFile{{{"a", {1, 2}, {1, -2}}}, {{"k", "v"}}}), expected);
}

TEST(WriteSafetensors, TakesMetadataThatIsEscapedAlready) {
  const std::string text = "{\"a\": 1}\n\\\x01 välue\n";
  const std::string escaped = escaped_text(text);
  for (const bool has_other : {false, true}) {
    for (const bool has_tensors : {false, true}) {
      TensorFileView file;
      const float value = 0.5f;
      if (has_other) file.metadata = {{"other", "\"quoted\""}};
      if (has_tensors) file.tensors = {{"a", {1}, std::span(&value, 1)}};
      file.escaped_metadata = {{"text", escaped}, {"empty", ""}};
      auto expected = file.metadata;
      expected.insert({{"text", text}, {"empty", ""}});
      const TensorFile found = parse_safetensors(written(file), "FILE");
      EXPECT_EQ(found.metadata, expected);
      EXPECT_EQ(found.tensors.size(), file.tensors.size());
    }
  }
}

TEST(WriteSafetensors, TakesValuesWhereverTheyLie) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const std::span<const float> all(values);
  const TensorFileView view = {{{"joined", {2}, all.first(2)},
                                {"to the one before", {1}, all.subspan(2, 1)},
                                {"nothing", {0}, {}},
                                {"apart", {2}, all.subspan(4)},
                                {"before it", {1}, all.subspan(3, 1)}},
                               {}};
  const TensorFile file = {{{"joined", {2}, {1, 2}},
                            {"to the one before", {1}, {3}},
                            {"nothing", {0}, {}},
                            {"apart", {2}, {5, 6}},
                            {"before it", {1}, {4}}},
                           {}};
  EXPECT_EQ(written(view), written(file));
}

TEST(WriteSafetensors, RefusesWhatTheFormatCannotHold) {
  const auto error = [](const TensorFile& file) {
    const test::TemporaryDirectory directory;
    const std::string message =
        message_of<DataError>([&] { write_safetensors(directory.path() / "file", file); });
    EXPECT_TRUE(std::filesystem::is_empty(directory.path())) << "something was left behind";
    return message;
  };
  EXPECT_THAT(error({{{"a", {1}, {1}}, {"a", {1}, {2}}}, {}}),
              HasSubstr("tensor \"a\": the name is used twice"));
  EXPECT_THAT(error({{{"__metadata__", {1}, {1}}}, {}}), HasSubstr("reserves this name"));
  EXPECT_THAT(error({{{"a", {2, 2}, {1, 2, 3}}}, {}}), HasSubstr("has 3 values, its shape [2, 2] needs 4"));
  EXPECT_THAT(error({{{"\xff", {1}, {1}}}, {}}), HasSubstr("not valid UTF-8"));
  EXPECT_THAT(error({{}, {{"k", "\xc3"}}}), HasSubstr("not valid UTF-8"));
}

TEST(WriteSafetensors, RefusesAHeaderThatNobodyReadsAndLeavesTheOldFile) {
  const test::TemporaryDirectory directory;
  const std::filesystem::path path = directory.path() / "file";
  write_safetensors(path, some_tensors());
  const std::string before = read_file(path);
  std::string text;
  text.resize(100'000'000, 'x');
  TensorFileView file;
  file.escaped_metadata = {{"epochs", text}};
  EXPECT_THAT(message_of<DataError>([&] { write_safetensors(path, file, Survives::kKill); }),
              HasSubstr("file: its header would have 100000032 bytes, at most 100000000 are allowed"));
  EXPECT_EQ(read_file(path), before);
}

TEST(WriteSafetensors, LeavesTheOldFileWhenItCannotWrite) {
  const test::TemporaryDirectory directory;
  const std::filesystem::path file = directory.write("file", "old");
  const test::ResourceLimit full_disk(RLIMIT_FSIZE, 16);
  EXPECT_THROW(write_safetensors(file, some_tensors()), IoError);
  EXPECT_EQ(read_file(file), "old");
}

TEST(ParseSafetensors, TakesLinearTimeForManyTensors) {
  const auto parse = [](std::size_t count) {
    std::string header = "{";
    for (std::size_t i = 0; i < count; ++i) {
      header += (i > 0 ? ",\"" : "\"") + std::to_string(i) +
                "\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}";
    }
    const TensorFile tensors = parse_safetensors(file_of(header + "}", 0), "f");
    const TensorIndex index(tensors);
    for (const NamedTensor& tensor : tensors.tensors) ASSERT_EQ(index.find(tensor.name), &tensor);
    EXPECT_EQ(index.find("missing"), nullptr);
  };
  EXPECT_LT(test::growth(parse, 2'000), test::kLinearGrowth);
}

}  // namespace sweep::safetensors_test

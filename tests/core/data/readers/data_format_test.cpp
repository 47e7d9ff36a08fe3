// Formats are told apart by content, each by its row of the table.
#include "core/data/readers/readers.h"

#include <sys/stat.h>

#include "core/data/readers/input_file.h"
#include "tests/support/image_files.h"

namespace sweep::data_format_test {

using test::npy_file;

std::string_view format_of(const fs::path& path) {
  const DataFormat* format = recognise_format(path);
  return format == nullptr ? "none" : format->name;
}

DataArrays read(const std::string& source, std::string_view format = "") {
  const std::vector<fs::path> paths = expand_source(source);
  return choose_format(format, paths).read(paths, {});
}

std::string error_of(const std::string& source, std::string_view format = "") {
  return message_of<DataError>([&] { read(source, format); });
}

using DataFormat = test::InDirectory;

TEST_F(DataFormat, IsRecognisedByContent) {
  const std::string png = test::png_file(test::flat_pixels(2, 2, {1, 2, 3}));
  directory.write("images/a/1", png);
  directory.write("images/b/2", "text");
  directory.write("cifar10/data_batch_1.bin", std::string(3073, '\1'));
  directory.write("cifar100/train.bin", std::string(3074, '\1'));
  directory.write("arrays/x.npy", npy_file("|u1", "(1,)", "a"));
  directory.write("tables/train.csv", "x,label\n1,a\n");
  directory.write("npy", npy_file("|u1", "(1,)", "a"));
  directory.write("npz", test::zip_file({{"x.npy", "", true}}));
  directory.write("tsv", "x\tlabel\n1\ta\n");
  directory.write("text", "hello");
  directory.write("idx", std::string("\0\0\x08\x03", 4));
  directory.write("safetensors", test::safetensors_file("{}", ""));
  for (const auto& [name, format] : std::map<std::string, std::string>{{"images", "image_folder"},
                                                                       {"images/a", "none"},
                                                                       {"arrays", "npy"},
                                                                       {"tables", "csv"},
                                                                       {"text", "none"},
                                                                       {"", "none"},
                                                                       {"nowhere", "none"},
                                                                       {"cifar10", "cifar10"},
                                                                       {"cifar100", "cifar100"},
                                                                       {"npy", "npy"},
                                                                       {"npz", "npz"},
                                                                       {"tsv", "tsv"},
                                                                       {"idx", "idx"},
                                                                       {"safetensors", "safetensors"}})
    EXPECT_EQ(format_of(directory / name), format) << name;
}

TEST_F(DataFormat, ReadsAPathOrAPattern) {
  directory.write("part-1.csv", "x,label\n1,a\n");
  directory.write("part-2.csv", "x,label\n2,b\n");
  const auto count = [&](const std::string& name, std::string_view format) {
    return read((directory / name).string(), format).arrays.front().shape.front();
  };
  EXPECT_EQ(count("part-1.csv", ""), 1);
  EXPECT_EQ(count("part-*.csv", ""), 2);
  EXPECT_EQ(count("", "csv"), 2);
}

TEST_F(DataFormat, HasArraysThatAreOfNoUseUntilTheyAreNeeded) {
  directory.write("folder/names.npy", npy_file("<U1", "(2,)", "a...b..."));
  directory.write("folder/x.npy", npy_file("|u1", "(1,)", "a"));
  const DataArrays arrays = read((directory / "folder").string());
  EXPECT_THAT(arrays.arrays.front().problem, HasSubstr("names.npy: holds values of type \"<U1\""));
  EXPECT_EQ(arrays.files.front().sha256, file_sha256(directory / "folder/names.npy"));
  const std::string header =
      R"({"n": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
          "x": {"dtype": "U8", "shape": [1], "data_offsets": [4, 5]}})";
  const fs::path file = directory.write("file", test::safetensors_file(header, "....a"));
  const std::vector<NamedArray> tensors = read(file.string()).arrays;
  EXPECT_THAT(tensors.at(0).problem, HasSubstr("tensor \"n\": holds a single number"));
  EXPECT_EQ(tensors.at(0).name, "n");
  EXPECT_EQ(std::get<0>(tensors.at(1).values)[0], 'a');
}

TEST_F(DataFormat, SaysWhatIsKnownOfDataThatIsNot) {
  const std::string path = directory.write("data", "hello").string();
  EXPECT_THAT(error_of(path),
              HasSubstr(path + ": its format is not recognised. Known are: idx, a folder with"));
  directory.write("unpacked/arrays/x.npy", npy_file("|u1", "(1,)", "a"));
  EXPECT_THAT(
      error_of((directory / "unpacked").string()),
      HasSubstr("unpacked: its format is not recognised, but that of \"arrays\" in it is: npy. Known"));
  EXPECT_EQ(error_of(directory.write("empty", "").string()), (directory / "empty: is empty").string());
  fs::create_directories(directory / "folder");
  EXPECT_EQ(error_of((directory / "folder").string()), (directory / "folder: is an empty folder").string());
  EXPECT_EQ(error_of((directory / "absent").string()),
            (directory / "absent").string() + ": cannot open: No such file or directory");
}

TEST_F(DataFormat, RefusesPipesAndLinksToThemselvesAtOnce) {
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_of((directory / "pipe").string()), HasSubstr("pipe: is neither a file nor a folder"));
  for (const char* format : {"csv", "idx", "npy", "npz", "safetensors"}) {
    EXPECT_THAT(error_of((directory / "pipe").string(), format), HasSubstr("is not a regular file"));
  }
  fs::create_symlink("loop", directory / "loop");
  EXPECT_THAT(error_of((directory / "loop").string()), HasSubstr("Too many levels of symbolic links"));
}

TEST_F(DataFormat, RefusesFormatsThatItDoesNotKnow) {
  EXPECT_EQ(message_of<ConfigError>([] { read("/", "image_foldr"); }),
            "unknown data set format \"image_foldr\"; allowed: \"idx\", \"cifar10\", \"cifar100\", \"npy\", "
            "\"npz\", \"safetensors\", \"image_folder\", \"csv\", \"tsv\". Did you mean \"image_folder\"?");
}

TEST(CheckMemory, RefusesWhatDoesNotFit) {
  EXPECT_NO_THROW(check_memory(2, {1, 2, 2}, 1, "X"));
  constexpr std::uint64_t kMany = std::uint64_t{1} << 60;
  EXPECT_THAT(
      message_of<DataError>([] {
        check_memory(kMany, {1, 2, 2}, 1, "X");
      }),
      HasSubstr(
          "X: 1152921504606846976 samples of shape [1, 2, 2] need 4611686018427387904 bytes; at most "));
  EXPECT_THAT(message_of<DataError>([] {
                check_memory(kMany, {4, 4}, 4, "X");
              }),
              HasSubstr("need more than 2^64 bytes; at most "));
}

}  // namespace sweep::data_format_test

// Formats are told apart by content, each by its row of the table.
#include "core/data/readers/data_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/base/error.h"
#include "tests/support/array_files.h"
#include "tests/support/image_files.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_directory.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

using test::message_of;
using test::npy_file;
using test::TemporaryDirectory;
using testing::ElementsAre;
using testing::HasSubstr;

std::string_view format_of(const fs::path& path) {
  const DataFormat* format = recognise_format(data_formats(), path);
  return format == nullptr ? "none" : format->name;
}

RawData read(const std::string& source, std::string_view format = "") {
  const std::vector<fs::path> paths = expand_source(source);
  return choose_format(data_formats(), format, paths).read(paths, {});
}

std::string error_of(const std::string& source, std::string_view format = "") {
  return message_of<DataError>([&] { read(source, format); });
}

TEST(DataFormat, IsRecognisedByContent) {
  const TemporaryDirectory directory;
  const std::string png = test::png_file(test::flat_pixels(2, 2, {1, 2, 3}));
  directory.write("images/a/1", png);
  directory.write("images/b/2", png);
  directory.write("cifar10/data_batch_1.bin", std::string(3073, '\1'));
  directory.write("cifar100/train.bin", std::string(3074, '\1'));
  directory.write("arrays/x.npy", npy_file("|u1", "(1,)", "a"));
  directory.write("tables/train.csv", "x,label\n1,a\n");
  EXPECT_EQ(format_of(directory / "images"), "image_folder");
  EXPECT_EQ(format_of(directory / "cifar10"), "cifar10");
  EXPECT_EQ(format_of(directory / "cifar100"), "cifar100");
  EXPECT_EQ(format_of(directory / "arrays"), "npy");
  EXPECT_EQ(format_of(directory / "tables"), "csv");
  EXPECT_EQ(format_of(directory.write("one", npy_file("|u1", "(1,)", "a"))), "npy");
  EXPECT_EQ(format_of(directory.write("two", test::zip_file({{"x.npy", "", true}}))), "npz");
  EXPECT_EQ(format_of(directory.write("three", "x\tlabel\n1\ta\n")), "tsv");
  EXPECT_EQ(format_of(directory.write("four", "hello")), "none");
  EXPECT_EQ(format_of(directory.write("five", test::safetensors_file("{}", ""))), "safetensors");
  EXPECT_EQ(format_of(directory.path()), "none");
  EXPECT_EQ(format_of(directory / "nowhere"), "none");
}

TEST(DataFormat, ReadsAPathOrAPattern) {
  const TemporaryDirectory directory;
  directory.write("part-1.csv", "x,label\n1,a\n");
  directory.write("part-2.csv", "x,label\n2,b\n");
  const auto count = [&](const std::string& name, std::string_view format) {
    return read((directory / name).string(), format).train.count;
  };
  EXPECT_EQ(count("part-1.csv", ""), 1u);
  EXPECT_EQ(count("part-*.csv", ""), 2u);
  EXPECT_EQ(count("", "csv"), 2u);
}

TEST(DataFormat, SaysWhatIsKnownOfDataThatIsNot) {
  const TemporaryDirectory directory;
  const std::string path = directory.write("data", "hello").string();
  EXPECT_THAT(error_of(path),
              HasSubstr(path + ": its format is not recognised. Known are: idx, a folder with"));
  EXPECT_EQ(error_of(directory.write("empty", "").string()), (directory / "empty: is empty").string());
  fs::create_directories(directory / "folder");
  EXPECT_EQ(error_of((directory / "folder").string()), (directory / "folder: is an empty folder").string());
  EXPECT_EQ(error_of((directory / "absent").string()),
            (directory / "absent").string() + ": cannot open: No such file or directory");
}

TEST(DataFormat, RefusesPipesAndLinksToThemselvesAtOnce) {
  const TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(error_of((directory / "pipe").string()), HasSubstr("pipe: is neither a file nor a folder"));
  for (const char* format : {"csv", "npy", "npz", "safetensors"}) {
    EXPECT_THAT(error_of((directory / "pipe").string(), format), HasSubstr("is not a regular file"));
  }
  fs::create_symlink("loop", directory / "loop");
  EXPECT_THAT(error_of((directory / "loop").string()), HasSubstr("Too many levels of symbolic links"));
}

TEST(DataFormat, RefusesFormatsThatItDoesNotKnow) {
  EXPECT_EQ(message_of<ConfigError>([] { read("/", "image_foldr"); }),
            "unknown data set format \"image_foldr\"; allowed: \"idx\", \"cifar10\", \"cifar100\", \"npy\", "
            "\"npz\", \"safetensors\", \"image_folder\", \"csv\", \"tsv\". Did you mean \"image_folder\"?");
}

TEST(CheckRawData, RefusesWhatItsCommentsRuleOut) {
  RawData good;
  good.shape = {2};
  good.class_names = {"a", "b"};
  good.train = {2, std::vector<float>{1, 2, 3, 4}, {0, 1}, {}};
  EXPECT_NO_THROW(check_raw_data(good, "X"));
  const auto error = [&](auto change) {
    RawData bad = good;
    change(bad);
    return message_of<DataError>([&] { check_raw_data(bad, "X"); });
  };
  EXPECT_THAT(error([](RawData& d) { d.train.count = 0; }), HasSubstr("holds no samples"));
  EXPECT_THAT(error([](RawData& d) { d.train.count = 3; }), HasSubstr("need 6 values, found 4"));
  EXPECT_THAT(error([](RawData& d) { d.train.classes = {0}; }), HasSubstr("holds 1 targets for 2 samples"));
  EXPECT_THAT(error([](RawData& d) { d.train.classes = {0, 2}; }), HasSubstr("class 2 is out of range"));
  EXPECT_THAT(error([](RawData& d) { d.class_names.clear(); }), HasSubstr("either classes or values"));
  EXPECT_THAT(error([](RawData& d) {
                d.test = {1, std::vector<std::uint8_t>{1, 2}, {0}, {}};
              }),
              HasSubstr("one part holds bytes, another floats"));
}

}  // namespace
}  // namespace sweep

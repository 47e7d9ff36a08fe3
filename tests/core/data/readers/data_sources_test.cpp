// Sources of data in every format, files and folders: what they give, and what is said of wrong ones.
#include "core/data/readers/readers.h"

#include <sys/stat.h>
#include <unistd.h>

#include "core/data/data_from_arrays.h"
#include "core/data/readers/image_folder/image_folder.h"
#include "tests/support/dataset_rows.h"
#include "tests/support/file_rows.h"

namespace sweep::data_sources_test {

using test::write_files;

// A test in a directory of its own, so that messages have the paths of its files as they are below it.
class DataSource : public test::InDirectory {
 public:
  DataSource() { fs::current_path(directory.path()); }
  ~DataSource() override { fs::current_path(before_); }

 private:
  const fs::path before_ = fs::current_path();
};

void expect_digests(const Dataset& data) {
  for (const DataFile& file : data.files) {
    EXPECT_EQ(file.sha256.size(), 64u) << file.path;
    if (!fs::is_regular_file(file.path) || read_file(file.path).starts_with("\x1f\x8b")) continue;
    EXPECT_EQ(file.sha256, file_sha256(file.path)) << file.path;
  }
}

// A row of data_sources.json: files below the folder "data", the "source" if it is not that folder, and keys
// of the data set; and what it gives, or the "formats" of some of the files.
TEST_F(DataSource, GivesWhatItsRowSays) {
  const Environment decodes_always("SWEEP_CACHE_SIZE", "0"),
      elsewhere("SWEEP_DATA", directory.path().string());
  const auto rows = nlohmann::json::parse(read_file(SWEEP_TEST_DATA "/data_sources.json"));
  ASSERT_GE(rows.size(), 67u);
  for (const auto& row : rows) {
    fs::remove_all("data");
    fs::create_directory("data");
    for (const auto& [name, content] : row.at("files").items())
      write_files(directory, {{"data/" + name, content}});
    if (row.contains("formats")) {
      for (const auto& [name, wanted] : row.at("formats").items()) {
        const DataFormat* format = recognise_format(fs::path("data") / name);
        EXPECT_EQ(format == nullptr ? "none" : format->name, wanted.get<std::string>()) << name;
      }
      continue;
    }
    test::expect_row(row, [&] {
      DatasetSpec spec = test::dataset_spec_of(row);
      spec.path = row.value("source", "data");
      Dataset data = load_dataset(spec);
      EXPECT_THAT(data.skipped, IsEmpty());
      expect_digests(data);
      return data;
    });
  }
}

TEST_F(DataSource, OfCifarHasPlanesOfRedGreenAndBlue) {
  write_files(directory, {{"100/train.bin", {{"cifar", {{0, 1, 'r'}, {0, 2, 'R'}}}}}});
  for (const int batch : {1, 2, 3, 4, 5})
    write_files(directory,
                {{fmt::format("10/data_batch_{}.bin", batch), {{"cifar", {{1, batch == 1 ? 'r' : 'R'}}}}}});
  for (const char* path : {"100", "10"}) {
    const Dataset data = load_dataset({.path = path});
    const auto bytes = data.train.set->pixels();
    for (const auto& [at, byte] : {std::pair(0, 'r'), {1023, 'r'}, {1024, 'g'}, {3071, 'b'}, {3072, 'R'}})
      EXPECT_EQ(bytes[static_cast<std::size_t>(at)], byte) << path << " " << at;
  }
}

TEST_F(DataSource, MayBeNeitherAPipeNorALinkToItself) {
  const auto error_of = [&](const char* path, const char* format = "") {
    return message_of<DataError>([&] { load_dataset({.path = path, .format = format}); });
  };
  ASSERT_EQ(::mkfifo("pipe", 0600), 0);
  EXPECT_THAT(error_of("pipe"), HasSubstr("pipe: is neither a file nor a folder"));
  for (const char* format : {"csv", "idx", "npy", "npz", "safetensors"})
    EXPECT_THAT(error_of("pipe", format), HasSubstr("is not a regular file"));
  fs::create_symlink("loop", "loop");
  EXPECT_THAT(error_of("loop"), HasSubstr("Too many levels of symbolic links"));
}

Dataset read_images(unsigned threads = 0) {
  const fs::path here = ".";
  ReadOptions options;
  options.grayscale = true;
  options.threads = threads;
  return data_from_arrays(read_image_folder(std::span(&here, 1), options), {.channels = ChannelOrder::kFirst},
                          ".");
}

std::vector<std::string> skipped(const Dataset& data) {
  std::vector<std::string> lines;
  for (const SkippedFile& file : data.skipped)
    lines.push_back(file.path.lexically_normal().string() + " " + file.reason);
  return lines;
}

TEST_F(DataSource, OfImagesSkipsAndListsWhatCannotBeRead) {
  const std::string picture = test::png_file(test::flat_pixels(2, 2, {3}));
  write_files(directory, {{"a/1.png", 1},
                          {"a/2.jpg", "this is text"},
                          {"a/3.png", picture.substr(0, 50)},
                          {"a/4.png", ""},
                          {"a/5.png", 5},
                          {"a/.hidden", "not listed"},
                          {"b/6.png", 6},
                          {"readme.txt", "beside the classes"}});
  ASSERT_EQ(::mkfifo("b/pipe.png", 0600), 0);
  fs::create_directory_symlink(directory / "b", "b/loop");
  fs::create_directory_symlink(directory.path(), "b/up");
  fs::create_symlink("nowhere", "b/dangling.png");
  fs::create_symlink("itself", "b/itself");
  std::string digest;
  for (const unsigned threads : {1u, 3u}) {
    const Dataset data = read_images(threads);
    EXPECT_THAT(data.train.set->pixels(), ElementsAre(1, 5, 6));
    EXPECT_THAT(data.train.labels(), ElementsAre(0, 0, 1));
    EXPECT_THAT(
        skipped(data),
        UnorderedElementsAre(
            "b/dangling.png cannot be read: No such file or directory",
            "b/itself cannot be read: Too many levels of symbolic links",
            "b/loop links to a folder that has been read already",
            "b/up links to a folder that has been read already", "b/pipe.png is a pipe, not a file",
            "readme.txt is not in the folder of a class", HasSubstr("a/2.jpg is not an image; allowed: JPEG"),
            HasSubstr("a/3.png the PNG data is damaged"), "a/4.png is empty, expected an image"));
    digest = data.files.at(0).sha256;
    EXPECT_EQ(read_images().files.at(0).sha256, digest) << "for any number of threads";
  }
  write_files(directory, {{"b/6.png", 7}});
  EXPECT_NE(read_images().files.at(0).sha256, digest) << "of other images";
}

TEST_F(DataSource, OfImagesSkipsFilesThatMayNotBeRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  write_files(directory, {{"a/1.png", 1}, {"b/2.png", 2}, {"b/3.png", 3}});
  fs::permissions("b/3.png", fs::perms::none);
  EXPECT_THAT(skipped(read_images()), ElementsAre("b/3.png cannot open: Permission denied"));
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
  const ByteSource endless{{}, std::uint64_t{1} << 62, "X"};
  EXPECT_THAT(message_of<DataError>([&] {
                read_array(endless, {.type = TensorType::kF32, .shape = {std::int64_t{1} << 40, 4, 4}});
              }),
              HasSubstr("X: 1099511627776 samples of shape [4, 4] need 70368744177664 bytes; at most "));
}

}  // namespace sweep::data_sources_test

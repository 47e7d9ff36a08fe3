// A folder per class: what is read, in which order, and what becomes of files that are no images.
#include "core/data/readers/readers.h"

#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/data/data_from_arrays.h"
#include "core/data/readers/image_folder/image_folder.h"
#include "tests/support/dataset_rows.h"
#include "tests/support/image_files.h"

namespace sweep::image_folder_test {

using test::flat_pixels, test::png_file;

std::string gray_png(std::uint8_t value, std::uint32_t size = 2) {
  return png_file(flat_pixels(size, size, {value}));
}

Dataset read(const fs::path& path, ReadOptions options = {}) {
  options.grayscale = true;
  return data_from_arrays(read_image_folder(std::span(&path, 1), options), {.channels = ChannelOrder::kFirst},
                          path.string());
}

// The first pixel of each sample: what gray_png() was given.
std::vector<int> values(const Subset& part, const Shape& shape) {
  std::vector<int> all;
  for (std::size_t i = 0; i < part.count; ++i) all.push_back(part.set->pixels()[i * element_count(shape)]);
  return all;
}

std::vector<std::string> skipped(const Dataset& data, const fs::path& root) {
  std::vector<std::string> lines;
  for (const SkippedFile& file : data.skipped) {
    lines.push_back(file.path.lexically_relative(root).string() + " " + file.reason);
  }
  return lines;
}

using ImageFolder = test::InDirectory;

// A row of image_folders.json: files by name, a number for a picture of one pixel of that value, a text for
// another file, null for a folder.
TEST(ImageFolders, GiveWhatTheirRowSays) {
  const auto rows = nlohmann::json::parse(read_file(SWEEP_TEST_DATA "/image_folders.json"));
  ASSERT_GE(rows.size(), 10u);
  for (const auto& row : rows) {
    const TemporaryDirectory folder;
    for (const auto& [name, content] : row.at("files").items()) {
      if (content.is_null()) {
        fs::create_directory(folder / name);
      } else {
        folder.write(name, content.is_number() ? gray_png(content, 1) : content.get<std::string>());
      }
    }
    for (const unsigned threads : {1u, 3u}) {
      test::expect_row(row, [&] {
        ReadOptions options;
        options.threads = threads;
        const Dataset data = read(folder.path(), options);
        EXPECT_THAT(data.skipped, IsEmpty());
        EXPECT_THAT(data.files, SizeIs(1));
        EXPECT_EQ(data.files[0].path, folder.path());
        return data;
      });
    }
    if (row.contains("gives")) {
      EXPECT_TRUE(is_image_folder(folder.path()));
    }
  }
}

TEST_F(ImageFolder, SkipsAndListsWhatCannotBeRead) {
  directory.write("a/1.png", gray_png(1));
  directory.write("a/2.jpg", "this is text");
  directory.write("a/3.png", gray_png(3).substr(0, 50));
  directory.write("a/4.png", "");
  directory.write("a/5.png", gray_png(5));
  directory.write("a/.hidden", "not listed");
  directory.write("b/6.png", gray_png(6));
  directory.write("readme.txt", "beside the classes");
  ASSERT_EQ(::mkfifo((directory / "b/pipe.png").c_str(), 0600), 0);
  fs::create_directory_symlink(directory / "b", directory / "b/loop");
  fs::create_directory_symlink(directory.path(), directory / "b/up");
  fs::create_symlink("nowhere", directory / "b/dangling.png");
  fs::create_symlink("itself", directory / "b/itself");
  const Dataset data = read(directory.path());
  EXPECT_THAT(values(data.train, data.shape), ElementsAre(1, 5, 6));
  EXPECT_THAT(data.train.labels(), ElementsAre(0, 0, 1));
  EXPECT_THAT(
      skipped(data, directory.path()),
      UnorderedElementsAre(
          "b/dangling.png cannot be read: No such file or directory",
          "b/itself cannot be read: Too many levels of symbolic links",
          "b/loop links to a folder that has been read already",
          "b/up links to a folder that has been read already", "b/pipe.png is a pipe, not a file",
          "readme.txt is not in the folder of a class", HasSubstr("a/2.jpg is not an image; allowed: JPEG"),
          HasSubstr("a/3.png the PNG data is damaged"), "a/4.png is empty, expected an image"));
}

TEST_F(ImageFolder, SkipsFilesThatMayNotBeRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  directory.write("a/1.png", gray_png(1));
  directory.write("b/2.png", gray_png(2));
  fs::permissions(directory.write("b/3.png", gray_png(3)), fs::perms::none);
  EXPECT_THAT(skipped(read(directory.path()), directory.path()),
              ElementsAre("b/3.png cannot open: Permission denied"));
}

TEST_F(ImageFolder, RefusesImagesOfSeveralSizesUnlessTheyAreResized) {
  directory.write("a/1.png", gray_png(1));
  directory.write("b/2.png", gray_png(2, 5));
  EXPECT_EQ(message_of<DataError>([&] { read(directory.path()); }),
            (directory / "b/2.png").string() +
                ": has 5 x 5 pixels, others have 2 x 2 pixels; give \"resize\": [height, width]");
  const Dataset data = read(directory.path(), {{.resize = {{4, 3}}}});
  EXPECT_EQ(data.shape, (Shape{1, 4, 3}));
  EXPECT_THAT(values(data.train, data.shape), ElementsAre(1, 2));
}

TEST_F(ImageFolder, ChangesItsDigestWithAnyImage) {
  directory.write("a/1.png", gray_png(1));
  directory.write("b/2.png", gray_png(2));
  const std::string before = read(directory.path()).files[0].sha256;
  EXPECT_EQ(before.size(), 64u);
  EXPECT_EQ(read(directory.path()).files[0].sha256, before);
  directory.write("b/2.png", gray_png(3));
  EXPECT_NE(read(directory.path()).files[0].sha256, before);
}

}  // namespace sweep::image_folder_test

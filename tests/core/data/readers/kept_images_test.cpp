// Decoded images that are kept: the same data set as decoding gives, and never that of another folder.

#include <fcntl.h>
#include <sys/stat.h>

#include "core/base/file.h"
#include "core/base/mapped_file.h"
#include "core/data/readers/image_folder/image_folder.h"
#include "core/data/readers/readers.h"
#include "tests/support/image_files.h"

namespace sweep::kept_images_test {

std::string gray_png(std::uint8_t value) { return test::png_file(test::flat_pixels(2, 3, {value})); }

const NamedArray& array(const DataArrays& data, const std::string& name) {
  return *std::ranges::find(data.arrays, name, &NamedArray::name);
}
void expect_same(const DataArrays& found, const DataArrays& expected) {
  ASSERT_EQ(found.arrays.size(), expected.arrays.size());
  for (std::size_t i = 0; i < found.arrays.size(); ++i) {
    EXPECT_EQ(found.arrays[i].name, expected.arrays[i].name);
    EXPECT_EQ(found.arrays[i].shape, expected.arrays[i].shape);
    EXPECT_TRUE(found.arrays[i].values == expected.arrays[i].values) << found.arrays[i].name;
  }
  EXPECT_EQ(found.class_names, expected.class_names);
  EXPECT_EQ(found.files.at(0).sha256, expected.files.at(0).sha256);
  EXPECT_EQ(found.files.at(0).path, expected.files.at(0).path);
  ASSERT_EQ(found.skipped.size(), expected.skipped.size());
  for (std::size_t i = 0; i < found.skipped.size(); ++i) {
    EXPECT_EQ(found.skipped[i].path, expected.skipped[i].path);
    EXPECT_EQ(found.skipped[i].reason, expected.skipped[i].reason);
  }
  EXPECT_THAT(found.notes, IsEmpty());
}
std::uint64_t inode(const fs::path& path) {
  struct stat file {};
  return ::stat(path.c_str(), &file) == 0 ? file.st_ino : 0;
}

class CachedImages : public testing::Test {
 protected:
  CachedImages() {
    write("train/dog/b.png", 4);
    write("train/dog/a.png", 3);
    write("train/cat/z.png", 2);
    write("train/cat/y.png", 1);
    write("test/dog/a.png", 9);
    folder_.write("images/train/cat/broken.png", "no image");
  }
  void write(const std::string& name, std::uint8_t value) {
    folder_.write("images/" + name, gray_png(value));
  }

  // Waits until the newest image is old enough to be kept. Sets decoded_.
  DataArrays read(ReadOptions options = {}) {
    std::chrono::nanoseconds newest{};
    struct stat file {};
    for (const auto& entry : fs::recursive_directory_iterator(images_)) {
      if (::stat(entry.path().c_str(), &file) != 0) continue;
      newest = std::max(
          newest, std::chrono::seconds(file.st_ctim.tv_sec) + std::chrono::nanoseconds(file.st_ctim.tv_nsec));
    }
    std::this_thread::sleep_until(std::chrono::system_clock::time_point(newest) +
                                  std::chrono::milliseconds(60));
    return read_at_once(options);
  }
  DataArrays read_at_once(ReadOptions options = {}) {
    options.grayscale = true;
    options.cache = cache_;
    const std::vector<std::uint64_t> before = inodes();
    DataArrays data = read_image_folder(std::span(&images_, 1), options);
    decoded_ = inodes() != before || before.empty();
    return data;
  }
  bool decodes(ReadOptions options = {}) {
    read(options);
    return decoded_;
  }
  // Whether the images lie in the only kept file.
  bool is_mapped(const DataArrays& data) const {
    return kept().size() == 1 &&
           inode("/proc/self/fd/" + std::to_string(data.mapping->fd())) == inode(kept().at(0));
  }
  // Every decoding writes a new file.
  std::vector<std::uint64_t> inodes() const {
    std::vector<std::uint64_t> all;
    for (const fs::path& path : kept()) all.push_back(inode(path));
    std::ranges::sort(all);
    return all;
  }
  std::vector<fs::path> kept() const {
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::directory_iterator it(cache_, error), end; !error && it != end; ++it) files.push_back(*it);
    return files;
  }

  const test::TemporaryDirectory folder_;
  fs::path images_ = folder_ / "images";
  bool decoded_ = false;  // by the last read
  fs::path cache_ = folder_ / "cache/decoded";
};

TEST_F(CachedImages, AreWhatDecodingGives) {
  ReadOptions options;
  options.grayscale = true;
  const DataArrays expected = read_image_folder(std::span(&images_, 1), options);
  const DataArrays first = read();
  EXPECT_TRUE(decoded_);
  EXPECT_TRUE(is_mapped(first)) << "decoded to the file, and read from there";
  const DataArrays second = read();
  EXPECT_FALSE(decoded_);
  EXPECT_TRUE(is_mapped(second));
  EXPECT_THAT(kept(), SizeIs(1));
  EXPECT_THAT(first.skipped, SizeIs(1));
  expect_same(first, expected);
  expect_same(second, expected);
}

TEST_F(CachedImages, AreDecodedAgainAfterAnyChange) {
  read();
  EXPECT_FALSE(decodes());
  // Other content of the same size, with the old time of modification.
  struct stat before {};
  const fs::path file = images_ / "train/dog/a.png";
  ASSERT_EQ(::stat(file.c_str(), &before), 0);
  ASSERT_EQ(gray_png(3).size(), gray_png(7).size());
  std::ofstream(file, std::ios::binary) << gray_png(7);
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  DataArrays data = read();
  EXPECT_TRUE(decoded_);
  EXPECT_GT(std::ranges::count(std::get<0>(array(data, "x_train").values), 7), 0);
  EXPECT_FALSE(decodes());

  fs::rename(images_ / "train/dog/b.png", images_ / "train/dog/c.png");
  EXPECT_TRUE(decodes());
  write("train/cat/new.png", 8);
  EXPECT_EQ(array(read(), "y_train").shape.front(), 5);
  EXPECT_TRUE(decodes({{.resize = {{4, 4}}}}));
  EXPECT_FALSE(decodes({{.resize = {{4, 4}}}}));
  EXPECT_FALSE(decodes());
}

TEST_F(CachedImages, AreNotKeptWhileTheFolderMayChangeUnseen) {
  // Within the same tick of the clock it could be written once more. On a busy machine the tick may be over.
  bool is_kept = true;
  for (int tries = 0; is_kept && tries < 20; ++tries) {
    for (const auto& file : kept()) fs::remove(file);
    write("train/cat/y.png", 5);
    read_at_once();
    is_kept = !kept().empty();
  }
  EXPECT_FALSE(is_kept);
}

TEST_F(CachedImages, OneFolderIsKeptOnceHoweverItsPathIsWritten) {
  EXPECT_TRUE(decodes());
  const fs::path plain = images_;
  fs::create_directory_symlink(images_, folder_ / "link");
  for (const fs::path& path :
       {folder_ / "link", folder_ / "images/", folder_ / "images/../link/.", fs::relative(plain)}) {
    images_ = path;
    const DataArrays data = read();
    EXPECT_FALSE(decoded_) << path;
    // Paths are told as they were asked for.
    EXPECT_EQ(data.files.at(0).path, path);
    ASSERT_THAT(data.skipped, SizeIs(1));
    EXPECT_EQ(data.skipped[0].path, path / "train/cat/broken.png");
  }
  EXPECT_THAT(kept(), SizeIs(1));
}

TEST_F(CachedImages, AreDecodedInPiecesOfABoundedSize) {
  // Samples of 1 MiB: more than two pieces of 32, with gaps where files are broken.
  const auto value = [](int i) { return static_cast<std::uint8_t>(1 + i % 250); };
  for (int i = 0; i < 70; ++i) {
    const std::string name =
        std::string("train/") + (i % 2 == 0 ? "cat" : "dog") + "/" + std::to_string(100 + i);
    if (i % 13 == 5)
      folder_.write("images/" + name, "no image");
    else
      write(name, value(i));
  }
  ReadOptions options{{.resize = {{1024, 1024}}}};
  const DataArrays found = read(options), again = read(options);
  EXPECT_FALSE(decoded_);
  options.grayscale = true;
  const DataArrays expected = read_image_folder(std::span(&images_, 1), options);
  expect_same(found, expected);
  expect_same(again, expected);
  EXPECT_EQ(found.skipped.size(), 6u);
}

TEST_F(CachedImages, DamageIsDetectedAndDecodedAgain) {
  read();
  const fs::path file = kept().at(0);
  const std::string right = read_file(file);
  ASSERT_FALSE(decodes());
  const auto is_refused = [&](const std::string& content) {
    std::ofstream(file, std::ios::binary) << content;
    const DataArrays data = read();
    return decoded_ && array(data, "y_train").shape.front() == 4 && read_file(file) == right;
  };
  ASSERT_NE(right.find("{\"class_names\""), std::string::npos);
  // The header's length, its padding, the key, a shape, the digest, and both ends of the description.
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{4000}, right.find("\"key\"") + 9, right.find("\"shape\":[") + 9,
        right.find("\"sha256\"") + 12, right.find("{\"class_names\""), right.size() - 1})
    EXPECT_TRUE(is_refused(flipped(right, at, 4))) << at;
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, right.size() - 1})
    EXPECT_TRUE(is_refused(right.substr(0, size))) << size;
  EXPECT_TRUE(is_refused(right + "x"));
}

TEST_F(CachedImages, ACacheThatCannotBeWrittenIsARemark) {
  cache_ = "/proc/nowhere";
  EXPECT_THAT(
      read().notes,
      ElementsAre(HasSubstr("not kept for the next start: /proc/nowhere: cannot make this directory: ")));
  cache_ = folder_ / "cache";
  // What somebody put in the place of the file is not written through.
  read();
  const fs::path file = kept().at(0), other = folder_.write("other", "mine");
  fs::remove(file);
  fs::create_symlink(other, file);
  read();
  EXPECT_EQ(read_file(other), "mine");
  EXPECT_FALSE(fs::is_symlink(file)) << "replaced whole";
}

// One loop on many threads.

TEST(ParallelFor, CallsEachIndexOnce) {
  for (const unsigned threads : {0u, 1u, 7u}) {
    std::vector<std::atomic<int>> calls(1000);
    parallel_for(calls.size(), threads, [&](std::size_t i) { ++calls[i]; });
    for (const std::atomic<int>& count : calls) EXPECT_EQ(count, 1);
  }
}

TEST(ParallelFor, DoesNothingForNoCalls) {
  parallel_for(0, 4, [](std::size_t) { FAIL(); });
}

TEST(ParallelFor, ThrowsWhatACallThrows) {
  std::atomic<std::size_t> calls = 0;
  const auto work = [&](std::size_t i) {
    ++calls;
    if (i == 10) throw std::runtime_error("ten");
  };
  EXPECT_THROW(parallel_for(1'000'000, 2, work), std::runtime_error);
  EXPECT_LT(calls, 1'000'000u);
}

}  // namespace sweep::kept_images_test

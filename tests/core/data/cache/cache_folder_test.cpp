#include "core/data/cache/cache_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "core/base/error.h"
#include "tests/support/environment.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_directory.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using test::Environment;

class CacheFolderTest : public testing::Test {
 protected:
  void write(const std::string& name, std::size_t bytes, int hours_ago) {
    folder_.write(name, std::string(bytes, 'x'));
    fs::last_write_time(folder_ / name, fs::file_time_type::clock::now() - std::chrono::hours(hours_ago));
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  const test::TemporaryDirectory folder_;
  const CacheFolder cache_{.path = folder_.path(), .most_bytes = 100};
};

TEST_F(CacheFolderTest, TheLeastRecentlyUsedGoFirst) {
  write("a.samples", 40, 1);
  write("b.samples", 30, 3);
  write("c.samples", 30, 2);
  make_room(cache_, 0);
  EXPECT_THAT(names(), testing::SizeIs(3));
  make_room(cache_, 20);
  EXPECT_THAT(names(), testing::ElementsAre("a.samples", "c.samples"));
  mark_used(folder_ / "c.samples");
  make_room(cache_, 70);
  EXPECT_THAT(names(), testing::ElementsAre("c.samples"));
}

TEST_F(CacheFolderTest, CleaningRemovesItsFilesAndNoOthers) {
  write("a.samples", 40, 1);
  write("b.samples.12.tmp", 5, 1);
  write("mine.txt", 7, 1);
  write("mine.tmp", 7, 99);
  make_room(cache_, 0);
  EXPECT_THAT(names(), testing::SizeIs(4)) << "somebody may be writing";
  write("b.samples.12.tmp", 5, 25);
  make_room(cache_, 0);
  EXPECT_THAT(names(), testing::ElementsAre("a.samples", "mine.tmp", "mine.txt"));
  const CleanedCache cleaned = clean_cache(cache_);
  EXPECT_EQ(cleaned.files, 1u);
  EXPECT_EQ(cleaned.bytes, 40u);
  EXPECT_THAT(names(), testing::ElementsAre("mine.tmp", "mine.txt"));
  EXPECT_EQ(clean_cache({.path = folder_ / "nowhere", .most_bytes = 1}).files, 0u);
}

TEST(DecodedCache, IsInTheUsersCacheWithTheSizeOfTheVariable) {
  const Environment cache("XDG_CACHE_HOME", "/c");
  const auto size = [](const char* text) {
    const Environment variable("SWEEP_CACHE_SIZE", text);
    return decoded_cache().most_bytes;
  };
  EXPECT_EQ(size(nullptr), 20'000'000'000u);
  EXPECT_EQ(decoded_cache().path, "/c/sweep/decoded");
  EXPECT_EQ(size("123"), 123u);
  EXPECT_EQ(size("2K"), 2000u);
  EXPECT_EQ(size("3T"), 3'000'000'000'000u);
  EXPECT_EQ(size("0"), 0u);
  for (const char* wrong : {"x", "-1", "1.5G", "1GB", "G", "99999999999T"}) {
    EXPECT_EQ(test::message_of<ConfigError>([&] { size(wrong); }),
              "SWEEP_CACHE_SIZE: got \"" + std::string(wrong) +
                  "\", want a number of bytes such as 500M or 20G; 0 keeps nothing");
  }
}

}  // namespace
}  // namespace sweep

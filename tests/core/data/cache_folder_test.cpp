#include "core/data/cache_folder.h"

#include "tests/support/test.h"

namespace sweep::cache_folder_test {

TEST(CacheFolder, CleaningRemovesItsFilesAndNoOthers) {
  const test::TemporaryDirectory folder;
  for (const char* name : {"a.samples", "b.samples.12.tmp", "mine.txt", "mine.tmp"})
    folder.write(name, std::string(20, 'x'));
  const CleanedCache cleaned = clean_cache(folder.path());
  EXPECT_EQ(cleaned.files, 2u);
  EXPECT_EQ(cleaned.bytes, 40u);
  EXPECT_FALSE(fs::exists(folder / "a.samples"));
  EXPECT_TRUE(fs::exists(folder / "mine.txt") && fs::exists(folder / "mine.tmp"));
  EXPECT_EQ(clean_cache(folder / "nowhere").files, 0u);
}

TEST(DecodedCache, IsInTheUsersCacheUnlessItIsSwitchedOff) {
  const Environment cache("XDG_CACHE_HOME", "/c");
  const Environment unset("SWEEP_CACHE_SIZE", nullptr);
  EXPECT_EQ(decoded_cache(), "/c/sweep/decoded");
  const Environment off("SWEEP_CACHE_SIZE", "0");
  EXPECT_EQ(decoded_cache(), "");
}

}  // namespace sweep::cache_folder_test

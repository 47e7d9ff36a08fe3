// Files that are read through memory, files that get their name last, and folders that vanish.
#include "core/base/mapped_file.h"

#include "core/base/file.h"
#include "tests/support/test.h"

namespace sweep::mapped_file_test {

TEST(MappedFile, HasTheFilesBytesAfterItsNameIsGone) {
  const test::TemporaryDirectory directory;
  std::string content(100'000, '\0');
  std::iota(content.begin(), content.end(), '\0');
  for (const MapUse use : {MapUse::kWhole, MapUse::kPieces}) {
    const fs::path path = directory.write("file", content);
    const MappedFile file(open_regular_file(path), use);
    fs::remove(path);
    file.expect_random_reads();
    file.will_need(file.bytes().subspan(5000, 9000));
    file.will_need(file.bytes().last(1));
    file.will_need({});
    const auto bytes = file.bytes();
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), content.begin(), content.end(),
                           [](std::uint8_t a, char b) { return a == static_cast<std::uint8_t>(b); }));
    EXPECT_EQ(file.use(), use);
  }
  EXPECT_THROW(MappedFile(open_regular_file(directory.write("empty", "")), MapUse::kWhole), IoError);
}

TEST(UsableMemory, IsThatOfAMachine) {
  EXPECT_GT(usable_memory(), std::uint64_t{1} << 26);
  EXPECT_LT(usable_memory(), std::uint64_t{1} << 50);
}

TEST(NewFile, IsSeenWholeOrNotAtAll) {
  const test::TemporaryDirectory directory;
  const fs::path path = directory.write("file", "old");
  {
    NewFile file(path);
    write_all(file.fd(), "given up", path);
    EXPECT_EQ(read_file(path), "old");
  }
  NewFile file(path);
  write_all(file.fd(), "new", path);
  const FileDescriptor kept = file.release();
  EXPECT_EQ(file.fd(), -1);
  EXPECT_EQ(read_file(path), "old");
  file.publish();
  EXPECT_EQ(read_file(path), "new");
  EXPECT_GE(kept.get(), 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory.path()), fs::directory_iterator()), 1);
  EXPECT_THROW(NewFile("/proc/nowhere/file"), IoError);
}

TEST(TemporaryFolder, VanishesWithItsContent) {
  const test::TemporaryDirectory directory;
  fs::path path;
  {
    const TemporaryFolder folder(directory / "start-"), other(directory / "start-");
    path = folder.path();
    EXPECT_NE(path, other.path());
    EXPECT_TRUE(path.string().starts_with((directory / "start-").string()));
    write_file_atomically(path / "file", "content");
  }
  EXPECT_TRUE(fs::is_empty(directory.path()));
  EXPECT_THAT(test::message_of<IoError>([] { TemporaryFolder folder("/proc/nowhere/start"); }),
              StartsWith("/proc/nowhere/start: cannot create: "));
}

}  // namespace sweep::mapped_file_test

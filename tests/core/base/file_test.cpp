#include "core/base/file.h"

#include <sys/stat.h>

#include "core/base/error.h"
#include "core/base/mapped_file.h"
#include "tests/support/resource_limit.h"

namespace sweep::file_test {

class FileTest : public testing::Test {
 protected:
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(directory_.path()), {}));
  }

  test::TemporaryDirectory directory_;
};

TEST_F(FileTest, WrittenBytesAreReadBackAndReplacedWithNothingBeside) {
  const std::string content("a\0b\r\n\xff", 6);
  for (const Survives survives : {Survives::kPowerCut, Survives::kKill}) {
    write_file_atomically(directory_ / "x", content, survives);
    EXPECT_EQ(read_file(directory_ / "x"), content);
    write_file_atomically(directory_ / "x", "new", survives);
    EXPECT_EQ(read_file(directory_ / "x"), "new");
    EXPECT_EQ(entries(), 1u);
  }
}

TEST_F(FileTest, AFailedWriteKeepsTheOldFileAndLeavesNothingBeside) {
  write_file_atomically(directory_ / "x", "old");
  {
    const test::ResourceLimit full_disk(RLIMIT_FSIZE, 16);
    EXPECT_THROW(write_file_atomically(directory_ / "x", std::string(1000, 'n')), IoError);
  }
  EXPECT_EQ(read_file(directory_ / "x"), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, SyncsManyFilesAndLeavesOutThoseThatAreGone) {
  std::vector<std::filesystem::path> files = {directory_ / "missing"};
  for (int i = 0; i < 600; ++i) {
    files.push_back(directory_ / std::to_string(i));
    write_file_atomically(files.back(), "x", Survives::kKill);
  }
  EXPECT_NO_THROW(sync_files(files));
  EXPECT_EQ(entries(), 600u);
  // With a few descriptors left it syncs a few at a time.
  const int lowest_free = ::dup(0);
  ::close(lowest_free);
  files.resize(50);  // More are synced with their file system.
  const test::ResourceLimit few(RLIMIT_NOFILE, static_cast<rlim_t>(lowest_free) + 3);
  EXPECT_NO_THROW(sync_files(files));
}

TEST_F(FileTest, ALinkedFileKeepsItsContentWhenTheFirstNameGetsAnother) {
  const std::filesystem::path first = directory_ / "first", second = directory_ / "second";
  write_file_atomically(first, "old", Survives::kKill);
  link_file_atomically(first, second);
  link_file_atomically(first, second);  // they are one file already
  write_file_atomically(first, "new", Survives::kKill);
  EXPECT_EQ(read_file(second), "old");
  link_file_atomically(first, second);
  EXPECT_EQ(read_file(second), "new");
  EXPECT_EQ(entries(), 2u);
  EXPECT_THROW(link_file_atomically(directory_ / "nothing", second), IoError);
}

TEST_F(FileTest, SyncsADirectoryAndPassesOverOneThatIsGone) {
  EXPECT_NO_THROW(sync_directory(directory_ / "gone"));
  write_file_atomically(directory_ / "file", "", Survives::kKill);
  EXPECT_NO_THROW(sync_directory((directory_ / "file").parent_path()));
  EXPECT_THROW(sync_directory(directory_ / "file"), IoError);
}

TEST_F(FileTest, AMissingDirectoryIsNamed) {
  const std::filesystem::path path = directory_ / "missing" / "x";
  const std::string message = test::message_of<IoError>([&] { write_file_atomically(path, ""); });
  EXPECT_NE(message.find(path.string()), std::string::npos) << message;
}

TEST_F(FileTest, ReadingWhatIsNotThereOrADirectoryIsADataError) {
  EXPECT_THROW(read_file(directory_ / "missing"), DataError);
  // A file that reads as one on a broken disk.
  std::filesystem::create_symlink("/proc/self/mem", directory_ / "broken");
  EXPECT_THROW(read_file(directory_ / "broken"), ReadError);
  EXPECT_THROW(read_file(directory_.path()), DataError);
}

TEST_F(FileTest, ReadsNoPipeAndNoDevice) {
  ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", directory_ / "zeros");
  for (const char* name : {"pipe", "zeros"}) {
    EXPECT_THROW(read_file(directory_ / name), DataError) << name;
    EXPECT_THROW(open_regular_file(directory_ / name), DataError) << name;
  }
}

TEST_F(FileTest, ReadsThroughALinkPieceByPiece) {
  write_file_atomically(directory_ / "x", "0123456789");
  std::filesystem::create_symlink("x", directory_ / "link");
  const FileDescriptor file = open_regular_file(directory_ / "link");
  std::string text(7, ' ');
  const auto read = [&] { return read_next(file.get(), std::as_writable_bytes(std::span(text)), "link"); };
  EXPECT_EQ(read(), 7u);
  EXPECT_EQ(text, "0123456");
  EXPECT_EQ(read(), 3u);
  EXPECT_EQ(text, "7893456");
}

TEST_F(FileTest, WritesThroughNoLinkAndIntoNoPipe) {
  write_file_atomically(directory_ / "target", "mine");
  std::filesystem::create_symlink("target", directory_ / "link");
  ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  for (const OutputMode mode : {OutputMode::kNew, OutputMode::kAppend, OutputMode::kUpdate}) {
    EXPECT_THROW(open_output_file(directory_ / "link", mode), IoError);
    EXPECT_THROW(open_output_file(directory_ / "pipe", mode), IoError);
  }
  EXPECT_EQ(read_file(directory_ / "target"), "mine");
  write_file_atomically(directory_ / "link", "new");
  EXPECT_EQ(read_file(directory_ / "link"), "new");
  EXPECT_EQ(read_file(directory_ / "target"), "mine");
}

// So that a group can share a sweep.
TEST_F(FileTest, TheUmaskDecidesWhoMayWrite) {
  namespace fs = std::filesystem;
  const mode_t before = ::umask(002);
  write_file_atomically(directory_ / "x", "");
  open_output_file(directory_ / "y", OutputMode::kUpdate);
  ::umask(before);
  for (const char* name : {"x", "y"})
    EXPECT_EQ(fs::status(directory_ / name).permissions(), static_cast<fs::perms>(0664)) << name;
}

TEST_F(FileTest, LeavesTemporaryFilesOfOtherMachinesAlone) {
  // There a process may have the id of this one.
  const std::string temporary = "x." + std::to_string(::getpid()) + ".tmp";
  write_file_atomically(directory_ / "first", "new");
  write_file_atomically(directory_ / "theirs", "theirs");
  std::filesystem::rename(directory_ / "theirs", directory_ / temporary);
  write_file_atomically(directory_ / "x", "old");
  link_file_atomically(directory_ / "first", directory_ / "x");
  EXPECT_EQ(read_file(directory_ / "x"), "new");
  EXPECT_EQ(read_file(directory_ / temporary), "theirs");
}

// Files that are read through memory, files that get their name last, and folders that vanish.

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

}  // namespace sweep::file_test

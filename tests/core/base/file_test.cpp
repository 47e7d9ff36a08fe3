#include "core/base/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "core/base/error.h"
#include "tests/support/resource_limit.h"
#include "tests/support/test.h"

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
    EXPECT_THROW(open_regular_stream(directory_ / name), DataError) << name;
  }
}

TEST_F(FileTest, ReadsThroughALinkAndSeeksInAStream) {
  write_file_atomically(directory_ / "x", "0123456789");
  std::filesystem::create_symlink("x", directory_ / "link");
  const auto stream = open_regular_stream(directory_ / "link");
  std::string text(4, ' ');
  stream->seekg(3);
  stream->read(text.data(), 4);
  EXPECT_EQ(text, "3456");
  stream->seekg(0, std::ios::end);
  EXPECT_EQ(stream->tellg(), 10);
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

}  // namespace sweep::file_test

#include "tbwriter/resume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tbwriter/event_file_name.h"
#include "tbwriter/event_reader.h"
#include "tbwriter/summary_writer.h"
#include "tests/support/event_files.h"

namespace sweep::tbwriter {
namespace {

std::vector<std::int64_t> steps_of(const std::filesystem::path& run) {
  std::vector<std::int64_t> steps;
  for (const proto::Event& event : read_run(run)) {
    if (event.summary().value_size() > 0) steps.push_back(event.step());
  }
  return steps;
}

class TruncateTo : public testing::Test {
 protected:
  // Saved after step 2; goes on to step 5, in one file or in three of two points each.
  FilePosition write(int files) {
    FilePosition position;
    for (int first = 0; first < 6; first += 6 / files) {
      SummaryWriter writer(run, {.purge_step = first});
      for (int step = first; step < first + 6 / files; ++step) {
        writer.add_scalar("s", step, step);
        if (step == 2) position = writer.position();
      }
    }
    return position;
  }

  TemporaryDirectory directory;
  std::filesystem::path run = directory / "run";
};

TEST_F(TruncateTo, LeavesWhatWasThereWhenThePositionWasTaken) {
  for (const int files : {1, 3}) {
    const FilePosition position = write(files);
    const std::string before = slurp(run / position.file).substr(0, position.bytes);
    EXPECT_TRUE(truncate_to(run, position));
    EXPECT_THAT(steps_of(run), testing::ElementsAre(0, 1, 2));
    EXPECT_EQ(slurp(run / position.file), before);
    EXPECT_EQ(list_event_files(run).back(), position.file);
    SummaryWriter writer(run, {.purge_step = 3});
    for (int step = 3; step < 5; ++step) writer.add_scalar("s", step, step);
    writer.close();
    EXPECT_THAT(steps_of(run), testing::ElementsAre(0, 1, 2, 3, 4));
    std::filesystem::remove_all(run);
  }
}

TEST_F(TruncateTo, AlsoRemovesTheTornTailOfAKilledWriter) {
  const FilePosition position = write(1);
  std::filesystem::resize_file(run / position.file, std::filesystem::file_size(run / position.file) - 3);
  truncate_to(run, position);
  EXPECT_THAT(steps_of(run), testing::ElementsAre(0, 1, 2));
}

TEST_F(TruncateTo, LeavesWholeRecordsOfAFileThatIsTooShortAndSaysSo) {
  const FilePosition position = write(1);
  const std::string before = slurp(run / position.file);
  const std::string garbage = std::string(20, '\0');
  for (std::size_t size = 0; size < position.bytes; size += 7) {
    for (const std::string& tail : {std::string(), garbage}) {
      spill(run / position.file, before.substr(0, size) + tail);
      EXPECT_FALSE(truncate_to(run, position)) << size;
      const std::string left = slurp(run / position.file);
      EXPECT_TRUE(before.starts_with(left));
      EXPECT_LE(left.size(), size);
      EXPECT_EQ(check_events_file(run / position.file).end, ReadEnd::kEnd);
    }
  }
}

TEST_F(TruncateTo, LeavesTheEarlierFilesWhereOneIsMissingAndCutsThoseThatAreDamaged) {
  const FilePosition position = write(3);
  const std::vector<std::string> files = list_event_files(run);
  ASSERT_GT(files.size(), 2u);
  ASSERT_NE(files.front(), position.file);
  std::filesystem::resize_file(run / files.front(), std::filesystem::file_size(run / files.front()) - 1);
  EXPECT_FALSE(truncate_to(run, position));
  EXPECT_EQ(check_events_file(run / files.front()).end, ReadEnd::kEnd);
  std::filesystem::remove(run / position.file);
  EXPECT_FALSE(truncate_to(run, position));
  EXPECT_TRUE(std::filesystem::exists(run / files.front()));
}

TEST_F(TruncateTo, RefusesADirectoryThatIsBeingWritten) {
  const FilePosition position = write(1);
  SummaryWriter writer(run);
  EXPECT_THROW(truncate_to(run, position), IoError);
}

TEST_F(TruncateTo, LeavesTheFilesOfOtherPrograms) {
  const FilePosition position = write(1);
  spill(run / "mynotes.tfevents.txt", "mine");
  truncate_to(run, position);
  EXPECT_EQ(slurp(run / "mynotes.tfevents.txt"), "mine");
}

TEST_F(TruncateTo, DoesNotCutThroughALink) {
  const FilePosition position = write(1);
  std::filesystem::rename(run / position.file, run / "kept");
  std::filesystem::create_symlink("kept", run / position.file);
  EXPECT_THROW(truncate_to(run, position), DataError);
}

}  // namespace
}  // namespace sweep::tbwriter

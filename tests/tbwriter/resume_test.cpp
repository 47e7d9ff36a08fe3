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

class CutBack : public testing::Test {
 protected:
  // Saved after step 2; goes on to step 5, in files of about two points each if they are small.
  FilePosition write(std::uint64_t max_file_bytes) {
    SummaryWriter writer(run, {.max_file_bytes = max_file_bytes});
    FilePosition position;
    for (int step = 0; step < 6; ++step) {
      writer.add_scalar("s", step, step);
      if (step == 2) position = writer.position();
    }
    return position;
  }

  TemporaryDirectory directory;
  std::filesystem::path run = directory / "run";
};

TEST_F(CutBack, LeavesWhatWasThereWhenThePositionWasTaken) {
  for (const std::uint64_t max_file_bytes : {0, 150}) {
    const FilePosition position = write(max_file_bytes);
    const std::string before = slurp(run / position.file).substr(0, position.bytes);
    EXPECT_TRUE(cut_back(run, position));
    EXPECT_THAT(steps_of(run), testing::ElementsAre(0, 1, 2));
    EXPECT_EQ(slurp(run / position.file), before);
    EXPECT_EQ(list_event_files(run).back(), position.file);
    SummaryWriter writer(run, {.first_step = 3});
    for (int step = 3; step < 5; ++step) writer.add_scalar("s", step, step);
    writer.close();
    EXPECT_THAT(steps_of(run), testing::ElementsAre(0, 1, 2, 3, 4));
    std::filesystem::remove_all(run);
  }
}

TEST_F(CutBack, AlsoRemovesTheTornTailOfAKilledWriter) {
  const FilePosition position = write(0);
  std::filesystem::resize_file(run / position.file, std::filesystem::file_size(run / position.file) - 3);
  cut_back(run, position);
  EXPECT_THAT(steps_of(run), testing::ElementsAre(0, 1, 2));
}

TEST_F(CutBack, LeavesWholeRecordsOfAFileThatIsTooShortAndSaysSo) {
  const FilePosition position = write(0);
  const std::string before = slurp(run / position.file);
  const std::string garbage = std::string(20, '\0');
  for (std::size_t size = 0; size < position.bytes; size += 7) {
    for (const std::string& tail : {std::string(), garbage}) {
      spill(run / position.file, before.substr(0, size) + tail);
      EXPECT_FALSE(cut_back(run, position)) << size;
      const std::string left = slurp(run / position.file);
      EXPECT_TRUE(before.starts_with(left));
      EXPECT_LE(left.size(), size);
      EXPECT_EQ(check_events_file(run / position.file).end, ReadEnd::kEnd);
    }
  }
}

TEST_F(CutBack, LeavesTheEarlierFilesWhereOneIsMissingAndCutsThoseThatAreDamaged) {
  const FilePosition position = write(1);
  const std::vector<std::string> files = list_event_files(run);
  ASSERT_GT(files.size(), 2u);
  ASSERT_NE(files.front(), position.file);
  std::filesystem::resize_file(run / files.front(), std::filesystem::file_size(run / files.front()) - 1);
  EXPECT_FALSE(cut_back(run, position));
  EXPECT_EQ(check_events_file(run / files.front()).end, ReadEnd::kEnd);
  std::filesystem::remove(run / position.file);
  EXPECT_FALSE(cut_back(run, position));
  EXPECT_TRUE(std::filesystem::exists(run / files.front()));
}

TEST_F(CutBack, RefusesADirectoryThatIsBeingWritten) {
  const FilePosition position = write(0);
  SummaryWriter writer(run);
  EXPECT_THROW(cut_back(run, position), IoError);
}

TEST_F(CutBack, LeavesTheFilesOfOtherPrograms) {
  const FilePosition position = write(0);
  spill(run / "mynotes.tfevents.txt", "mine");
  cut_back(run, position);
  EXPECT_EQ(slurp(run / "mynotes.tfevents.txt"), "mine");
}

TEST_F(CutBack, DoesNotCutThroughALink) {
  const FilePosition position = write(0);
  std::filesystem::rename(run / position.file, run / "kept");
  std::filesystem::create_symlink("kept", run / position.file);
  EXPECT_THROW(cut_back(run, position), DataError);
}

}  // namespace
}  // namespace sweep::tbwriter

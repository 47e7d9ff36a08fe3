#include "tbwriter/event_files.h"

#include <unistd.h>
#include <random>

#include "tbwriter/event_reader.h"
#include "tbwriter/record.h"
#include "tbwriter/summary_writer.h"
#include "tests/support/event_files.h"

namespace sweep::tbwriter::event_files_test {

// The seconds in the name of a new file.
std::string new_seconds(const std::vector<std::string>& existing, double now) {
  const std::string name = new_event_file_name(existing, now);
  EXPECT_TRUE(is_event_file_name(name)) << name;
  EXPECT_TRUE(name.ends_with("." + std::to_string(::getpid()) + ".000000")) << name;
  for (const std::string& other : existing) EXPECT_GT(name, other);
  return name.substr(std::string("events.out.tfevents.").size(), 10);
}

TEST(NewEventFileName, IsLaterThanEveryFileEvenIfTheClockWentBack) {
  const std::vector<std::string> existing = {"events.out.tfevents.1700000000.a.1.0",
                                             "events.out.tfevents.1700000500.zzz.99999.7.v2"};
  EXPECT_EQ(new_seconds(existing, 1600000000.0), "1700000501");
}

TEST(NewEventFileName, TakesAnyClockAndPadsItSoThatTextOrderIsTimeOrder) {
  EXPECT_EQ(new_seconds({"events.out.tfevents.1600000000.a"}, 1700000000.9), "1700000000");
  EXPECT_EQ(new_seconds({"a.tfevents"}, 99), "0000000099");
  EXPECT_EQ(new_seconds({}, std::numeric_limits<double>::quiet_NaN()), "0000000000");
  EXPECT_EQ(new_seconds({}, -1e300), "0000000000");
  EXPECT_EQ(new_seconds({}, 1e300), "9999999999");
  EXPECT_EQ(new_seconds({}, std::numeric_limits<double>::infinity()), "9999999999");
}

TEST(NewEventFileName, IsRefusedInADirectoryInWhichNoLaterNameIsPossible) {
  for (const char* name : {"events.out.tfevents.9999999999.a", "events.out.tfevents.x",
                           "events.out.tfevents.18000000000.a", "old-events.out.tfevents.1600000000.a"}) {
    EXPECT_THAT(test::message_of<IoError>([&] { new_event_file_name({name}, 1700000000); }), HasSubstr(name));
  }
}

TEST(FirstEventFileName, IsBeforeEveryFileIfItCanBe) {
  const auto first_before = [](const std::vector<std::string>& existing, double now) {
    const std::string name = first_event_file_name(existing, now);
    EXPECT_TRUE(is_event_file_name(name)) << name;
    for (const std::string& other : existing) EXPECT_LT(name, other);
    return name.substr(std::string("events.out.tfevents.").size(), 10);
  };
  EXPECT_EQ(first_before({}, 1700000000.5), "1700000000");
  EXPECT_EQ(
      first_before({"events.out.tfevents.1700000009.a", "events.out.tfevents.1700000005.b"}, 1800000000),
      "1700000004");
  EXPECT_EQ(first_before({"events.out.tfevents.1700000009.a"}, 1600000000), "1600000000");
  EXPECT_EQ(first_before({"events.out.tfevents.1.a", "x.tfevents"}, 1700000000), "0000000000");
  EXPECT_TRUE(is_event_file_name(first_event_file_name({"a.tfevents"}, 1700000000)));
}

TEST(ListEventFiles, SeesWhatTensorBoardSees) {
  const TemporaryDirectory directory;
  for (const char* name : {"b.tfevents.1", "a.tfevents.2", "log.txt"}) spill(directory / name, "");
  EXPECT_EQ(list_event_files(directory.path()), (std::vector<std::string>{"a.tfevents.2", "b.tfevents.1"}));
  EXPECT_TRUE(list_event_files(directory / "missing").empty());
  EXPECT_THROW(list_event_files(directory / std::string(300, 'x')), IoError) << "nobody knows what is there";
}

TEST(IsEventFileName, KnowsItsOwnNames) {
  for (const char* name :
       {"events.out.tfevents.1700000000.a.host-1.12.000003", "events.out.tfevents.0000000099.7.12.1234567"})
    EXPECT_TRUE(is_event_file_name(name)) << name;
  for (const char* name :
       {"mynotes.tfevents.txt", "events.out.tfevents.", "events.out.tfevents.1700000000.host.12.3",
        "events.out.tfevents.1700000000.host.12.v2", "events.out.tfevents.170000000.host.12.000000",
        "events.out.tfevents.1700000000.12.000000", "events.out.tfevents.1700000000host.12.000000",
        "events.out.tfevents.-123456789.host.12.000000", "events.out.tfevents.1700000000..12.000000.txt"})
    EXPECT_FALSE(is_event_file_name(name)) << name;
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
        if (step != 2) continue;
        position = writer.position();
        writer.flush();
        EXPECT_EQ(position.file, writer.path().filename().string());
        EXPECT_EQ(position.bytes, std::filesystem::file_size(writer.path()));
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
    const std::string before = read_file(run / position.file).substr(0, position.bytes);
    EXPECT_TRUE(truncate_to(run, position));
    EXPECT_THAT(steps_of(read_run(run), "s"), ElementsAre(0, 1, 2));
    EXPECT_EQ(read_file(run / position.file), before);
    EXPECT_EQ(list_event_files(run).back(), position.file);
    SummaryWriter writer(run, {.purge_step = 3});
    for (int step = 3; step < 5; ++step) writer.add_scalar("s", step, step);
    writer.close();
    EXPECT_THAT(steps_of(read_run(run), "s"), ElementsAre(0, 1, 2, 3, 4));
    std::filesystem::remove_all(run);
  }
}

TEST_F(TruncateTo, AlsoRemovesTheTornTailOfAKilledWriter) {
  const FilePosition position = write(1);
  std::filesystem::resize_file(run / position.file, std::filesystem::file_size(run / position.file) - 3);
  truncate_to(run, position);
  EXPECT_THAT(steps_of(read_run(run), "s"), ElementsAre(0, 1, 2));
}

TEST_F(TruncateTo, LeavesWholeRecordsOfAFileThatIsTooShortAndSaysSo) {
  const FilePosition position = write(1);
  const std::string before = read_file(run / position.file);
  const std::string garbage = std::string(20, '\0');
  for (std::size_t size = 0; size < position.bytes; size += 7) {
    for (const std::string& tail : {std::string(), garbage}) {
      spill(run / position.file, before.substr(0, size) + tail);
      EXPECT_FALSE(truncate_to(run, position)) << size;
      const std::string left = read_file(run / position.file);
      EXPECT_TRUE(before.starts_with(left));
      EXPECT_LE(left.size(), size + tail.size()) << "a record may end in zeros";
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
  EXPECT_EQ(read_file(run / "mynotes.tfevents.txt"), "mine");
}

TEST_F(TruncateTo, DoesNotCutThroughALink) {
  const FilePosition position = write(1);
  std::filesystem::rename(run / position.file, run / "kept");
  std::filesystem::create_symlink("kept", run / position.file);
  EXPECT_THROW(truncate_to(run, position), DataError);
}

TEST(CopyPrefix, TellsAFileThatIsMissingFromOneThatCannotBeLookedAt) {
  const TemporaryDirectory directory;
  EXPECT_EQ(copy_prefix(directory.path(), {"missing", 1}, directory / "copy").file, "");
  EXPECT_THROW(copy_prefix(directory.path(), {std::string(300, 'x'), 1}, directory / "copy"), DataError);
}

TEST(Crc32c, MatchesTheCheckValueOfTheCatalogue) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(Crc32c, ContinuesWhereAnotherCallEnded) {
  const std::string text = "the same bytes, cut in two";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(crc32c(text.substr(cut), crc32c(text.substr(0, cut), 0)), crc32c(text, 0)) << cut;
  }
}

// The bitwise definition, with no tables or instructions.
std::uint32_t bit_by_bit(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0);
  }
  return crc ^ 0xFFFFFFFFu;
}

TEST(Crc32c, AgreesWithTheDefinitionForEveryLengthAndAlignment) {
  std::mt19937 random(1);
  std::string bytes(40000, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  // ISA-L begins at 256 bytes.
  for (const std::size_t length : {0,   1,   7,   8,   9,     63,    255,   256,   257,   383,
                                   384, 385, 767, 768, 12287, 12288, 12289, 12672, 24577, 39000}) {
    for (const std::size_t offset : {0, 1, 3, 7}) {
      const std::string_view part(bytes.data() + offset, length);
      ASSERT_EQ(crc32c(part), bit_by_bit(part)) << length << " bytes at " << offset;
    }
  }
}

TEST(MaskedCrc32c, MatchesARecordThatTensorFlowWrote) {
  EXPECT_EQ(mask_crc(crc32c("\x1a\x11"
                            "CRC test, one two")),
            0x5794d08au);  // from TensorBoard's own tests
  EXPECT_EQ(mask_crc(crc32c("")), 0xa282ead8u);
}

}  // namespace sweep::tbwriter::event_files_test

#include "runmanager/training/log_file.h"

#include <sys/stat.h>

#include "tests/support/event_files.h"
#include "tests/support/test.h"

namespace sweep::log_file_test {

using tbwriter::slurp, tbwriter::TemporaryDirectory;

TEST(LogFile, AppendsLinesAtOnce) {
  TemporaryDirectory directory;
  LogFile log(directory / "log.txt", /*is_new=*/true);
  log.info("{}", "one");
  EXPECT_THAT(slurp(directory / "log.txt"), EndsWith(" info one\n"));
  LogFile(directory / "log.txt", /*is_new=*/false).warn("two");
  EXPECT_THAT(slurp(directory / "log.txt"), testing::ContainsRegex(" info one\n.* warning two\n"));
}

TEST(LogFile, KeepsTheBeginningAndTheEndOfLongOutput) {
  TemporaryDirectory directory;
  for (const bool is_new : {true, false}) {
    LogFile log(directory / "log.txt", is_new, /*kept=*/10);
    log.write_output("beginning.");
    for (int i = 0; i < 1000; ++i) log.write_output("middle");
    log.write_output("end");
    log.end_line();
    log.end_line();
    EXPECT_THAT(slurp(directory / "log.txt"),
                MatchesRegex("beginning.\n\\[... about [0-9]+ bytes are left out here ...\\]\n.*end\n"));
    EXPECT_LT(slurp(directory / "log.txt").size(), 100u);
  }
}

TEST(LogFile, IsWrittenThroughNoLinkAndIntoNoPipe) {
  TemporaryDirectory directory;
  tbwriter::spill(directory / "precious", "mine");
  std::filesystem::create_symlink("precious", directory / "log.txt");
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  for (const bool is_new : {true, false}) {
    EXPECT_THROW(LogFile(directory / "log.txt", is_new), IoError);
    EXPECT_THROW(LogFile(directory / "pipe", is_new), IoError);
  }
  EXPECT_EQ(slurp(directory / "precious"), "mine");
}

}  // namespace sweep::log_file_test

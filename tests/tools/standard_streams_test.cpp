// The program, started with closed or broken standard streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/program.h"
#include "tests/support/quarters.h"
#include "tests/support/temporary_directory.h"

namespace sweep::testing {
namespace {

using ::testing::HasSubstr;

// Runs a line of shell in which $SWEEP is the program.
Finished run_shell(const std::string& line, const std::filesystem::path& directory) {
  return run_program("/bin/sh", {"-c", "SWEEP='" + program_path(SWEEP_PROGRAM) + "'; " + line}, directory);
}

TEST(StandardStreams, MayBeClosedWhenASweepWithWorkersStarts) {
  test::TemporaryDirectory directory;
  write_quarters(directory.path());
  const std::string words = " quarters.json epochs=1 lr=0.01,0.02 batch_size=50 --jobs 2 --logdir ";
  for (const std::string closed : {"<&- >&-", "<&-", "<&- >&- 2>&-"}) {
    const Finished finished =
        run_shell("timeout 60 \"$SWEEP\"" + words + "'" + closed + "' " + closed, directory.path());
    // Results that nobody gets are an error; those in the files are there.
    EXPECT_EQ(finished.code, closed == "<&-" ? 0 : 3) << closed << finished.err;
    const Finished shown = run_shell("\"$SWEEP\" show '" + closed + "/quarters'", directory.path());
    EXPECT_THAT(shown.out, HasSubstr("completed")) << closed << shown.err;
  }
}

TEST(StandardStreams, TheSweepFileMayComeFromStandardInput) {
  test::TemporaryDirectory directory;
  write_quarters(directory.path());
  const std::string options = " epochs=1 lr=0.01,0.02 batch_size=50 --logdir runs";
  const Finished trained = run_shell("\"$SWEEP\" -" + options + " < quarters.json", directory.path());
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.out, HasSubstr("completed"));
  const Finished kept = run_shell("\"$SWEEP\" quarters.json" + options, directory.path());
  EXPECT_THAT(kept.err, HasSubstr("4 finished runs kept")) << "it is the same sweep";
  const Finished again = run_shell("\"$SWEEP\" resume runs/quarters", directory.path());
  EXPECT_EQ(again.code, 0) << again.err;

  const Finished unnamed = run_shell("echo '{\"params\": {}}' | \"$SWEEP\" plan -", directory.path());
  EXPECT_EQ(unnamed.code, 2);
  EXPECT_THAT(
      unnamed.err,
      HasSubstr("standard input:1:1: a sweep that is read from standard input has to have a \"name\""));
  const Finished broken = run_shell("echo '{\"name\": }' | \"$SWEEP\" -", directory.path());
  EXPECT_EQ(broken.code, 2);
  EXPECT_THAT(broken.err, HasSubstr("standard input:1:"));
}

TEST(StandardStreams, HaveOnlyJsonWhereItIsAskedFor) {
  test::TemporaryDirectory directory;
  write_quarters(directory.path());
  const Finished finished = run_program({"quarters.json", "epochs=2", "lr=0.01", "batch_size=50",
                                         "device=cpu,cuda:7", "--json", "--logdir", "runs"},
                                        directory.path());
  EXPECT_TRUE(nlohmann::json::parse(finished.out).contains("runs")) << finished.out;
  std::map<std::string, int> events;
  std::istringstream lines(finished.err);
  for (std::string line; std::getline(lines, line);)
    ++events[nlohmann::json::parse(line).at("event").get<std::string>()];
  EXPECT_EQ(events["begin"], 2);
  EXPECT_EQ(events["epoch"], 4);
  EXPECT_EQ(events["end"], 4) << "the skipped runs end, too";
  EXPECT_GE(events["message"], 2) << "times, and where to look";
}

TEST(StandardStreams, AClosedPipeIsAnErrorAndNoSignal) {
  test::TemporaryDirectory directory;
  const Finished finished =
      run_shell("(sleep 0.2; \"$SWEEP\" devices; echo \"code $?\" >&2) | true", directory.path());
  EXPECT_THAT(finished.err, HasSubstr("standard output cannot be written"));
  EXPECT_THAT(finished.err, HasSubstr("code 3"));
}

}  // namespace
}  // namespace sweep::testing

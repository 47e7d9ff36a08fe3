// The program, started with closed or broken standard streams.

#include "tests/support/program_folder.h"
#include "tests/support/quarters.h"

#include "tests/support/test.h"

namespace sweep::testing::standard_streams_test {

class StandardStreams : public ProgramFolder {
 protected:
  StandardStreams() { write_quarters(folder_.path()); }
};

TEST_F(StandardStreams, MayBeClosedWhenASweepWithWorkersStarts) {
  const std::string words = " quarters.json epochs=1 lr=0.01,0.02 batch_size=50 --jobs 2 --logdir ";
  for (const std::string closed : {"<&- >&-", "<&-", "<&- >&- 2>&-"}) {
    // Results that nobody gets are an error; those in the files are there.
    run_shell("timeout 60 \"$SWEEP\"" + words + "'" + closed + "' " + closed, closed == "<&-" ? 0 : 3);
    EXPECT_THAT(run({"show", closed + "/quarters"}).out, HasSubstr("completed")) << closed;
  }
}

TEST_F(StandardStreams, TheSweepFileMayComeFromStandardInput) {
  const std::string options = " epochs=1 lr=0.01,0.02 batch_size=50 --logdir runs";
  EXPECT_THAT(run_shell("\"$SWEEP\" -" + options + " < quarters.json").out, HasSubstr("completed"));
  EXPECT_THAT(run_shell("\"$SWEEP\" quarters.json" + options).err, HasSubstr("4 finished runs kept"))
      << "it is the same sweep";
  run({"resume", "runs/quarters"});
  EXPECT_THAT(run_shell("\"$SWEEP\" quarters.json name=plain" + options).err,
              AllOf(HasSubstr("epoch 1/1"), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(
      run_shell("echo '{\"params\": {}}' | \"$SWEEP\" plan -", 2).err,
      HasSubstr("standard input:1:1: a sweep that is read from standard input has to have a \"name\""));
  EXPECT_THAT(run_shell("echo '{\"name\": }' | \"$SWEEP\" -", 2).err, HasSubstr("standard input:1:"));
}

TEST_F(StandardStreams, HaveOnlyJsonWhereItIsAskedFor) {
  const Finished finished = run({"quarters.json", "epochs=2", "lr=0.01", "batch_size=50", "device=cpu,cuda:7",
                                 "--json", "--logdir", "runs"});
  EXPECT_TRUE(nlohmann::json::parse(finished.out).contains("runs")) << finished.out;
  std::map<std::string, int> events;
  std::istringstream lines(finished.err);
  for (std::string line; std::getline(lines, line);)
    ++events[nlohmann::json::parse(line).at("event").get<std::string>()];
  EXPECT_EQ(events["begin"], 2);
  EXPECT_EQ(events["epoch"], 4);
  EXPECT_EQ(events["end"], 4) << "the skipped runs also end";
  EXPECT_GE(events["message"], 2) << "times, and where to look";
}

TEST_F(StandardStreams, AClosedPipeEndsItWithoutAWordAsSigpipeWould) {
  const Finished finished = run_shell("(sleep 0.2; \"$SWEEP\" devices; echo \"code $?\" >&2) | true");
  EXPECT_EQ(finished.err, "code 141\n");
}

}  // namespace sweep::testing::standard_streams_test

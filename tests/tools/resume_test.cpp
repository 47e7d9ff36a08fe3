// The program's `resume`, and the line that says how to go on.

#include "core/base/text.h"
#include "tests/support/data_files.h"
#include "tests/support/fashion_mnist.h"
#include "tests/support/program_folder.h"
#include "tests/support/quarters.h"

namespace sweep::testing::resume_test {

class Resume : public ProgramFolder {
 protected:
  Resume() {
    test::write_idx_set(path("sweeps/data"), "train", 40, 28);
    folder_.write("sweeps/net.json", content("net.json"));
    folder_.write("sweeps/s.json",
                  R"({"dataset": {"name": "own", "path": "data"}, "network": "net.json", "batch_size": 20,
                      "params": {"lr": [0.1, 0.01]}})");
  }
};

TEST_F(Resume, NeedsTheDirectoryOnly) {
  run({"sweeps/s.json", "epochs=2", "--quiet"});
  const std::string whole = content("runs/s/lr=0.01/checkpoint.safetensors");
  const json first = read_json("runs/s/results.json");
  fs::remove(path("sweeps/s.json"));
  fs::remove(path("sweeps/net.json"));
  fs::remove_all(path("runs/s/lr=0.01"));
  for (const auto& [directory, below] : {std::pair("runs/s/", ""), {".", "runs/s"}, {"s", "runs"}}) {
    const Finished finished = run_program({"resume", directory}, path(below));
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_FALSE(exists("runs/s/runs"));
    const json again = read_json("runs/s/results.json");
    EXPECT_EQ(again["sweep"], first["sweep"]);
    ASSERT_EQ(again["runs"].size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(again["runs"][i]["name"], first["runs"][i]["name"]);
      EXPECT_EQ(again["runs"][i]["epochs"][1]["loss"], first["runs"][i]["epochs"][1]["loss"]);
      EXPECT_EQ(again["runs"][i]["epochs"][1]["epoch"], 2);
    }
  }
  EXPECT_THAT(run({"resume", "runs/s"}).err, HasSubstr("2 finished runs kept"));
}

TEST_F(Resume, TakesOverrides) {
  run({"sweeps/s.json", "--quiet"});
  run({"resume", "runs/s", "epochs=2", "lr=0.1,0.01,0.001", "--quiet"});
  const json again = results("s");
  ASSERT_EQ(again.size(), 3u);
  for (const json& one : again) EXPECT_EQ(one["epochs"].back()["epoch"], 2);
}

TEST_F(Resume, WithFewerValuesShowStillTellsOfTheOtherRuns) {
  run({"sweeps/s.json", "--quiet"});
  EXPECT_THAT(run({"show", "runs/s"}).out, Not(HasSubstr("no longer has")));
  run({"sweeps/s.json", "lr=0.1", "--quiet"});
  EXPECT_THAT(run({"show", "runs/s"}).out,
              HasSubstr("1 more run is here that the sweep's file no longer has: lr=0.01"));
}

TEST_F(Resume, IsARunOfTheDirectory) {
  run({"sweeps/s.json", "--quiet", "--logdir", "there"});
  run({"there/s", "epochs=2", "--quiet"});
  EXPECT_EQ(read_json("there/s/results.json")["runs"][0]["epochs"].back()["epoch"], 2);
  run({"resume", "there/s", "--fresh", "--quiet"});
  EXPECT_EQ(read_json("there/s-2/results.json")["sweep"], "s-2");
  EXPECT_FALSE(exists("runs"));
  EXPECT_THAT(run({"plan", "there/s"}).out, HasSubstr("s: 2 runs: 2 kept\n"));
  EXPECT_THAT(run({"plan", "there/s", "name=other"}).out, HasSubstr("other: 2 runs\n"));
}

TEST_F(Resume, ADryRunPrintsThePlanWhateverOptionsTrainingHas) {
  const Finished plan = run({"plan", "sweeps/s.json", "lr=0.1"});
  const Finished dry =
      run({"sweeps/s.json", "lr=0.1", "--dry-run", "--timeout", "5", "--retry=1", "--strict"});
  EXPECT_EQ(dry.out, plan.out);
  EXPECT_FALSE(exists("runs"));
  run({"sweeps/s.json", "--quiet"});
  EXPECT_THAT(run({"resume", "runs/s", "epochs=3", "--dry-run"}).out, HasSubstr("s: 2 runs: 2 continued\n"));
}

TEST_F(Resume, APlanHasTheNotesOfRunsThatGoOn) {
  run({"sweeps/s.json", "checkpoint=best", "--quiet"});
  EXPECT_THAT(run({"plan", "sweeps/s.json", "epochs=2"}).out,
              HasSubstr("continued: after 1 of 2 epochs; loses its best.safetensors"));
  EXPECT_THAT(run({"plan", "sweeps/s.json", "epochs=2", "batch_size=20,40"}).out,
              HasSubstr("now called lr=0.1; after 1 of 2 epochs; loses its"));
}

TEST_F(Resume, GoesOnInADirectoryThatIsCalledOtherwiseThanTheSweep) {
  run({"sweeps/s.json", "--quiet"});
  run({"sweeps/s.json", "--quiet", "--fresh"});
  run({"resume", "runs/s-2", "--quiet"});
  EXPECT_EQ(read_json("runs/s-2/results.json")["sweep"], "s-2");
  EXPECT_FALSE(exists("runs/s-3"));
}

TEST_F(Resume, TheLineThatSaysHowToGoOnCanBeTyped) {
  const std::string words = " sweeps/s.json epochs=1000000 --max-time 0.2";
  EXPECT_THAT(run_shell("$SWEEP" + words, 75).err,
              HasSubstr("To go on: " + program_path(SWEEP_PROGRAM) + words + "\n"));
  EXPECT_THAT(run_shell("SWEEP_TYPED_AS=tools/run $SWEEP" + words, 75).err,
              HasSubstr("To go on: tools/run" + words + "\n"));
  EXPECT_THAT(run_shell("SWEEP_TYPED_AS=tools/run $SWEEP status runs/s").out,
              HasSubstr("To go on: tools/run resume runs/s\n"));
  EXPECT_THAT(run_shell("$SWEEP" + words + " name=s --fresh", 75).err,
              HasSubstr("To go on: " + program_path(SWEEP_PROGRAM) + " resume runs/s-2\n"));
}

// The first file of a new user.

using Init = ProgramFolder;

TEST_F(Init, WritesASweepThatTrainsAndReplacesNothing) {
  SKIP_WITHOUT_FASHION_MNIST();
  EXPECT_THAT(run({"init", "my \"first\".json"}).out, EndsWith("try: sweep plan 'my \"first\".json'\n"));
  const Finished trained = run({"my \"first\".json", "lr=0.01", "epochs=1", "dataset.limit=300",
                                "dataset.validation=50", "name=first"});
  EXPECT_THAT(trained.out, HasSubstr("completed"));
  for (const char* taken : {"my \"first\".json", "my \"first\"-network.json"}) {
    const std::string before = content(taken);
    EXPECT_THAT(run({"init", "my \"first\".json"}, 2).err,
                HasSubstr(std::string(taken) + ": is there already and is not replaced"));
    EXPECT_EQ(content(taken), before);
    std::filesystem::remove(path(taken));  // The other one alone is also in the way.
  }
  EXPECT_THAT(run({"init", "sweep.txt"}, 2).err, HasSubstr("want a name that ends in .json"));
  EXPECT_THAT(run({"init", "none/s.json"}, 3).err, HasSubstr("none/s.json: there is no directory none"));
}

// The program, started with closed or broken standard streams.

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
  EXPECT_TRUE(json::parse(finished.out).contains("runs")) << finished.out;
  std::map<std::string, int> events;
  for (const std::string_view line : lines_of(finished.err))
    ++events[json::parse(line).at("event").get<std::string>()];
  EXPECT_EQ(events["begin"], 2);
  EXPECT_EQ(events["epoch"], 4);
  EXPECT_EQ(events["end"], 4) << "the skipped runs also end";
  EXPECT_GE(events["message"], 2) << "times, and where to look";
}

TEST_F(StandardStreams, AClosedPipeEndsItWithoutAWordAsSigpipeWould) {
  const Finished finished = run_shell("(sleep 0.2; \"$SWEEP\" devices; echo \"code $?\" >&2) | true");
  EXPECT_EQ(finished.err, "code 141\n");
}

}  // namespace sweep::testing::resume_test

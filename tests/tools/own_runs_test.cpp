// What the program makes of a directory that RunManager has filled for a training loop of a user's own.

#include "runmanager/training/run_manager.h"
#include "tests/support/program_folder.h"
#include "tests/support/run_world.h"

#include "tests/support/test.h"

namespace sweep::testing::own_runs_test {

class OwnRuns : public ProgramFolder {
 protected:
  OwnRuns() {
    const Dataset data = small_dataset();
    const Network network(small_network(), data.shape);
    const DataLoader loader(data.train, {.batch_size = 10});
    RunManager manager({.directory = path("mine")});
    for (const sweep::Run& run : RunBuilder::get_runs({{"lr", {0.5, 0.25}}})) {
      manager.begin_run(run, network, loader);
      for (int epoch = 0; epoch < 2; ++epoch) {
        manager.begin_epoch();
        manager.track({.loss = 20, .correct = 30, .samples = 40});
        manager.end_epoch();
      }
      manager.end_run();
    }
  }
};

TEST_F(OwnRuns, AreShown) {
  EXPECT_THAT(run({"show", "mine"}).out,
              AllOf(HasSubstr("0.25"), HasSubstr("75.00%"), HasSubstr("completed")));
  const auto shown = output({"show", "mine"});
  ASSERT_EQ(shown["runs"].size(), 2u);
  EXPECT_EQ(shown["runs"][0]["epochs"][1]["epoch"], 2);
  EXPECT_THAT(run({"show", "mine/lr=0.25"}).out, HasSubstr("lr=0.25: completed"));
}

TEST_F(OwnRuns, AreChecked) {
  EXPECT_THAT(run({"fsck", "mine"}).out, HasSubstr("4 ok, no damage"));
  const auto record = path("mine/lr=0.5/run.json");
  write_file_atomically(record, read_file(record).substr(0, 100));
  run({"fsck", "mine"}, 1);
  const std::string listed = run({"status", "."}).out;
  EXPECT_THAT(listed, HasSubstr("mine/lr=0.5/run.json"));
  EXPECT_LT(listed.find('\n'), 60u) << "what is wrong makes no column wide";
  EXPECT_THAT(run({"status", ".", "--format", "csv"}).out, HasSubstr("\nmine,"));
}

TEST_F(OwnRuns, AreCompared) {
  EXPECT_THAT(run({"compare", "mine"}).out,
              AllOf(HasSubstr(" times as fast as lr=0."), HasSubstr("same bits")));
  EXPECT_THAT(run({"compare", "mine/", "--csv", "--metric", "loss"}).out,
              AllOf(HasSubstr("\nlr,0."), HasSubstr(",mine/lr=0.5,"), HasSubstr(",loss,0.5,0.5,1,")));
  run({"compare", "mine", "--by", "shuffle"}, 2);
  for (const auto& [run, sweep] : {std::pair("lr=0.25", "one"), {"lr=0.5", "two"}}) {
    fs::create_directory(path(sweep));
    fs::copy(path("mine") / run, path(sweep) / run, fs::copy_options::recursive);
  }
  EXPECT_THAT(run({"compare", "one", "two", "--by", "sweep"}, 2).out, HasSubstr("No run with "));
  EXPECT_THAT(run({"compare", "mine", "theirs"}, 2).err, HasSubstr("theirs: is not there"));
}

TEST_F(OwnRuns, AreExported) {
  const Finished finished = run({"export", "mine", "--tag", "Loss/train"});
  EXPECT_THAT(finished.out, HasSubstr("lr=0.5,Loss/train,1,"));
  EXPECT_THAT(finished.out, HasSubstr("lr=0.25,Loss/train,2,"));
}

TEST_F(OwnRuns, AreNotTrainedAgainToVerifyThem) {
  const Finished finished = run({"verify", "mine"}, 2);
  EXPECT_THAT(finished.out, HasSubstr("lr=0.5: not compared: it was trained by another program's loop"));
  EXPECT_THAT(finished.out, HasSubstr("0 of 2 finished runs trained again"));
}

}  // namespace sweep::testing::own_runs_test

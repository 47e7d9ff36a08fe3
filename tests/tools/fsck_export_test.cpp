// The program's `fsck` and `export`: output, files and exit codes.

#include "runmanager/records/run_record_json.h"
#include "runmanager/training/run_manager.h"
#include "tbwriter/event_files.h"
#include "tbwriter/summary_writer.h"
#include "tests/support/program_folder.h"
#include "tests/support/run_world.h"

namespace sweep::testing::fsck_export_test {

class FsckAndExport : public ProgramFolder {
 protected:
  FsckAndExport() {
    const auto run = path("runs/a");
    {
      tbwriter::SummaryWriter writer(run);
      writer.add_hparams_start({{"lr", 0.25}});
      writer.add_scalar("Loss/train", 0.5, 3, {.wall_time = 100.5});
      writer.close();
    }
    events_ = run / tbwriter::list_event_files(run).at(0);
  }

  void damage() const {
    const std::string bytes = read_file(events_);
    tbwriter::spill(events_, flipped(bytes, bytes.size() / 2, 0x40));
  }

  std::filesystem::path events_;
};

TEST_F(FsckAndExport, FsckTellsDamageByItsExitCode) {
  const Finished whole = run({"fsck", "runs"});
  EXPECT_THAT(whole.out, HasSubstr("no damage"));
  EXPECT_EQ(whole.err, "");
  EXPECT_THAT(whole.out, Not(HasSubstr("events.out"))) << "only what is wrong has a line";
  EXPECT_THAT(run({"fsck", "runs", "--verbose"}).out, HasSubstr("ok       a/events.out.tfevents."));
  damage();
  const Finished damaged = run({"fsck", "runs"}, 1);
  EXPECT_THAT(damaged.out, HasSubstr("damaged  a/events.out.tfevents."));
  EXPECT_EQ(damaged.err, "");
  EXPECT_EQ(output({"fsck", "runs"}, 1)["damaged"], 1);
}

TEST_F(FsckAndExport, NothingToReadIsBadInput) {
  std::filesystem::create_directory(path("empty"));
  for (const char* command : {"fsck", "export"}) {
    for (const char* directory : {"nothing", "empty", "net.json"}) {
      const Finished finished = run({command, directory}, 2);
      EXPECT_EQ(finished.out, "");
      EXPECT_THAT(finished.err, StartsWith(std::string("sweep: ") + directory + ": "));
    }
  }
}

TEST_F(FsckAndExport, ExportPrintsEveryFormat) {
  EXPECT_EQ(run({"export", "runs"}).out,
            "run,tag,step,wall_time,value,hparam.lr\na,Loss/train,3,100.5,0.5,0.25\n");
  const auto printed = json::parse(run({"export", "runs", "--format", "json"}).out);
  EXPECT_EQ(printed["runs"][0]["scalars"]["Loss/train"][0]["value"], 0.5);
  EXPECT_THAT(run({"export", "runs", "--format=markdown"}).out, HasSubstr("| a | 0.25 | 0.5 |"));
}

TEST_F(FsckAndExport, ExportWritesTheFormatThatTheFileIsCalledBy) {
  for (const auto& [name, begin] : {std::pair("x.csv", "run,"), {"x.json", "{"}, {"x.md", "| run |"}}) {
    EXPECT_EQ(run({"export", "runs", "-o", name}).out, "");
    EXPECT_THAT(read_file(folder_.path() / name), StartsWith(begin));
  }
  for (const char* name : {"x.txt", "x", "x.cvs", ".csv"}) {
    EXPECT_THAT(run({"export", "runs", "-o", name}, 2).err,
                HasSubstr("want .csv, .json or .md, or --format"));
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / name));
  }
  run({"export", "runs", "-o", "x.txt", "--format", "csv"});
  run({"export", "runs", "-o", "no/such/folder.csv"}, 3);
  run({"export", "runs", "--tag", "Accuracy"}, 2);
  run({"export", "runs", "--tag", "("}, 2);
}

TEST_F(FsckAndExport, ExportOfADamagedFileGivesTheRestAndSaysSo) {
  damage();
  const Finished finished = run({"export", "runs"}, 1);
  EXPECT_THAT(finished.out, StartsWith("run,tag,"));
  EXPECT_THAT(finished.err, HasSubstr("damaged"));
}

// What the program makes of a directory that RunManager has filled for a training loop of a user's own.

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
  for (const char* command : {"compare", "report"})
    EXPECT_THAT(run({command, "mine", "./mine/"}, 2).err, HasSubstr("./mine/: is given twice")) << command;
}

// Its record still says that it is running.
TEST_F(OwnRuns, ARunOfAKilledSweepIsInterruptedWhereverItIsShown) {
  RunRecord killed;
  killed.name = "killed";
  killed.status = RunStatus::kRunning;
  fs::create_directory(path("mine/killed"));
  write_file_atomically(path("mine/killed/run.json"), run_record_text(killed));
  write_file_atomically(path("mine/sweep.json"), R"({"runs": ["lr=0.5", "lr=0.25", "killed"]})");
  EXPECT_THAT(run({"show", "mine"}).out, HasSubstr("  interrupted  "));
  EXPECT_THAT(run({"compare", "mine"}).out, HasSubstr("left out: mine/killed: interrupted\n"));
}

TEST_F(OwnRuns, AreNotTrainedAgainToVerifyThem) {
  const Finished finished = run({"verify", "mine"}, 2);
  EXPECT_THAT(finished.out, HasSubstr("lr=0.5: not compared: it was trained by another program"));
  EXPECT_THAT(finished.out, HasSubstr("0 of 2 finished runs trained again"));
}

}  // namespace sweep::testing::fsck_export_test

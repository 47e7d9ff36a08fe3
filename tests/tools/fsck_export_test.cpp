// The program's `fsck` and `export`: output, files and exit codes.

#include "tbwriter/event_files.h"
#include "tbwriter/summary_writer.h"
#include "tests/support/program_folder.h"

#include "tests/support/test.h"

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
    std::string bytes = read_file(events_);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x40);
    std::ofstream(events_, std::ios::binary) << bytes;
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
  const auto printed = nlohmann::json::parse(run({"export", "runs", "--format", "json"}).out);
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

}  // namespace sweep::testing::fsck_export_test

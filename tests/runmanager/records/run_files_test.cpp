// Which files of a run's directory are removed before it is trained again.
#include "runmanager/records/run_files.h"

#include "runmanager/records/run_builder.h"
#include "tbwriter/event_files.h"
#include "tests/support/event_files.h"

namespace sweep::run_files_test {

using tbwriter::spill;

using PrepareRunDirectory = test::InDirectory;
using RemoveTemporaries = test::InDirectory;

TEST_F(PrepareRunDirectory, RemovesOnlyWhatThisProgramNamesSo) {
  const std::vector<std::string> ours = {
      "run.json",          "checkpoint.safetensors", "log.txt",
      "run.json.4711.tmp", "run.json.4711-1.tmp",    "events.out.tfevents.1700000000.host.12.000000"};
  const std::vector<std::string> others = {"mynotes.tfevents.txt", "events.out.tfevents.notes",
                                           "run.json.txt", "notes.tmp"};
  for (const std::string& name : ours) spill(directory / name, "old");
  for (const std::string& name : others) spill(directory / name, "mine");
  prepare_run_directory(directory.path());
  for (const std::string& name : ours) EXPECT_FALSE(fs::exists(directory / name)) << name;
  for (const std::string& name : others) EXPECT_EQ(read_file(directory / name), "mine") << name;
}

TEST_F(PrepareRunDirectory, RemovesNothingWithoutLeave) {
  spill(directory / "run.json", "old");
  EXPECT_THROW(prepare_run_directory(directory.path(), [] { throw IoError("another process owns the run"); }),
               IoError);
  EXPECT_EQ(read_file(directory / "run.json"), "old");
}

TEST_F(PrepareRunDirectory, RemovesNothingThatAnotherWriterHas) {
  spill(directory / "run.json", "theirs");
  std::optional<FileDescriptor> other = tbwriter::lock_directory(directory.path());
  EXPECT_THROW(prepare_run_directory(directory.path()), IoError);
  EXPECT_EQ(read_file(directory / "run.json"), "theirs");
  other.reset();
  prepare_run_directory(directory.path());
  EXPECT_FALSE(fs::exists(directory / "run.json"));
}

TEST_F(RemoveTemporaries, KnowsWhatAKilledProcessHasHalfWritten) {
  for (const std::string name : {"run.json", "sweep.json", "results.csv", ".progress.json", ".inputs.json",
                                 "start.safetensors", "report.html"}) {
    spill(directory / name, "whole");
    spill(directory / (name + ".17-00000001-2.tmp"), "half");
    remove_temporaries(directory.path());
    EXPECT_EQ(read_file(directory / name), "whole");
    EXPECT_FALSE(fs::exists(directory / (name + ".17-00000001-2.tmp"))) << name;
  }
}

TEST_F(PrepareRunDirectory, RemovesALinkAndNotItsTarget) {
  spill(directory / "precious", "mine");
  fs::create_symlink("precious", directory / "log.txt");
  prepare_run_directory(directory.path());
  EXPECT_FALSE(fs::is_symlink(directory / "log.txt"));
  EXPECT_EQ(read_file(directory / "precious"), "mine");
}

TEST_F(PrepareRunDirectory, RefusesALinkedDirectory) {
  fs::create_directory(directory / "target");
  spill(directory / "target/run.json", "mine");
  fs::create_directory_symlink("target", directory / "run");
  EXPECT_NE(
      test::message_of<IoError>([&] { prepare_run_directory(directory / "run"); }).find("symbolic link"),
      std::string::npos);
  EXPECT_THROW(remove_temporaries(directory / "run"), IoError);
  EXPECT_EQ(read_file(directory / "target/run.json"), "mine");
}

// Python: [dict(zip(p, v)) for v in itertools.product(*p.values())] with
// p = {"lr": [.01, .001], "batch_size": [100, 1000], "device": ["cuda", "cpu"]}
TEST(RunBuilder, OrdersRunsAsItertoolsProductDoes) {
  std::vector<std::string> names, wanted;
  for (const sweep::Run& run : RunBuilder::get_runs(
           {{"lr", {0.01, 0.001}}, {"batch_size", {100, 1000}}, {"device", {"cuda", "cpu"}}}))
    names.push_back(run.name);
  for (const std::string lr : {"lr=0.01", "lr=0.001"})
    for (const char* size : {",batch_size=100", ",batch_size=1000"})
      for (const char* device : {",device=cuda", ",device=cpu"}) wanted.push_back(lr + size + device);
  EXPECT_EQ(names, wanted);
}

TEST(RunBuilder, KeepsTheTypesOfValues) {
  const sweep::Run run =
      RunBuilder::get_runs({{"lr", {0.5}}, {"n", {3}}, {"shuffle", {true}}, {"device", {"cuda"}}}).at(0);
  EXPECT_EQ(run.get<double>("lr"), 0.5);
  EXPECT_EQ(run.get<std::int64_t>("n"), 3);
  EXPECT_EQ(run.get<double>("n"), 3.0);
  EXPECT_EQ(run.get<bool>("shuffle"), true);
  EXPECT_EQ(run.get<std::string>("device"), "cuda");
  EXPECT_EQ(run.device, "cuda");
  EXPECT_THROW(run.get<bool>("n"), ConfigError);
  EXPECT_THROW(run.get<std::int64_t>("lr"), ConfigError);
  EXPECT_THAT(test::message_of<ConfigError>([&] { run.at("rate"); }),
              AllOf(HasSubstr("rate"), HasSubstr("lr, n, shuffle, device")));
}

TEST(RunBuilder, GivesOneRunWithoutAxes) {
  const auto runs = RunBuilder::get_runs({});
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_TRUE(runs[0].params.empty());
  EXPECT_FALSE(runs[0].name.empty());
}

TEST(RunBuilder, RefusesAnAxisWithoutValuesOrTwiceAndNamesRunsWithRepeatedValuesApart) {
  EXPECT_THROW(RunBuilder::get_runs({{"lr", {}}}), ConfigError);
  EXPECT_THROW(RunBuilder::get_runs({{"lr", {1}}, {"lr", {2}}}), ConfigError);
  const auto runs = RunBuilder::get_runs({{"lr", {0.5, 0.5}}});
  EXPECT_NE(runs[0].name, runs[1].name);
}

}  // namespace sweep::run_files_test

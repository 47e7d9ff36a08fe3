// What becomes of finished runs when a sweep is started again after its file, its command line or its data
// have changed.

#include "runmanager/records/earlier_starts/existing_runs.h"
#include "tests/runmanager/sweep/search_fixture.h"
#include "tests/support/reference_data.h"
#include "tests/support/resource_limit.h"

namespace sweep::existing_runs_test {

// All files below a directory.
std::map<std::string, std::string> contents(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file() && entry.path().filename() != ".lock")
      files[entry.path().lexically_relative(directory).string()] = read_file(entry.path());
  }
  return files;
}

// Two finished runs of 2 epochs, trained once for all tests.
class Finished : public Quarters {
 public:
  Finished() {
    write_file_atomically(directory_ / "quarters.json", sweep_file().dump());
    if (run("runs").exit_code != 0) throw std::runtime_error("the first start failed");
  }

  static Json sweep_file() {
    Json file = test::quarters_file();
    file["epochs"] = 2;
    file["params"] = {{"lr", {0.02, 0.01}}};
    return file;
  }
};

// A row of changed_sweeps.json: a merge patch (RFC 7386) of the sweep file, overrides, what becomes of the
// runs, and a part of the refusal, or of what is told.
struct Change {
  std::string name, fate;
  Json patch;
  std::vector<std::string> overrides;
  std::string tells;
};

void PrintTo(const Change& change, std::ostream* out) { *out << change.name; }

std::vector<Change> changes() {
  std::vector<Change> rows;
  for (const Json& row : Json::parse(read_file(test::reference_path("changed_sweeps.json"))))
    rows.push_back({row.at("name"), row.at("fate"), row.value("patch", Json::object()),
                    row.value("overrides", std::vector<std::string>()), row.value("tells", "")});
  return rows;
}

class ChangedSweep : public ::testing::Test, protected Quarters {
 protected:
  ChangedSweep() {
    static const Finished finished;
    fs::copy(finished.directory_.path(), directory_.path(),
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }

  void patch(const Json& change) {
    Json file = Finished::sweep_file();
    file.merge_patch(change);  // keeps what is next to a list
    write_file_atomically(directory_ / "quarters.json", file.dump());
  }
  void patch(const char* change) { patch(Json::parse(change)); }
  SweepOutcome run(const std::vector<std::string>& overrides = {}) {
    return Quarters::run("runs", overrides);
  }
  // Why it is refused.
  std::string refusal(const std::vector<std::string>& overrides = {}) {
    return test::message_of<ConfigError>([&] { run(overrides); });
  }
};

class ExistingRuns : public ChangedSweep, public ::testing::WithParamInterface<Change> {};

TEST_P(ExistingRuns, AreKeptContinuedAdoptedOrRefused) {
  const Change& change = GetParam();
  patch(change.patch);
  const fs::path sweep = directory_ / "runs/quarters";
  const auto before = contents(sweep);
  if (change.fate == "refused") {
    EXPECT_THAT(refusal(change.overrides), AllOf(HasSubstr(change.tells), HasSubstr("--replace"),
                                                 HasSubstr("--fresh"), HasSubstr("2 runs")));
    EXPECT_EQ(contents(sweep), before);
    return;
  }
  const SweepOutcome outcome = run(change.overrides);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(told_, HasSubstr(change.tells));
  const RunRecord& first = outcome.runs.at(0);
  if (change.fate == "kept" || change.fate == "new") {
    const auto after = contents(sweep);
    for (const auto& [name, content] : before) {
      if (name.find('/') == std::string::npos) continue;  // sweep.json and results may be written again.
      EXPECT_TRUE(after.contains(name) && after.at(name) == content) << name << " of a finished run";
    }
  }
  if (change.fate == "new") {
    for (const RunRecord& run : outcome.runs) {
      EXPECT_EQ(run.epochs.size(), 2u);
      EXPECT_TRUE(outcome.directory != sweep || !before.contains(run.name + "/run.json")) << run.name;
    }
  } else if (change.fate == "continued") {
    for (const RunRecord& run : outcome.runs) EXPECT_GT(run.epochs.size(), 2u) << run.name;
  } else if (change.fate == "adopted") {
    EXPECT_FALSE(fs::exists(sweep / "lr=0.02"));
    // Whatever it is called now, its first epochs were not trained again.
    EXPECT_EQ(first.started, read_run_record(sweep / first.name / "run.json").started);
    if (first.epochs.size() == 2) {
      EXPECT_EQ(read_file(sweep / first.name / "checkpoint.safetensors"),
                before.at("lr=0.02/checkpoint.safetensors"));
    }
    EXPECT_THAT(told_, HasSubstr("renamed"));
  } else {
    EXPECT_EQ(change.fate, "kept");
  }
}

INSTANTIATE_TEST_SUITE_P(Changes, ExistingRuns, ::testing::ValuesIn(changes()),
                         [](const auto& change) { return change.param.name; });

TEST_F(ChangedSweep, IsRefusedWhenTheDataHasChanged) {
  const fs::path file = directory_ / "data/train-images-idx3-ubyte";
  std::string bytes = read_file(file);
  bytes.back() = static_cast<char>(bytes.back() + 1);
  write_file_atomically(file, bytes);
  EXPECT_THAT(refusal(),
              ::testing::ContainsRegex(
                  "data: train-images-idx3-ubyte [0-9a-f]+… -> train-images-idx3-ubyte [0-9a-f]+…\n"));
}

TEST_F(ChangedSweep, DoesNotTrainNextToRunsThatCannotBeListed) {
  RunConfig renamed;
  renamed.name = "lr=0.02,seed=3";
  const test::ResourceLimit no_files(RLIMIT_NOFILE, 0);
  const auto find = [&] {
    find_existing_runs(
        directory_ / "runs/quarters", {&renamed, 1}, [](const RunConfig&) { return RunIdentity(); }, true);
  };
  EXPECT_THAT(test::message_of<IoError>(find), HasSubstr("quarters: cannot list: "));
}

TEST_F(ChangedSweep, ShowsFinishedRunsWhenTheDataIsGone) {
  fs::remove_all(directory_ / "data");
  EXPECT_EQ(run().runs.size(), 2u);
}

TEST_F(ChangedSweep, KeepsRunsOfANewAxisWithTheOldValueOnlyAndRecordsIt) {
  auto before = contents(directory_ / "runs/quarters/lr=0.02");
  patch(R"({"params": {"seed": [3]}})");
  run();
  auto after = contents(directory_ / "runs/quarters/lr=0.02");
  EXPECT_EQ(Json::parse(after.at("run.json")).at("params").at("seed"), 3);
  before.erase("run.json");
  after.erase("run.json");
  EXPECT_EQ(after, before);
}

// Gives a run the name that it had when names held the JSON of lists.
void rename_run(const fs::path& sweep, const std::string& name, const std::string& former) {
  fs::rename(sweep / name, sweep / former);
  RunRecord record = read_run_record(sweep / former / "run.json");
  record.name = former;
  write_file_atomically(sweep / former / "run.json", run_record_text(record));
}

TEST_F(ChangedSweep, AdoptsRunsAndTrialsThatWereNamedByTheJsonOfAList) {
  const auto expect_adopted = [this](const SweepOutcome& trained) {
    const SweepOutcome again = run();
    ASSERT_EQ(again.runs.size(), trained.runs.size());
    for (std::size_t i = 0; i < again.runs.size(); ++i) {
      EXPECT_EQ(again.runs[i].name, trained.runs[i].name);
      EXPECT_EQ(again.runs[i].epochs[0]["run_seconds"], trained.runs[i].epochs[0]["run_seconds"])
          << "trained again";
    }
  };
  patch(R"({"name": "lists", "params": {"dataset.augment": [["horizontal_flip"], []]}})");
  const SweepOutcome runs = run();
  ASSERT_EQ(runs.runs.size(), 4u);
  EXPECT_EQ(runs.runs[1].name, "lr=0.02,dataset.augment=none");
  rename_run(runs.directory, "lr=0.02,dataset.augment=none", "lr=0.02,dataset.augment=%5B%5D");
  rename_run(runs.directory, "lr=0.01,dataset.augment=horizontal_flip",
             "lr=0.01,dataset.augment=%5B%22horizontal_flip%22%5D");
  expect_adopted(runs);
  EXPECT_THAT(told_, HasSubstr("2 runs from an earlier start are the same under another name"));
  EXPECT_FALSE(fs::exists(runs.directory / "lr=0.02,dataset.augment=%5B%5D"));

  patch(R"({"name": "trials", "search": {"method": "tpe", "trials": 3, "at_once": 1},
            "params": {"optimizer.betas": [[0.9, 0.999], [0.8, 0.99], [0.5, 0.9]]}})");
  const SweepOutcome trials = run();
  ASSERT_EQ(trials.runs.size(), 3u);
  for (const RunRecord& trial : trials.runs) {
    EXPECT_THAT(trial.name, HasSubstr("optimizer.betas=0."));
    rename_run(trials.directory, trial.name,
               "optimizer.betas=%5B0.9%2C0.999%5D" + trial.name.substr(trial.name.size() - 5));
  }
  expect_adopted(trials);
}

TEST_F(ChangedSweep, AdoptsRunsWhenAKeyThatNamesLeftOutVaries) {
  const std::vector<std::string> one = {"name=grown", "lr=0.02,0.01", "batch_size=20", "num_workers=0"};
  patch(R"({"params": {"lr": [0.5], "batch_size": [1], "num_workers": [1]}})");
  run(one);
  const fs::path sweep = directory_ / "runs/grown";
  const std::string checkpoint = read_file(sweep / "lr=0.02/checkpoint.safetensors");
  const SweepOutcome grown = run({one[0], one[1], "batch_size=20,40", one[3]});
  EXPECT_EQ(grown.runs[0].name, "lr=0.02,batch_size=20");
  EXPECT_EQ(read_file(sweep / "lr=0.02,batch_size=20/checkpoint.safetensors"), checkpoint);
  EXPECT_THAT(told_, HasSubstr("renamed"));
  // And back again: batch_size has one value, so its runs get the short names.
  EXPECT_EQ(run(one).runs[0].name, "lr=0.02");
  EXPECT_EQ(read_file(sweep / "lr=0.02/checkpoint.safetensors"), checkpoint);
  EXPECT_TRUE(fs::exists(sweep / "lr=0.02,batch_size=40"));
}

TEST_F(ChangedSweep, NamesAnotherOptimizerWithoutItsArguments) {
  patch(R"({"optimizer": "sgd"})");
  EXPECT_THAT(refusal(), Not(HasSubstr("betas")));
}

TEST_F(ChangedSweep, ReplacesRunsAndRemovesTheOldOnesOnlyAfterwards) {
  patch(R"({"seed": 4})");
  options_.replace = true;
  const SweepOutcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(told_, HasSubstr("2 runs with other settings are trained again"));
  EXPECT_EQ(outcome.runs[0].config.at("seed"), 4);
  for (const auto& entry : fs::directory_iterator(outcome.directory))
    EXPECT_THAT(entry.path().string(), Not(HasSubstr("replaced")));
}

TEST_F(ChangedSweep, KeepsTheOldRunWhereTheNewOneFails) {
  const auto before = contents(directory_ / "runs/quarters/lr=0.02");
  patch(R"({"optimizer": {"name": "sgd", "momentum": 0.9}, "params": {"lr": [0.02]}})");
  const auto usual = std::exchange(environment_.make_engine,
                                   [](const Network&, const EngineOptions&) -> std::unique_ptr<Engine> {
                                     throw DeviceError("there is no such engine");
                                   });
  options_.replace = true;
  const SweepOutcome outcome = run();
  environment_.make_engine = usual;
  options_.replace = false;
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(contents(directory_ / "runs/quarters/lr=0.02.replaced-1"), before);
  // The next start goes on with the new run, and then the old one goes.
  EXPECT_EQ(run().exit_code, 0);
  EXPECT_FALSE(fs::exists(directory_ / "runs/quarters/lr=0.02.replaced-1"));
}

TEST_F(ChangedSweep, IsRefusedAlsoWhereTheRecordOfTheFinishedRunIsDamaged) {
  for (const char* run : {"lr=0.02", "lr=0.01"})
    tbwriter::spill(directory_ / "runs/quarters" / run / "run.json", "{\"name\": ");
  const auto before = contents(directory_ / "runs/quarters");
  patch(R"({"seed": 4})");
  EXPECT_THAT(refusal(), HasSubstr("seed: 3 -> 4"));
  EXPECT_EQ(contents(directory_ / "runs/quarters"), before);
}

TEST_F(ChangedSweep, KeepsRunsBesideEventsOfOtherPrograms) {
  tbwriter::spill(directory_ / "runs/quarters/lr=0.02/mynotes.tfevents.txt", "no events at all");
  const auto before = contents(directory_ / "runs/quarters/lr=0.02");
  run();
  EXPECT_EQ(contents(directory_ / "runs/quarters/lr=0.02"), before);
}

}  // namespace sweep::existing_runs_test

// What becomes of finished runs when a sweep is started again after its file, its command line or its data
// have changed.

#include "core/data/safetensors.h"
#include "tests/runmanager/sweep/search_fixture.h"

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

enum class Fate { kKept, kContinued, kAdopted, kRefused, kNew };

struct Change {
  std::string name;
  Fate fate;
  std::string file_patch = "{}";  // RFC 7386 merge patch of the sweep file
  std::vector<std::string> overrides = {};
  std::string tells = "";  // part of the refusal, or of what is told
};

void PrintTo(const Change& change, std::ostream* out) { *out << change.name; }

const char* const kSameNetworkSpelledOut = R"({"network": {"name": "net", "layers": [
  {"name": "flatten", "type": "flatten"}, {"name": "hidden", "type": "linear", "out_features": 8, "bias": true},
  {"name": "relu", "type": "relu"}, {"name": "out", "type": "linear", "out_features": 4}]}})";
const char* const kOtherLayerNames = R"({"network": {"name": "net", "layers": [
  {"name": "f", "type": "flatten"}, {"name": "fc1", "type": "linear", "out_features": 8},
  {"name": "r", "type": "relu"}, {"name": "fc2", "type": "linear", "out_features": 4}]}})";
const char* const kWiderNetwork = R"({"network": {"name": "net", "layers": [
  {"name": "flatten", "type": "flatten"}, {"name": "hidden", "type": "linear", "out_features": 9},
  {"name": "relu", "type": "relu"}, {"name": "out", "type": "linear", "out_features": 4}]}})";

const Change kChanges[] = {
    {"Nothing", Fate::kKept},
    {"LogBatches", Fate::kKept, R"({"log": {"batches": 5}})"},
    {"LogHistogramsOff", Fate::kKept, "{}", {"log.histograms=false"}},
    {"NumWorkers", Fate::kKept, R"({"num_workers": 2})"},
    {"Placement", Fate::kKept, R"({"dataset": {"placement": "host"}})"},
    {"DeviceCpuWhereAutoWasTheCpu", Fate::kKept, R"({"device": "cpu"})"},
    {"DefaultsSpelledOut", Fate::kKept, R"({"loss": {"name": "cross_entropy", "label_smoothing": 0.0}})"},
    {"OptimizerAsAnObject", Fate::kKept, R"({"optimizer": {"name": "adam", "betas": [0.9, 0.999]}})"},
    {"NetworkRenamed", Fate::kKept, R"({"network": {"name": "other"}})"},
    {"LayersSpelledOtherwise", Fate::kKept, kSameNetworkSpelledOut},
    {"LayersRenamed", Fate::kKept, kOtherLayerNames},
    {"DatasetRenamed", Fate::kKept, R"({"dataset": {"name": "squares"}})"},
    {"NumberSpelledWithExponent", Fate::kKept, R"({"params": {"lr": [2e-2, 1e-2]}})"},
    {"OrderOfAxisValues", Fate::kKept, R"({"params": {"lr": [0.01, 0.02]}})"},
    {"FewerEpochs", Fate::kKept, R"({"epochs": 1})", {}, "has 2 epochs, 1 is asked for"},
    {"ConstantScheduleNamed", Fate::kKept, R"({"schedule": "constant"})"},
    {"ClipNormOff", Fate::kKept, R"({"clip_norm": 0})"},
    {"MoreEpochs", Fate::kContinued, R"({"epochs": 3})", {}, "go on"},
    {"MoreEpochsAndOtherLogs", Fate::kContinued, R"({"log": {"batches": 2}})", {"epochs=4"}},
    {"NewAxisWithTheOldValueAndAnother", Fate::kAdopted, R"({"params": {"batch_size": [20, 40]}})"},
    {"NewAxisOfDefaultsName", Fate::kAdopted, R"({"params": {"shuffle": [true, false]}})"},
    {"NewAxisOfNumWorkersWithTheOldValue", Fate::kAdopted, R"({"params": {"num_workers": [0, 2]}})"},
    {"NewAxisOfTheDeviceItBecame", Fate::kAdopted, R"({"params": {"device": ["cpu", "cuda:7"]}})"},
    {"AxisByItsPath", Fate::kAdopted, R"({"params": {"optimizer.eps": [1e-8, 1e-7]}})"},
    {"NewAxisAndMoreEpochs", Fate::kAdopted, R"({"epochs": 3, "params": {"seed": [3, 4]}})"},
    {"NewAxisOfNumWorkersWithAnotherValue",
     Fate::kRefused,
     R"({"params": {"num_workers": [2]}})",
     {},
     "num_workers: 0 -> 2"},
    {"NewAxisWithAnotherValue", Fate::kRefused, R"({"params": {"seed": [4]}})", {}, "seed: 3 -> 4"},
    {"NewAxisWithOtherValues", Fate::kNew, R"({"params": {"seed": [4, 5]}})"},
    {"OtherAxisValues", Fate::kNew, R"({"params": {"lr": [0.03]}})"},
    {"OtherName", Fate::kNew, R"({"name": "other"})"},
    {"Seed", Fate::kRefused, R"({"seed": 4})", {}, "seed: 3 -> 4"},
    {"BatchSize", Fate::kRefused, R"({"batch_size": 40})", {}, "batch_size: 20 -> 40"},
    {"Shuffle", Fate::kRefused, "{}", {"shuffle=false"}, "shuffle: true -> false"},
    {"Optimizer", Fate::kRefused, R"({"optimizer": "sgd"})", {}, "optimizer.name: \"adam\" -> \"sgd\""},
    {"OptimizerArgument", Fate::kRefused, "{}", {"optimizer.eps=1e-7"}, "optimizer.eps: 1e-08 -> 1e-07"},
    {"Loss", Fate::kRefused, R"({"loss": "mse"})", {}, "loss.name: \"cross_entropy\" -> \"mse\""},
    {"Schedule", Fate::kRefused, R"({"schedule": "one_cycle"})", {}, "schedule.name"},
    {"ClipNorm", Fate::kRefused, R"({"clip_norm": 1})", {}, "clip_norm"},
    {"Deterministic", Fate::kRefused, R"({"deterministic": false})", {}, "deterministic: true -> false"},
    {"WiderLayer", Fate::kRefused, kWiderNetwork, {}, "network.layers[1].out_features: 8 -> 9"},
    {"Validation", Fate::kRefused, R"({"dataset": {"validation": 60}})", {}, "dataset.validation: 40 -> 60"},
    {"Augment", Fate::kRefused, R"({"dataset": {"augment": ["horizontal_flip"]}})", {}, "dataset.augment"},
    {"Limit", Fate::kRefused, R"({"dataset": {"limit": 100}})", {}, "dataset.limit: 0 -> 100"},
    {"Normalize",
     Fate::kRefused,
     R"({"dataset": {"normalize": {"mean": [0.5], "std": [0.5]}}})",
     {},
     "dataset.normalize.mean[0]"},
};

class ChangedSweep : public ::testing::Test, protected Quarters {
 protected:
  ChangedSweep() {
    static const Finished finished;
    fs::copy(finished.directory_.path(), directory_.path(),
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }

  void patch(const std::string& text) {
    Json file = Finished::sweep_file();
    // A merge patch would keep the old values of a list's neighbours, which is what is wanted.
    file.merge_patch(Json::parse(text));
    write_file_atomically(directory_ / "quarters.json", file.dump());
  }
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
  patch(change.file_patch);
  const fs::path sweep = directory_ / "runs/quarters";
  const auto before = contents(sweep);
  if (change.fate == Fate::kRefused) {
    EXPECT_THAT(refusal(change.overrides), AllOf(HasSubstr(change.tells), HasSubstr("--replace"),
                                                 HasSubstr("--fresh"), HasSubstr("2 runs")));
    EXPECT_EQ(contents(sweep), before);
    return;
  }
  const SweepOutcome outcome = run(change.overrides);
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(told_, HasSubstr(change.tells));
  const auto after = contents(sweep);
  std::size_t same_files = 0, run_files = 0;
  for (const auto& [name, content] : before) {
    if (name.find('/') == std::string::npos) continue;  // sweep.json and results may be written again.
    ++run_files;
    const auto found = after.find(name);
    same_files += found != after.end() && found->second == content;
  }
  switch (change.fate) {
    case Fate::kNew:
      for (const RunRecord& run : outcome.runs) {
        EXPECT_EQ(run.epochs.size(), 2u);
        EXPECT_TRUE(outcome.directory != sweep || !before.contains(run.name + "/run.json")) << run.name;
      }
      [[fallthrough]];
    case Fate::kKept:
      EXPECT_EQ(same_files, run_files) << "a file of a finished run has changed";
      break;
    case Fate::kContinued:
      for (const RunRecord& run : outcome.runs) EXPECT_GT(run.epochs.size(), 2u) << run.name;
      break;
    case Fate::kAdopted:
      EXPECT_FALSE(fs::exists(sweep / "lr=0.02"));
      // Whatever it is called now, its first epochs were not trained again.
      EXPECT_EQ(outcome.runs[0].started, read_run_record(sweep / outcome.runs[0].name / "run.json").started);
      for (const auto& [name, content] : before) {
        if (name == "lr=0.02/checkpoint.safetensors" && outcome.runs[0].epochs.size() == 2) {
          EXPECT_EQ(read_file(sweep / outcome.runs[0].name / "checkpoint.safetensors"), content);
        }
      }
      EXPECT_THAT(told_, HasSubstr("renamed"));
      break;
    case Fate::kRefused:
      break;
  }
}

INSTANTIATE_TEST_SUITE_P(Changes, ExistingRuns, ::testing::ValuesIn(kChanges),
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

TEST_F(ChangedSweep, AdoptsRunsThatWereNamedByTheJsonOfAList) {
  patch(R"({"name": "lists", "params": {"dataset.augment": [["horizontal_flip"], []]}})");
  const SweepOutcome trained = run();
  const fs::path sweep = directory_ / "runs/lists";
  EXPECT_EQ(trained.runs[1].name, "lr=0.02,dataset.augment=none");
  rename_run(sweep, "lr=0.02,dataset.augment=none", "lr=0.02,dataset.augment=%5B%5D");
  rename_run(sweep, "lr=0.01,dataset.augment=horizontal_flip",
             "lr=0.01,dataset.augment=%5B%22horizontal_flip%22%5D");
  const SweepOutcome again = run();
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(again.runs[i].name, trained.runs[i].name);
    EXPECT_EQ(again.runs[i].epochs[0]["run_seconds"], trained.runs[i].epochs[0]["run_seconds"])
        << "trained again";
  }
  EXPECT_THAT(told_, HasSubstr("2 runs from an earlier start are the same under another name"));
  EXPECT_FALSE(fs::exists(sweep / "lr=0.02,dataset.augment=%5B%5D"));
}

TEST_F(ChangedSweep, AdoptsTrialsThatWereNamedByTheJsonOfAList) {
  patch(R"({"name": "trials", "search": {"method": "tpe", "trials": 3, "at_once": 1},
            "params": {"optimizer.betas": [[0.9, 0.999], [0.8, 0.99], [0.5, 0.9]]}})");
  const SweepOutcome trained = run();
  const fs::path sweep = directory_ / "runs/trials";
  ASSERT_EQ(trained.runs.size(), 3u);
  for (const RunRecord& run : trained.runs) {
    EXPECT_THAT(run.name, HasSubstr("optimizer.betas=0."));
    rename_run(sweep, run.name, "optimizer.betas=%5B0.9%2C0.999%5D" + run.name.substr(run.name.size() - 5));
  }
  const SweepOutcome again = run();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(again.runs[i].name, trained.runs[i].name);
    EXPECT_EQ(again.runs[i].epochs[0]["run_seconds"], trained.runs[i].epochs[0]["run_seconds"])
        << "trained again";
  }
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

TEST_F(ChangedSweep, TrainsAgainFromTheStartWhatHasLostItsCheckpoint) {
  const fs::path checkpoint = directory_ / "runs/quarters/lr=0.02/checkpoint.safetensors";
  const auto weights = [&] {
    std::vector<float> values;
    for (const NamedTensor& tensor : read_safetensors(checkpoint).tensors)
      values.insert(values.end(), tensor.values.begin(), tensor.values.end());
    return values;
  };
  const std::vector<float> whole = weights();
  for (const bool is_missing : {true, false}) {
    is_missing ? fs::remove(checkpoint) : (fs::resize_file(checkpoint, fs::file_size(checkpoint) - 1), true);
    told_.clear();
    EXPECT_EQ(run().exit_code, 0);
    EXPECT_THAT(told_, HasSubstr(is_missing ? "was finished, but checkpoint.safetensors is missing; it is "
                                              "trained from the start"
                                            : "; it is trained from the start"));
    EXPECT_EQ(weights(), whole);
  }
}

}  // namespace sweep::existing_runs_test

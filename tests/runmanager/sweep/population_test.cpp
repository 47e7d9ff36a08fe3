// Populations: copies go on from the states of others, with the same members and bits whatever interrupts.
#include "tests/runmanager/sweep/search_fixture.h"

#include "runmanager/inspect/fsck.h"
#include "runmanager/inspect/verify.h"
#include "runmanager/records/checkpoint.h"
#include "runmanager/records/lock_file.h"
#include "runmanager/records/recorded_config.h"
#include "tests/runmanager/sweep/misbehaviour.h"

namespace sweep::sweep_population_test {

using test::Outcome;

const Json kWithDropout = Json::parse(R"({"name": "net", "layers": [
  {"name": "flatten", "type": "flatten"}, {"name": "drop", "type": "dropout", "p": 0.2},
  {"name": "out", "type": "linear", "out_features": 4}]})");

class PopulationSearch : public test::Search {
 protected:
  PopulationSearch() { write_population(); }

  // 4 members, of which one is replaced after epochs 2 and 4.
  void write_population(const Json& search = Json::object(), const Json& more = Json::object()) {
    Json all = {{"method", "population"}, {"trials", 4}, {"interval", 2}, {"reduction", 4}, {"seed", 5}};
    all.update(search);
    Json file = {{"epochs", 6}, {"optimizer", "sgd"}};
    file.update(more);
    write(all,
          {{"lr", {{"log_uniform", {0.001, 0.5}}}},
           {"momentum", {{"uniform", {0.1, 0.95}}}},
           {"weight_decay", {{"log_uniform", {1e-5, 0.01}}}}},
          file);
  }

  // Stops at the end of the first generation, when all of it have paused, before its copies are made.
  SweepOutcome run_to_first_generation() {
    environment_.stop_requested = [this] {
      std::size_t waiting = 0;
      std::error_code error;
      for (const auto& entry : fs::directory_iterator(directory_ / "runs/quarters", error)) {
        if (!fs::exists(entry.path() / "run.json")) continue;
        waiting += read_run_record(entry.path() / "run.json").error == "waits after epoch 2";
      }
      return waiting == 4 ? 2 : 0;
    };
    SweepOutcome outcome = run("runs");
    environment_.stop_requested = [] { return 0; };
    EXPECT_EQ(outcome.exit_code, 130);
    return outcome;
  }
};

TEST_F(PopulationSearch, CopiesContinueTheBestMembersInThePlaceOfTheWorst) {
  const SweepOutcome sweep = run("runs");
  ASSERT_EQ(sweep.exit_code, 0);
  ASSERT_EQ(sweep.runs.size(), 6U);
  EXPECT_EQ(count(sweep, RunStatus::kCompleted), 4U);
  EXPECT_EQ(count(sweep, RunStatus::kPruned), 2U);
  EXPECT_THAT(told_, HasSubstr("6 trials, 4 of them to the end; best: Loss/validation"));
  EXPECT_THAT(told_, HasSubstr("6 runs took")) << "a copy's time begins with its own epochs";
  std::map<std::string, const RunRecord*> by_name;
  for (const RunRecord& run : sweep.runs) by_name[run.name] = &run;
  for (std::size_t i = 0; i < 6; ++i) {
    const RunRecord& run = sweep.runs[i];
    const Lineage lineage = lineage_of(run.config);
    ASSERT_EQ(lineage.empty(), i < 4);
    if (i < 4) continue;
    const Ancestor& parent = lineage.back();
    EXPECT_EQ(parent.until, i == 4 ? 2 : 4);
    EXPECT_EQ(lineage.size(), lineage_of(by_name.at(parent.run)->config).size() + 1);
    EXPECT_EQ(parent.params, by_name.at(parent.run)->params);
    EXPECT_NE(run.params, parent.params);
    ASSERT_GE(run.epochs.size(), static_cast<std::size_t>(parent.until));
    // The best of its generation.
    const auto loss = [&](const RunRecord& record) {
      return *record.epochs[static_cast<std::size_t>(parent.until) - 1]["validation_loss"];
    };
    for (std::size_t other = 0; other < i; ++other) {
      if (sweep.runs[other].epochs.size() < static_cast<std::size_t>(parent.until)) continue;
      EXPECT_LE(loss(run), loss(sweep.runs[other]));
    }
    for (std::size_t epoch = 0; epoch < static_cast<std::size_t>(parent.until); ++epoch)
      EXPECT_EQ(run.epochs[epoch].values, by_name.at(parent.run)->epochs[epoch].values);
  }
  for (const RunRecord& run : sweep.runs) {
    const bool is_pruned = run.status == RunStatus::kPruned;
    EXPECT_EQ(run.epochs.size() < 6, is_pruned);
    EXPECT_THAT(run.error.value_or(""), HasSubstr(is_pruned ? "among the worst of 4 after epoch " : ""));
  }
}

TEST_F(PopulationSearch, TheSecondsOfTheParentCountOnce) {
  const Lineage lineage = {{.run = "parent", .until = 2, .params = {}}};
  RunRecord copy;
  copy.config[std::string(kLineageKey)] = to_json(lineage);
  for (int epoch = 1; epoch <= 4; ++epoch) {
    copy.epochs.emplace_back(epoch);
    copy.epochs.back().set("run_seconds", 10.0 * epoch);
  }
  EXPECT_EQ(own_seconds(copy), 20) << "so far";
  copy.run_seconds = 45;
  EXPECT_EQ(own_seconds(copy), 25);
  copy.config = Json::object();
  EXPECT_EQ(own_seconds(copy), 45) << "a run that continues none";
}

TEST_F(PopulationSearch, HistoriesAreInTensorBoardAndResults) {
  const SweepOutcome sweep = run("runs");
  const RunRecord& copy = sweep.runs[4];
  const Lineage lineage = lineage_of(copy.config);
  const auto events = tbwriter::read_run(sweep.directory / copy.name);
  for (const char* tag :
       {"Optimizer/lr", "Parameters/lr", "Parameters/momentum", "Parameters/weight_decay"}) {
    const auto values = tbwriter::values_of(events, tag);
    ASSERT_EQ(values.size(), copy.epochs.size()) << tag;
    const std::string key = std::string(tag).substr(std::string(tag).find('/') + 1);
    for (std::size_t epoch = 0; epoch < values.size(); ++epoch) {
      const Params& then = epoch < 2 ? lineage[0].params : copy.params;
      EXPECT_EQ(values[epoch].simple_value(), static_cast<float>(std::get<double>(*find_param(then, key))))
          << tag << epoch;
    }
  }
  EXPECT_EQ(tbwriter::values_of(events, "Loss/train").size(), copy.epochs.size());
  const Json results = Json::parse(read_file(sweep.directory / "results.json"));
  EXPECT_EQ(results.at("runs")[0].at("lineage"), Json::array());
  const Json expected = {{{"run", lineage[0].run}, {"epoch", 2}, {"params", to_json(lineage[0].params)}}};
  EXPECT_EQ(results.at("runs")[4].at("lineage"), expected);
  // A row has what trained its epoch.
  const std::string csv = read_file(sweep.directory / "results.csv");
  std::size_t found = 0;
  for (const std::string& line : lines_of(csv)) {
    const auto begins = [&](int epoch) {
      return line.find(copy.name + "\"," + std::string(to_string(copy.status)) + "," +
                       std::to_string(epoch)) != std::string::npos;
    };
    for (const int epoch : {2, 3}) {
      if (!begins(epoch)) continue;
      const Params& then = epoch == 2 ? lineage[0].params : copy.params;
      EXPECT_THAT(line,
                  AllOf(HasSubstr("," + param_text(then, "lr") + "," + param_text(then, "momentum") + ",")));
      ++found;
    }
  }
  EXPECT_EQ(found, 2U) << csv;
}

TEST_F(PopulationSearch, EndsWithTheSameMembersAndBitsHoweverItIsTrained) { expect_same_however_trained(6); }

// An oracle for the state that is copied: with the parent's values a copy trains as the parent does.
TEST_F(PopulationSearch, ACopyWithTheSameValuesHasTheBitsOfItsParent) {
  bool found = false;
  for (int seed = 0; seed < 20 && !found; ++seed) {
    // Only the first of the two learning rates learns; a copy has it in five of eight cases.
    write({{"method", "population"}, {"trials", 2}, {"interval", 2}, {"seed", seed}}, {{"lr", {0.01, 1e-9}}},
          {{"epochs", 3}, {"network", kWithDropout}});
    const std::string logdir = fmt::format("runs{}", seed);
    const SweepOutcome sweep = run(logdir);
    ASSERT_EQ(sweep.runs.size(), 3U);
    const Outcome outcome = outcome_of(sweep);
    const std::string parent = lineage_of(sweep.runs[2].config).at(0).run, copy = sweep.runs[2].name;
    ASSERT_EQ(parent, "lr=0.01");
    const bool is_same = param_text(sweep.runs[2].params, "lr") == "0.01";
    EXPECT_EQ(test::same_bytes(outcome.weights.at(copy), outcome.weights.at(parent)), is_same);
    EXPECT_EQ(outcome.ends.at(copy) == outcome.ends.at(parent), is_same);
    found = is_same;
  }
  EXPECT_TRUE(found);
}

TEST_F(PopulationSearch, TrainsAMemberAgainWhoseLastStateAPowerCutHasCost) {
  const Outcome expected = outcome_of(run("whole"));
  const SweepOutcome first = run_to_first_generation();
  ASSERT_EQ(first.runs.size(), 4U);
  const RunRecord copy = read_run_record(directory_ / "whole/quarters" / expected.names[4] / "run.json");
  const fs::path parent = first.directory / lineage_of(copy.config)[0].run;
  fs::resize_file(parent / "checkpoint.safetensors", 100);
  const SweepOutcome sweep = run("runs");
  EXPECT_THAT(read_file(parent / "log.txt"), HasSubstr("not resumed but trained from the start"));
  EXPECT_EQ(sweep.exit_code, 0);
  expect_same(outcome_of(sweep), expected);
}

TEST_F(PopulationSearch, AnswersASignalWhileAnotherProcessHasTheParent) {
  const Outcome expected = outcome_of(run("whole"));
  const SweepOutcome first = run_to_first_generation();
  const RunRecord copy = read_run_record(directory_ / "whole/quarters" / expected.names[4] / "run.json");
  std::optional<RunLock> lock = RunLock::try_lock(first.directory / lineage_of(copy.config)[0].run);
  ASSERT_TRUE(lock.has_value());
  std::atomic<bool> has_ended = false;
  std::thread patience([&] {
    for (int tries = 0; tries < 6000 && !has_ended; ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (!has_ended) lock.reset();
  });
  environment_.stop_requested = [begin = std::chrono::steady_clock::now()] {
    return std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(500) ? 2 : 0;
  };
  options_.join = true;
  const SweepOutcome stopped = run("runs");
  options_.join = false;
  environment_.stop_requested = [] { return 0; };
  has_ended = true;
  patience.join();
  EXPECT_TRUE(lock.has_value()) << "it has waited for the other process";
  lock.reset();
  EXPECT_EQ(stopped.exit_code, 130);
  EXPECT_FALSE(fs::exists(first.directory / expected.names[4]));
  expect_same(outcome_of(run("runs")), expected);
}

// Makes a worker crash, when asked to stop, as soon as it comes to the first member's third epoch.
TEST_F(PopulationSearch, AMemberWhoseWorkersWereLostIsTriedAgainUnlessCopiesWereMadeSince) {
  const fs::path marker = directory_ / "misbehaved";
  ::setenv("MISBEHAVED", marker.c_str(), 1);
  for (const bool is_decided : {false, true}) {
    write({{"method", "population"},
           {"trials", 5},
           {"interval", is_decided ? 4 : 2},
           {"reduction", 2},
           {"points",
            {{{"lr", kCrashesOnce}}, {{"lr", 2e-5}}, {{"lr", 2e-4}}, {{"lr", 1e-4}}, {{"lr", 3e-5}}}}},
          {{"lr", {{"log_uniform", {1e-5, 200}}}}}, {{"epochs", is_decided ? 8 : 3}});
    const std::string logdir = is_decided ? "decided" : "open";
    environment_.stop_requested = [&marker] {
      fs::remove(marker);
      return 0;
    };
    const SweepOutcome lost = run_in_workers(2, logdir);
    environment_.stop_requested = [] { return 0; };
    EXPECT_EQ(lost.runs[0].status, RunStatus::kFailed);
    EXPECT_EQ(lost.runs[0].epochs.size(), 2U);
    tbwriter::spill(marker, "once");
    const SweepOutcome again = run_in_workers(2, logdir);
    EXPECT_EQ(again.runs[0].status, is_decided ? RunStatus::kFailed : RunStatus::kCompleted);
    if (is_decided) expect_same(outcome_of(again), outcome_of(lost));
  }
}

TEST_F(PopulationSearch, FsckChecksTheStartOfACopy) {
  const SweepOutcome sweep = run("runs");
  const fs::path start = sweep.directory / sweep.runs[4].name / "start.safetensors";
  EXPECT_EQ(check_directory(sweep.directory).damaged(), 0u);
  const auto damage = [&] { return fsck_text(check_directory(sweep.directory)); };
  const std::string whole = read_file(start);
  write_file_atomically(start, flipped(whole, whole.size() - 1));
  EXPECT_THAT(damage(), HasSubstr("damaged  " + sweep.runs[4].name + "/start.safetensors\n"));
  fs::remove(start);
  fs::copy_file(sweep.directory / sweep.runs[5].name / "start.safetensors", start);
  EXPECT_THAT(damage(), HasSubstr("is of epoch 4, but the run continues "));
}

TEST_F(PopulationSearch, MakesCopiesAgainThatWereLostBeforeTheirFirstEpoch) {
  const Outcome expected = outcome_of(run("whole"));
  const SweepOutcome first = run_to_first_generation();
  // Left by another search, say.
  const fs::path copy = first.directory / expected.names[4];
  fs::create_directory(copy);
  fs::copy_file(first.directory / expected.names[0] / "checkpoint.safetensors", copy / "start.safetensors");
  expect_same(outcome_of(run("runs")), expected);
}

TEST_F(PopulationSearch, SaysThatTheStateOfACopyIsGone) {
  const SweepOutcome sweep = run("runs");
  const std::string parent = lineage_of(sweep.runs[5].config).back().run;
  fs::remove_all(sweep.directory / sweep.runs[5].name);
  EXPECT_THAT(
      test::message_of<DataError>([this] { run("runs"); }),
      AllOf(HasSubstr(fmt::format("continues {} after epoch 4, whose state is gone: it was trained on, to "
                                  "epoch 6",
                                  parent)),
            HasSubstr("--fresh")));
}

TEST_F(PopulationSearch, ACopyThatLostItsStartGoesOnFromItsOwnCheckpoint) {
  const Outcome expected = outcome_of(run("whole"));
  SweepOutcome sweep = run("runs", {"epochs=5"});
  ASSERT_EQ(sweep.exit_code, 0);
  for (const RunRecord& run : sweep.runs) fs::remove(sweep.directory / run.name / "start.safetensors");
  expect_same(outcome_of(run("runs")), expected);
}

TEST_F(PopulationSearch, OtherCopiesAreRefused) {
  Json points;
  for (const double lr : {0.01, 0.02, 0.03, 0.04})
    points.push_back({{"lr", lr}, {"momentum", 0.5}, {"weight_decay", 0.001}});
  write_population({{"points", points}});
  run("runs");
  // The same first members, which are kept; then others.
  write_population({{"points", points}, {"seed", 6}});
  EXPECT_THAT(test::message_of<DataError>([this] { run("runs"); }), HasSubstr("whose state is gone: it was"));
}

TEST_F(PopulationSearch, OtherMembersAreRefusedBeforeAnythingIsTrained) {
  const SweepOutcome sweep = run("runs");
  const std::string results = read_file(sweep.directory / "results.csv");
  for (const auto& [key, number] : {std::pair("trials", 5), {"interval", 3}, {"reduction", 2}}) {
    write_population({{key, number}});
    EXPECT_THAT(test::message_of<ConfigError>([this] { run("runs"); }),
                AllOf(HasSubstr(fmt::format(" -> {}\nNothing was changed. --fresh", number)),
                      HasSubstr(fmt::format("search.{}: ", key))));
  }
  EXPECT_EQ(read_file(sweep.directory / "results.csv"), results);
}

TEST_F(PopulationSearch, CopiesAreVerified) {
  const SweepOutcome sweep = run("runs");
  VerifyOptions options;
  options.directory = sweep.directory;
  options.threads = 1;
  const VerifyReport verified = verify_sweep(options, environment_);
  EXPECT_EQ(verified.runs.size(), 4U);
  for (const VerifiedRun& run : verified.runs) {
    EXPECT_TRUE(run.differences.empty()) << run.name << run.differences[0];
    EXPECT_EQ(run.not_compared, "") << run.name;
  }
}

}  // namespace sweep::sweep_population_test

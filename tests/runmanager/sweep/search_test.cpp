// Sweeps whose runs a search chooses and ends early, interrupted and with other numbers of jobs.
#include "tests/runmanager/sweep/search_fixture.h"

#include "runmanager/inspect/sweep_status.h"
#include "tests/runmanager/sweep/misbehaviour.h"

namespace sweep::search_test {

using test::Outcome, test::Search;

// Half of the trials go on, where that is how a method ends some early.
Json search_by(const std::string& method) {
  Json search = {{"method", method}};
  if (method != "grid" && method != "random" && method != "tpe") search["reduction"] = 2;
  return search;
}

const Json kRates = {{"lr", {{"log_uniform", {0.0001, 0.5}}}}, {"batch_size", {10, 20, 40}}};
const Json kFourRates = {{"lr", {0.0001, 0.001, 0.01, 0.1}}};

TEST_F(Search, HalvingTrainsAllOfAGridAndEndsTheWorseOnesWithTheReason) {
  write(search_by("halving"), {{"lr", kFourRates.at("lr")}, {"batch_size", {10, 20}}});
  const SweepOutcome sweep = run("runs");
  ASSERT_EQ(sweep.exit_code, 0);
  ASSERT_EQ(sweep.runs.size(), 8U);
  std::map<std::size_t, int> by_epochs;
  for (const RunRecord& run : sweep.runs) ++by_epochs[run.epochs.size()];
  EXPECT_EQ(by_epochs, (std::map<std::size_t, int>{{1, 4}, {2, 2}, {4, 2}}));
  EXPECT_EQ(count(sweep, RunStatus::kPruned), 6U);
  EXPECT_EQ(count(sweep, RunStatus::kCompleted), 2U);
  EXPECT_THAT(told_, HasSubstr("8 trials, 2 of them to the end; best: Loss/validation"));
  EXPECT_THAT(told_, HasSubstr("\n8 runs took ")) << "pruned ones as well";
  const std::size_t best = told_.find("; best: "), name = told_.find(", ", best);
  EXPECT_THAT(out_.str(), HasSubstr("★ lowest validation loss: "));
  EXPECT_THAT(out_.str(), HasSubstr(told_.substr(name, told_.find('\n', name) - name) + "\n"))
      << "the same run";
  EXPECT_THAT(out_.str(), HasSubstr("pruned"));
  EXPECT_THAT(read_file(sweep.directory / "results.csv"), HasSubstr(",pruned,1,"));
  for (const RunRecord& run : sweep.runs) {
    if (run.status != RunStatus::kPruned) continue;
    EXPECT_EQ(run.error, run.epochs.size() == 1 ? "not among the best 4 of 8 after epoch 1"
                                                : "not among the best 2 of 4 after epoch 2");
    // Not also that it waited.
    EXPECT_EQ(tbwriter::values_of(tbwriter::read_run(sweep.directory / run.name), "status").size(), 1u);
  }
}

// What goes on has the bits of a run that nobody has ever ended: trials of the search, and in a grid
// afterwards also those that it has ended.
TEST_F(Search, ATrialThatGoesOnIsTheSameAsOneThatNeverPaused) {
  write(search_by("halving"), kFourRates);
  const Outcome halving = outcome_of(run("runs"));
  write(search_by("grid"), kFourRates);
  const Outcome grid = outcome_of(run("grid"));
  std::size_t completed = 0;
  for (const auto& [name, end] : halving.ends) {
    if (!end.starts_with("completed")) {
      EXPECT_EQ(grid.ends.at(name).find(end.substr(end.find(' '))), std::string("completed").size());
      continue;
    }
    ++completed;
    EXPECT_EQ(end, grid.ends.at(name));
    EXPECT_TRUE(test::same_bytes(halving.weights.at(name), grid.weights.at(name)));
  }
  EXPECT_EQ(completed, 1U);
  const SweepOutcome after = run("runs");
  EXPECT_EQ(count(after, RunStatus::kCompleted), 4U);
  expect_same(outcome_of(after), grid);
}

// In workers, which have nothing but the record of a run.
TEST_F(Search, WithMoreEpochsEndsAsIfItHadThemFromTheStart) {
  for (const char* method : {"grid", "random", "tpe", "halving", "hyperband", "asha", "population"}) {
    Json search = search_by(method), params = kRates;
    if (std::string(method) == "grid") {
      search["target"] = 0.0001;
      params = {{"lr", {0.001, 0.01}}};
    } else {
      search["trials"] = 4;
    }
    if (std::string(method) == "population") {
      search["interval"] = 2;
      params.erase("batch_size");
    }
    write(search, params);
    run_in_workers(2, method, {"epochs=4"});
    options_.join = std::string(method) == "tpe";
    const Outcome longer = outcome_of(run_in_workers(2, method, {"epochs=8"})),
                  whole = outcome_of(run(std::string(method) + "-whole", {"epochs=8"}));
    options_.join = false;
    EXPECT_EQ(longer.names, whole.names) << method;
    std::size_t completed = 0;
    for (const auto& [name, end] : whole.ends) {
      // What is ended earlier than before keeps the epochs that it has.
      if (!end.starts_with("completed")) continue;
      ++completed;
      EXPECT_EQ(longer.ends.at(name), end) << method << " " << name;
      EXPECT_TRUE(test::same_bytes(longer.weights.at(name), whole.weights.at(name))) << method << name;
    }
    EXPECT_GT(completed, 0U) << method;
  }
}

struct Method {
  const char* name;
  std::size_t trials;
  Json more = Json::object();
};

void PrintTo(const Method& method, std::ostream* out) { *out << method.name << method.more; }

class InterruptedSearch : public Search, public testing::WithParamInterface<Method> {};

TEST_P(InterruptedSearch, EndsWithTheSameTrialsAndBits) {
  Json search = search_by(GetParam().name);
  search.update({{"trials", GetParam().trials}, {"seed", 5}});
  search.update(GetParam().more);
  write(search, kRates);
  expect_same_however_trained(GetParam().trials);
}

const Json kSampled = {{"sampler", "tpe"}, {"at_once", 2}};  // points from results
INSTANTIATE_TEST_SUITE_P(Methods, InterruptedSearch,
                         testing::Values(Method{"random", 8}, Method{"tpe", 8}, Method{"halving", 8},
                                         Method{"hyperband", 8}, Method{"asha", 8},
                                         Method{"halving", 14, kSampled}, Method{"hyperband", 14, kSampled},
                                         Method{"asha", 14, kSampled}));

// The learning rate makes a worker crash once, in its third epoch.
TEST_F(Search, ATrialWhoseWorkerWasKilledIsTriedAgain) {
  ::setenv("MISBEHAVED", (directory_ / "misbehaved").c_str(), 1);
  write({{"method", "halving"}, {"reduction", 2}, {"min_epochs", 3}},
        {{"lr", {kCrashesOnce, 0.0001, 0.0002, 0.0003}}}, {{"epochs", 6}});
  const SweepOutcome crashed = run_in_workers(1, "crashed");
  ASSERT_TRUE(std::filesystem::exists(directory_ / "misbehaved"));
  EXPECT_EQ(crashed.exit_code, 0);
  // Whoever finds that file does not crash.
  expect_same(outcome_of(crashed), outcome_of(run_in_workers(1, "whole")));
  EXPECT_EQ(crashed.runs[0].status, RunStatus::kCompleted);
}

// None of the runs that are known at the start has to be trained.
TEST_F(Search, WorkersGoOnBehindTrialsThatAreThere) {
  write({{"method", "tpe"}, {"trials", 7}}, kRates, {{"epochs", 1}});
  const Outcome expected = outcome_of(run("whole"));
  run_in_workers(2, "runs", {"search.trials=4"});
  const SweepOutcome sweep = run_in_workers(2, "runs");
  EXPECT_EQ(sweep.exit_code, 0);
  expect_same(outcome_of(sweep), expected);
}

TEST_F(Search, MoreTrialsLaterContinueIt) {
  for (const bool asha : {false, true}) {
    Json search = {{"method", asha ? "asha" : "tpe"}, {"trials", 14}};
    if (asha) search.update({{"reduction", 2}, {"sampler", "tpe"}});
    write(search, kRates, {{"epochs", asha ? 4 : 1}});
    const std::string name = asha ? "asha" : "tpe";
    const Outcome expected = outcome_of(run(name + "-whole"));
    run(name, {"search.trials=10"});
    out_.str("");
    const SweepOutcome sweep = run(name);
    EXPECT_EQ(sweep.exit_code, 0);
    EXPECT_THAT(out_.str(), HasSubstr(expected.names.back().substr(3, 4)));
    // Trials that had gone on at the end of asha's smaller search may have more epochs.
    EXPECT_EQ(outcome_of(sweep).names, expected.names);
    if (!asha) expect_same(outcome_of(sweep), expected);
  }
}

TEST_F(Search, GoesByTheResultsOfItsOwnTrials) {
  const auto names = [this](const char* optimizer) {
    write({{"method", "tpe"}, {"trials", 14}}, kRates, {{"epochs", 1}, {"optimizer", optimizer}});
    return outcome_of(run(optimizer)).names;
  };
  const std::vector<std::string> some = names("sgd"), others = names("adam");
  EXPECT_TRUE(std::equal(some.begin(), some.begin() + kTpeStartTrials, others.begin())) << "drawn";
  EXPECT_NE(some, others) << "after these, chosen";
}

TEST_F(Search, TellsOfTrialsThatFewerTrialsLeaveOut) {
  for (const char* method : {"tpe", "random"}) {
    write({{"method", method}, {"trials", 7}}, kRates, {{"epochs", 1}});
    const SweepOutcome all = run(method);
    EXPECT_THAT(told_, Not(HasSubstr("left stays")));
    run(method, {"search.trials=6"});
    EXPECT_THAT(told_, HasSubstr("what it has left stays: " + all.runs[6].name)) << method;
    told_.clear();
  }
}

// What was learned is kept, so a resumed search needs the other sweep no more.
TEST_F(Search, LearnsFromTheRunsOfAnotherSweep) {
  write({{"method", "random"}, {"trials", 12}, {"seed", 9}}, kRates, {{"epochs", 1}, {"name", "old"}});
  run("other");
  const Json search = {{"method", "tpe"}, {"trials", 6}, {"learn_from", {"other/old"}}};
  write(search, kRates, {{"epochs", 1}});
  const SweepOutcome sweep = run("runs");
  write({{"method", "tpe"}, {"trials", 6}}, kRates, {{"epochs", 1}});
  EXPECT_NE(outcome_of(run("unlearned")).names, outcome_of(sweep).names);
  const Json kept = Json::parse(read_file(sweep.directory / "sweep.json")).at("search").at("learn_from");
  ASSERT_EQ(kept.size(), 12U);
  EXPECT_TRUE(kept[0].at("value").is_number());
}

TEST_F(Search, ASpaceWithoutFurtherPointsEndsTheSearch) {
  write({{"method", "tpe"}, {"trials", 50}}, {{"lr", {0.1, 0.01}}, {"batch_size", {10, 20, 40}}},
        {{"epochs", 1}});
  const SweepOutcome sweep = run("runs");
  EXPECT_EQ(sweep.runs.size(), 6U);
  EXPECT_EQ(sweep.exit_code, 0);
  EXPECT_THAT(told_, HasSubstr("No more trials: there is no further point after 6 trials"));
  for (const std::string method : {"random", "halving", "tpe"}) {
    told_.clear();
    write({{"method", method}, {"trials", 2}}, {{"lr", {0.1}}},
          {{"epochs", 1}, {"repeats", method == "random" ? 2 : 1}});
    run(method);
    EXPECT_THAT(told_, AllOf(HasSubstr("\n1 trial"), HasSubstr("no further point after 1 trial\n")))
        << method;
  }
}

TEST_F(Search, ATargetThatIsReachedEndsTheSweep) {
  write({{"method", "random"},
         {"trials", 30},
         {"metric", "Loss/validation"},
         {"target", 100.0},
         {"at_once", 2}},
        kRates, {{"epochs", 1}});
  const SweepOutcome sweep = run("runs");
  EXPECT_EQ(sweep.exit_code, 0);
  EXPECT_EQ(count(sweep, RunStatus::kCompleted), 2U);
  EXPECT_THAT(told_, HasSubstr("No more trials: Loss/validation of 100 is reached"));
}

// Trials that are all known from the start begin one by one as well.
TEST_F(Search, NoTrialBeginsWhenTheTimeIsSpent) {
  for (const std::string method : {"grid", "random", "halving", "tpe"}) {
    Json search = {{"method", method}, {"seconds", 1e-9}};
    if (method != "grid") search["trials"] = method == "tpe" ? 200 : 6;
    write(search, method == "grid" ? Json{{"lr", {0.1, 0.2, 0.3, 0.4}}} : Json(kRates));
    told_.clear();
    const SweepOutcome sweep = run(method);
    EXPECT_EQ(sweep.exit_code, 0);
    if (method == "tpe")
      EXPECT_LE(count(sweep, RunStatus::kCompleted), 4U);
    else
      EXPECT_EQ(count(sweep, RunStatus::kPending), sweep.runs.size() - 1) << method;
    EXPECT_THAT(told_, HasSubstr("No more trials: trials have taken the")) << method;
  }
}

TEST_F(Search, HasAllItsTrialsAlsoWhenTheTimeIsSpentAtItsStart) {
  for (const std::string method : {"tpe", "population"}) {
    Json search = search_by(method);
    search["trials"] = method == "tpe" ? 8 : 4;
    write(search, {{"lr", kRates.at("lr")}});
    const Outcome whole = outcome_of(run(method));
    EXPECT_GE(whole.names.size(), 8U);
    told_.clear();
    const SweepOutcome again = run(method, {"search.seconds=1e-9"});
    expect_same(outcome_of(again), whole);
    EXPECT_THAT(told_, Not(HasSubstr("No more trials")));
    EXPECT_EQ(sweep_status(again.directory).search_end, "");
  }
}

// Points that make no run are not the end of the search.
TEST_F(Search, ATrialThatCannotBeTrainedCountsAsFailed) {
  Json points;  // that are known at the start, when a batch larger than the set would be refused
  for (const int size : {10, 20, 30, 40}) points.push_back({{"batch_size", size}});
  write({{"method", "tpe"}, {"trials", 12}, {"seed", 1}, {"points", points}},
        {{"batch_size", {{"int_uniform", {1, 400}}}}}, {{"epochs", 1}});
  const SweepOutcome sweep = run("runs");
  EXPECT_EQ(sweep.runs.size(), 12U);
  EXPECT_GT(count(sweep, RunStatus::kFailed), 0U);
}

// One that was killed when it had pruned the new run.
TEST_F(Search, RemovesTheOldDirectoryOfATrialWhoseStartWasKilled) {
  write(search_by("halving"), kFourRates);
  const SweepOutcome sweep = run("runs");
  const auto pruned = std::ranges::find(sweep.runs, RunStatus::kPruned, &RunRecord::status);
  ASSERT_NE(pruned, sweep.runs.end());
  const fs::path trial = sweep.directory / pruned->name, aside = trial.string() + ".replaced-1";
  fs::copy(trial, aside);
  expect_same(outcome_of(run("runs")), outcome_of(sweep));
  EXPECT_FALSE(fs::exists(aside));
  // One that was killed after it had set the old one aside.
  write({{"method", "tpe"}, {"trials", 2}}, kRates);
  const SweepOutcome before = run("sweep");
  const fs::path last = before.directory / before.runs.back().name, old = last.string() + ".replaced-1";
  fs::rename(last, old);
  EXPECT_EQ(run("sweep").exit_code, 0);
  EXPECT_FALSE(fs::exists(old));
}

}  // namespace sweep::search_test

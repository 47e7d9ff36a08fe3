// What becomes of trials is decided by their results alone.
#include "runmanager/sweep/trial_schedule.h"

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "runmanager/sweep/run_queue.h"
#include "tests/support/growth.h"
#include "tests/support/run_world.h"

namespace sweep::trial_schedule_test {

SearchSpec search_of(SearchMethod method, std::size_t trials = 0, std::size_t at_once = 1) {
  SearchSpec search;
  search.method = method;
  search.trials = trials;
  search.at_once = at_once;
  search.reduction = 2;
  return search;
}

SearchSpec with_target(SearchSpec search, double target) {
  search.target = target;
  return search;
}

SearchSpec population(int interval) {
  SearchSpec search;
  search.method = SearchMethod::kPopulation;
  search.trials = 3;
  search.interval = interval;
  return search;
}

TrialResult after(std::vector<double> values, bool ended = false) {
  TrialResult trial;
  trial.values.assign(values.begin(), values.end());
  trial.ended = ended;
  return trial;
}

// "3 1, , 2!, 5x": values after the epochs of trials; "!": it has ended, "x": it has failed.
std::vector<TrialResult> trials_in(const std::string& text) {
  std::vector<TrialResult> trials;
  std::istringstream parts(text + ",");
  for (std::string part; std::getline(parts, part, ',');) {
    TrialResult& trial = trials.emplace_back();
    trial.failed = part.ends_with('x');
    trial.ended = trial.failed || part.ends_with('!');
    std::istringstream values(part);
    for (double value = 0; values >> value;) trial.values.emplace_back(value);
  }
  return trials;
}

// "wait", "train 2", "prune" and "end" of the trials.
std::string fates(const TrialSchedule& schedule, const std::vector<TrialResult>& trials, bool more = false) {
  std::string text;
  for (const TrialDecision& decision : schedule.decide(trials, more)) {
    const std::string names[] = {"wait", fmt::format("train {}", decision.until_epoch), "prune", "end"};
    text += (text.empty() ? "" : ", ") + names[static_cast<int>(decision.fate)];
  }
  return text;
}

struct Decided {
  const char *claim, *trials, *fates;
};

void expect_fates(const TrialSchedule& schedule, std::initializer_list<Decided> decided) {
  for (const auto& [claim, trials, expected] : decided)
    EXPECT_EQ(fates(schedule, trials_in(trials)), expected) << claim;
}

TEST(TrialSchedule, OfHalvingLetsTheBetterHalfOfARungGoOn) {
  const TrialSchedule schedule(search_of(SearchMethod::kHalving), 4, 4);
  expect_fates(
      schedule,
      {{"all to the first rung", ",,,", "train 1, train 1, train 1, train 1"},
       {"it waits for the last of a rung", "1,2,3,", "wait, wait, wait, train 1"},
       {"the better half goes on", "3,1,4,2", "prune, train 2, prune, train 2"},
       {"of equal ones the earlier", "2,1,1,1", "prune, train 2, train 2, prune"},
       {"the last one to its end", "3,1 .5,4,2 .7", "prune, train 4, prune, prune"},
       {"and that is it", "3,1 .5 .4 .3!,4,2 .7", "prune, end, prune, prune"},
       {"more epochs of a start with other settings", "3 0 0,1,4,2", "prune, train 2, prune, train 2"},
       {"a failed one holds nobody up", "x,1,4,2", "end, train 2, prune, train 2"},
       {"all may fail", "x,x,x,x", "end, end, end, end"},
       {"one that stopped early keeps its last value", "1!,2 2,4,5", "end, prune, prune, prune"}});
  EXPECT_EQ(schedule.decide(trials_in("3,1,4,2"))[0].reason, "not among the best 2 of 4 after epoch 1");
  expect_fates(TrialSchedule(with_target(search_of(SearchMethod::kHalving), 1.5), 4, 4),
               {{"only those that reach the target", "3,1,4,2", "prune, train 2, prune, prune"}});
}

TEST(TrialSchedule, OfHyperbandHasBracketsThatDoNotWaitForEachOther) {
  const SearchSpec search = search_of(SearchMethod::kHyperband);
  const std::size_t trials = points_at_start(search, 4);
  ASSERT_EQ(trials, 4U + 3U + 3U);  // Li et al. with R = 4 and eta = 2
  expect_fates(TrialSchedule(search, trials, 4),
               {{"the first bracket goes on", "0,1,2,3,,,,,,",
                 "train 2, train 2, prune, prune, train 2, train 2, train 2, train 4, train 4, train 4"},
                {"a space has fewer points than brackets have places", ",,,,",
                 "train 1, train 1, train 1, train 1, train 2"},
                {"which fill the next rung first", "0,1,2", "train 2, train 2, prune"}});
}

TEST(TrialSchedule, AMemberOfAPopulationGoesOnOnceTheCopyOfAnotherIsThere) {
  const TrialSchedule schedule(population(1), 3, 2);
  EXPECT_EQ(schedule.total_epochs(), 6);
  EXPECT_FALSE(schedule.next_copy(trials_in("3,,2")));
  EXPECT_EQ(schedule.decide(trials_in("3,1,2"))[0].reason, "among the worst of 3 after epoch 1");
  ASSERT_TRUE(schedule.next_copy(trials_in("3,1,2")));
  EXPECT_EQ(schedule.next_copy(trials_in("3,1,2"))->parent, 1U);
  EXPECT_FALSE(schedule.next_copy(trials_in("3,1,2,1")));
  expect_fates(schedule, {{"before its copy is there", "3,1,2", "prune, wait, wait"},
                          {"then", "3,1,2,1", "prune, train 2, train 2, train 2"},
                          {"a failed one has failed even where it would be ended", "x,1 1!,2,1 .5!",
                           "end, end, train 2, end"}});
}

TEST(TrialSchedule, AMemberOfAPopulationThatEndsBeforeItsGenerationIsTheWorst) {
  const TrialSchedule schedule(population(2), 3, 4);
  ASSERT_TRUE(schedule.next_copy(trials_in(".1!,2 2,3 3")));
  EXPECT_EQ(schedule.next_copy(trials_in(".1!,2 2,3 3"))->parent, 1U);
  expect_fates(schedule, {{"the others wait", ".1!,2 2,3 3", "end, wait, wait"}});
}

TEST(TrialSchedule, OfAshaDoesNotWaitForOthersAndPrunesWhatIsLeft) {
  expect_fates(TrialSchedule(search_of(SearchMethod::kAsha, 0, 2), 6, 4),
               {{"as many as at once", ",,,,,", "train 1, train 1, wait, wait, wait, wait"},
                {"the other may still go on", "3,1,,,,", "wait, train 2, train 1, wait, wait, wait"}});
  const TrialSchedule schedule(search_of(SearchMethod::kAsha), 2, 2);
  expect_fates(schedule, {{"none goes on", "3,1 1!", "prune, end"}, {"all failed", "x,x", "end, end"}});
  EXPECT_EQ(schedule.decide(trials_in("3,1 1!"))[0].reason, "not among the best 1 in 2 after epoch 1");
}

TEST(TrialSchedule, NoTrialBeginsOnceTheTargetIsReached) {
  SearchSpec search = with_target(search_of(SearchMethod::kRandom, 0, 2), 0.9);
  search.goals[0].largest_is_best = true;
  const TrialSchedule schedule(search, 5, 1);
  expect_fates(schedule, {{"at once", ",,,,", "train 1, train 1, wait, wait, wait"},
                          {"not good enough", "-.8!,,,,", "end, train 1, train 1, wait, wait"},
                          {"reached", "-.8!,-.95!,,,", "end, end, train 1, wait, wait"}});
  EXPECT_THAT(schedule.winner(trials_in("-.8!,-.95!,,,")), Optional(Eq(1U)));
}

// "1, -, 3": the values that are known to the next trial; "no": it cannot be chosen yet.
std::string known(const TrialSchedule& schedule, const std::string& trials) {
  const auto results = schedule.known_to_next(trials_in(trials));
  if (!results) return "no";
  std::string text;
  for (const KnownResult& result : *results)
    text += (text.empty() ? "" : ", ") +
            (result.is_known && result.value ? fmt::format("{}", *result.value) : "-");
  return text;
}

TEST(TrialSchedule, ATrialIsChosenFromTheResultsOfAllButSoManyBefore) {
  const TrialSchedule schedule(search_of(SearchMethod::kTpe, 10, 3), 3, 2);
  EXPECT_EQ(known(schedule, ","), "-, -");
  EXPECT_EQ(known(schedule, ",,"), "no");
  EXPECT_EQ(known(schedule, ",1 1!,"), "no");
  EXPECT_EQ(known(schedule, "2 1!,3 3!,"), "1, -, -");
}

SearchSpec sampled(SearchMethod method, std::size_t trials) {
  SearchSpec search = search_of(method, trials, 2);
  search.samples_tpe = true;
  return search;
}

TEST(TrialSchedule, ATrialOfHalvingIsChosenFromTheFirstRung) {
  const TrialSchedule schedule(sampled(SearchMethod::kHalving, 4), 2, 4);
  EXPECT_EQ(known(schedule, ","), "no");
  // What was trained further by an earlier start, and what has ended after the trial would begin, is not
  // used.
  EXPECT_EQ(known(schedule, "3 1 .5,4"), "3, -");
  EXPECT_EQ(known(schedule, ",,,"), "no") << "there are no more than 4";
  EXPECT_EQ(fates(schedule, trials_in("3,4"), true), "wait, wait") << "for trials that are not there yet";
  EXPECT_EQ(fates(schedule, trials_in("3,4"), false), "train 2, train 2");
}

TEST(TrialSchedule, ATrialOfALaterBracketIsChosenWhenTheEarlierOnesAreThrough) {
  const TrialSchedule schedule(sampled(SearchMethod::kHyperband, 10), 2, 4);
  EXPECT_EQ(known(schedule, "1 .9 .8 .7!,2 1.9,3,4"), "1, 2, 3, 4")
      << "of the rung that all have, as none has ten results";
  EXPECT_EQ(known(schedule, "1 .9,2 1.9,3,4"), "no") << "its last rung is missing";
}

TEST(TrialSchedule, TheHighestRungWithEnoughResultsCounts) {
  SearchSpec search = sampled(SearchMethod::kHyperband, 0);
  const std::size_t first = search_brackets(search, 0, 16)[0].end_trial();
  ASSERT_EQ(first, 16U);
  search.trials = total_trials(search, 16);
  const TrialSchedule schedule(search, 2, 16);
  std::vector<TrialResult> trials;
  for (std::size_t i = 0; i < first; ++i) {
    const std::size_t epochs = i == 0 ? 16 : i == 1 ? 8 : i < 4 ? 4 : i < 8 ? 2 : 1;
    trials.push_back(after(std::vector<double>(epochs, static_cast<double>(i)), epochs == 16));
  }
  const auto results = *schedule.known_to_next(trials);
  EXPECT_TRUE(std::ranges::all_of(results, &KnownResult::is_known)) << "8 results at epoch 2 are not enough";
  trials[5] = trials_in("5x")[0];
  EXPECT_TRUE((*schedule.known_to_next(trials))[5].is_known);
}

TEST(TrialResult, TurnsValuesSoThatSmallerIsBetterAndLeavesOutWhatIsNoNumber) {
  SearchSpec search;
  search.goals = {asked_goal("Accuracy/validation", true)};
  RunRecord run;
  for (const double value : {0.5, double{NAN}, double{INFINITY}, -double{INFINITY}, 0.4})
    run.epochs.push_back({1, {{"validation_accuracy", value}}});
  const auto nothing = Eq(std::nullopt);
  EXPECT_THAT(trial_result(run, search, {}).values,
              ElementsAre(Optional(-0.5), nothing, nothing, nothing, Optional(-0.4)));
}

// The epoch whose weights are kept may be another one than that with the best metric of the search.
TEST(TrialResult, IsThatOfTheEpochThatIsKept) {
  SearchSpec search;
  search.goals = {asked_goal("Accuracy/validation", true)};
  RunConfig config;
  config.checkpoint = kKeepBest;
  RunRecord run;
  for (const auto& [accuracy, loss] : {std::pair(0.5, 2.0), {0.9, 3.0}, {0.7, double{NAN}}, {0.6, 1.0}})
    run.epochs.push_back({static_cast<int>(run.epochs.size()) + 1,
                          {{"validation_accuracy", accuracy}, {"validation_loss", loss}}});
  EXPECT_THAT(trial_result(run, search, config).values,
              ElementsAre(Optional(-0.5), Optional(-0.5), Optional(-0.5), Optional(-0.6)));
  run.status = RunStatus::kCompleted;
  run.best_epoch = 4;
  EXPECT_EQ(goal_values(run, search.goals), GoalValues{-0.6});
  config.stop = {.goal = search.goals[0], .restore_best = true};
  run.best_epoch = 2;
  EXPECT_EQ(final_value(trial_result(run, search, config)), -0.9);
}

TEST(TrialResult, IsTheMedianOfTheEpochsForATime) {
  SearchSpec search;
  search.goals = {asked_goal("epoch_seconds", false)};
  RunRecord run;
  for (const double seconds : {5.0, 1.0, 1.0, 4.0}) run.epochs.push_back({1, {{"epoch_seconds", seconds}}});
  run.status = RunStatus::kCompleted;
  EXPECT_EQ(final_value(trial_result(run, search, {})), 1.0) << "as in tables, without the first";
}

TEST(TrialResult, OfSeveralGoalsIsWhatTablesShow) {
  SearchSpec search;
  search.goals = {asked_goal("Accuracy/validation", true), asked_goal("Duration/epoch_seconds", false)};
  RunRecord run;
  run.status = RunStatus::kCompleted;
  run.epochs.resize(3);
  for (int i = 0; i < 3; ++i) {
    run.epochs[i].epoch = i + 1;
    run.epochs[i].set("validation_accuracy", 0.5 + 0.1 * i);
    run.epochs[i].set("epoch_seconds", 9.0 - i);
  }
  const TrialResult trial = trial_result(run, search, {});
  EXPECT_THAT(trial.values, ElementsAre(Optional(-0.7)));
  EXPECT_THAT(trial.others, ElementsAre(7.5)) << "the median after the first epoch";
  run.epochs[2].set("validation_accuracy", std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(final_value(trial_result(run, search, {})), std::nullopt) << "without a value it has failed";
  run.epochs[2].set("validation_accuracy", 0.7);
  run.status = RunStatus::kFailed;
  EXPECT_THAT(trial_result(run, search, {}).values, ElementsAre(Eq(std::nullopt)));
}

// A program may validate after some of its steps only, and report the validation of the last one later.
TEST(TrialResult, HasTheLatestValueOfEachEpochThatIsComplete) {
  RunRecord run;
  run.status = RunStatus::kRunning;
  for (int epoch = 1; epoch <= 4; ++epoch) run.epochs.push_back({epoch, {{"loss", 1}}});
  run.epochs[1].set("validation_loss", 0.5);
  const auto nothing = Eq(std::nullopt);
  EXPECT_THAT(trial_result(run, {}, {}).values, ElementsAre(nothing, Optional(0.5), Optional(0.5)));
  run.epochs[3].set("validation_loss", 0.25);
  EXPECT_EQ(final_value(trial_result(run, {}, {})), 0.25) << "it has come";
  run.status = RunStatus::kInterrupted;
  run.epochs[3].set("validation_loss", std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(trial_result(run, {}, {}).values, ElementsAre(nothing, Optional(0.5), Optional(0.5), nothing));
}

// A program that does not say how often it reports has one epoch for the search.
TEST(TrialSchedule, TheNextTrialIsChosenByWhatTrialsHaveComeTo) {
  const TrialSchedule schedule(search_of(SearchMethod::kTpe, 4), 0, 1);
  EXPECT_EQ(known(schedule, "3 2 1!,.1x"), "1, -") << "not its first report, and one that has failed";
  EXPECT_TRUE((*schedule.known_to_next(trials_in("3 2 1!,.1x")))[1].is_known);
}

// Trials end in any order, some fail, and whoever may train is trained: the fates are always the same.
TEST(TrialSchedule, TheOrderOfResultsChangesNothing) {
  SearchSpec search = search_of(SearchMethod::kHalving);
  search.reduction = 3;
  constexpr std::size_t kTrials = 20;
  constexpr int kEpochs = 9;
  const TrialSchedule schedule(search, kTrials, kEpochs);
  const auto value = [](std::size_t trial, int epoch) {
    return static_cast<double>((trial * 7919 + static_cast<std::size_t>(epoch) * 104729) % 1009);
  };
  std::string expected;
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    std::vector<TrialResult> trials(kTrials);
    for (;;) {
      const std::vector<TrialDecision> decisions = schedule.decide(trials);
      std::vector<std::size_t> ready;
      for (std::size_t i = 0; i < kTrials; ++i) {
        if (decisions[i].fate == TrialFate::kTrains) ready.push_back(i);
      }
      if (ready.empty()) break;
      const std::size_t i = ready[random() % ready.size()];
      while (static_cast<int>(trials[i].values.size()) < decisions[i].until_epoch)
        trials[i].values.emplace_back(value(i, static_cast<int>(trials[i].values.size()) + 1));
      if (i % 6 == 5) trials[i] = trials_in("x")[0];
      trials[i].ended |= trials[i].values.size() == kEpochs;
    }
    if (expected.empty()) expected = fates(schedule, trials);
    EXPECT_EQ(fates(schedule, trials), expected) << "seed " << seed;
  }
  // floor(20 / 9) to the end, and three that failed
  EXPECT_EQ(std::ranges::count(expected, 'd'), 2 + 3) << "the d of end";
}

// It decides after every trial.
TEST(TrialSchedule, DecidesInTimeThatIsLinearInTheTrials) {
  using enum SearchMethod;
  for (const SearchMethod method : {kTpe, kRandom, kHalving, kHyperband, kAsha}) {
    const double times = test::growth(
        [method](std::size_t trials) {
          const SearchSpec search = with_target(search_of(method, trials), -1);
          const TrialSchedule schedule(search, trials, 4);
          const std::vector<TrialResult> ended(trials, after({4, 3, 2, 1}, true));
          schedule.decide(ended);
          schedule.known_to_next(ended);
        },
        4000);
    EXPECT_LT(times, test::kLinearGrowth) << "method " << static_cast<int>(method);
  }
}

// Trials that wait, each after so many epochs.
struct WaitingTrials {
  explicit WaitingTrials(std::size_t epochs) {
    RunRecord record;
    record.status = RunStatus::kInterrupted;
    for (std::size_t i = 0; i < epochs; ++i)
      record.epochs.push_back({static_cast<int>(i) + 1, {{"validation_loss", 1}}});
    sweep.runs.resize(20);
    for (RunConfig& run : sweep.runs) run.epochs = static_cast<int>(2 * epochs);
    sweep.search = search_of(SearchMethod::kAsha);
    SweepRecorderOptions options;
    options.directory = directory.path();
    options.clock = [] { return 0.0; };
    options.quiet = options.shared = true;
    recorder.emplace(options, sweep.runs, std::vector(sweep.runs.size(), record));
    TrialRunsOptions does_nothing;
    does_nothing.prune = [](std::size_t, const std::string&) {};
    trials.emplace(sweep, none, *recorder, does_nothing);
    trials->take_ready();
  }

  TemporaryDirectory directory;
  Sweep sweep;
  std::deque<ScheduledRun> none;
  std::optional<SweepRecorder> recorder;
  std::optional<TrialRuns> trials;
};

TEST(TrialRuns, ReadsTheEpochsOfATrialThatWaitsOnce) {
  constexpr std::size_t kEpochs = 500;
  std::map<std::size_t, WaitingTrials> waiting;
  for (const std::size_t epochs : {kEpochs, 4 * kEpochs}) waiting.try_emplace(epochs, epochs);
  const auto decide = [&](std::size_t epochs) {
    for (int times = 0; times < 100; ++times) waiting.at(epochs).trials->take_ready();
  };
  EXPECT_LT(test::growth(decide, kEpochs), 2);
}

}  // namespace sweep::trial_schedule_test

// What becomes of trials is decided by their results alone.
#include "runmanager/sweep/trial_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::Optional;

SearchSpec halving() {
  SearchSpec search;
  search.method = SearchMethod::kHalving;
  search.reduction = 2;
  return search;
}

TrialResult after(std::vector<double> values, bool ended = false) {
  TrialResult trial;
  trial.values.assign(values.begin(), values.end());
  trial.ended = ended;
  return trial;
}

TrialResult failed() { return {.values = {}, .ended = true, .failed = true}; }

std::vector<TrialFate> fates(const TrialSchedule& schedule, const std::vector<TrialResult>& trials) {
  std::vector<TrialFate> fates;
  for (const TrialDecision& decision : schedule.decide(trials)) fates.push_back(decision.fate);
  return fates;
}

using enum TrialFate;

TEST(TrialSchedule, TrainsAllTrialsToTheFirstRungFirst) {
  const TrialSchedule schedule(halving(), 4, 4);
  for (const TrialDecision& decision : schedule.decide(std::vector<TrialResult>(4))) {
    EXPECT_EQ(decision.fate, kTrains);
    EXPECT_EQ(decision.until_epoch, 1);
  }
}

TEST(TrialSchedule, WaitsForTheLastTrialOfARung) {
  const TrialSchedule schedule(halving(), 4, 4);
  EXPECT_THAT(fates(schedule, {after({1}), after({2}), after({3}), {}}),
              ElementsAre(kWaits, kWaits, kWaits, kTrains));
}

TEST(TrialSchedule, LetsTheBetterHalfGoOnAndPrunesTheRest) {
  const TrialSchedule schedule(halving(), 4, 4);
  const std::vector<TrialResult> trials = {after({3}), after({1}), after({4}), after({2})};
  const std::vector<TrialDecision> decisions = schedule.decide(trials);
  EXPECT_THAT(fates(schedule, trials), ElementsAre(kPruned, kTrains, kPruned, kTrains));
  EXPECT_EQ(decisions[1].until_epoch, 2);
  EXPECT_EQ(decisions[0].reason, "not among the best 2 of 4 after epoch 1");
}

TEST(TrialSchedule, TrainsTheLastOneToItsEnd) {
  const TrialSchedule schedule(halving(), 4, 4);
  std::vector<TrialResult> trials = {after({3}), after({1, 0.5}), after({4}), after({2, 0.7})};
  const std::vector<TrialDecision> decisions = schedule.decide(trials);
  EXPECT_THAT(fates(schedule, trials), ElementsAre(kPruned, kTrains, kPruned, kPruned));
  EXPECT_EQ(decisions[1].until_epoch, 4);
  trials[1] = after({1, 0.5, 0.4, 0.3}, true);
  EXPECT_THAT(fates(schedule, trials), ElementsAre(kPruned, kEnded, kPruned, kPruned));
}

TEST(TrialSchedule, EarlierDecisionsStayWhenMoreEpochsAreKnown) {
  const TrialSchedule schedule(halving(), 4, 4);
  // Trial 0 has more epochs than its rung asks for, better ones: from a start with other settings.
  EXPECT_THAT(fates(schedule, {after({3, 0, 0}), after({1}), after({4}), after({2})}),
              ElementsAre(kPruned, kTrains, kPruned, kTrains));
}

TEST(TrialSchedule, AFailedTrialDoesNotGoOnAndHoldsNobodyUp) {
  const TrialSchedule schedule(halving(), 4, 4);
  EXPECT_THAT(fates(schedule, {failed(), after({1}), after({4}), after({2})}),
              ElementsAre(kEnded, kTrains, kPruned, kTrains));
  EXPECT_THAT(fates(schedule, {failed(), failed(), failed(), failed()}),
              ElementsAre(kEnded, kEnded, kEnded, kEnded));
}

TEST(TrialSchedule, ATrialThatStoppedEarlyKeepsItsLastValue) {
  const TrialSchedule schedule(halving(), 4, 4);
  EXPECT_THAT(fates(schedule, {after({1}, true), after({2, 2}), after({4}), after({5})}),
              ElementsAre(kEnded, kPruned, kPruned, kPruned));
}

TEST(TrialSchedule, WithATargetOnlyThoseThatReachItGoOn) {
  SearchSpec search = halving();
  search.target = 1.5;
  EXPECT_THAT(fates(TrialSchedule(search, 4, 4), {after({3}), after({1}), after({4}), after({2})}),
              ElementsAre(kPruned, kTrains, kPruned, kPruned));
}

TEST(TrialSchedule, BracketsOfHyperbandDoNotWaitForEachOther) {
  SearchSpec search = halving();
  search.method = SearchMethod::kHyperband;
  const std::size_t trials = points_at_start(search, 4);
  const TrialSchedule schedule(search, trials, 4);
  ASSERT_EQ(trials, 4U + 3U + 3U);  // Li et al. with R = 4 and eta = 2
  std::vector<TrialResult> results(trials);
  for (std::size_t i = 0; i < 4; ++i) results[i] = after({static_cast<double>(i)});
  const std::vector<TrialDecision> decisions = schedule.decide(results);
  EXPECT_EQ(decisions[0].until_epoch, 2);
  EXPECT_EQ(decisions[3].fate, kPruned);
  EXPECT_EQ(decisions[4].until_epoch, 2);
  EXPECT_EQ(decisions[9].until_epoch, 4);
}

TEST(TrialSchedule, ASpaceWithFewerPointsThanBracketsHavePlacesIsSearchedWhole) {
  SearchSpec search = halving();
  search.method = SearchMethod::kHyperband;
  const TrialSchedule schedule(search, points_at_start(search, 4), 4);
  EXPECT_THAT(fates(schedule, std::vector<TrialResult>(5)),
              ElementsAre(kTrains, kTrains, kTrains, kTrains, kTrains));
}

TEST(TrialSchedule, AMemberOfAPopulationGoesOnOnceTheCopyOfAnotherIsThere) {
  SearchSpec search;
  search.method = SearchMethod::kPopulation;
  search.trials = 3;
  search.interval = 1;
  const TrialSchedule schedule(search, 3, 2);
  EXPECT_EQ(schedule.total_epochs(), 6);
  EXPECT_FALSE(schedule.next_copy(std::vector<TrialResult>{after({3}), {}, after({2})}));
  std::vector<TrialResult> trials = {after({3}), after({1}), after({2})};
  EXPECT_THAT(fates(schedule, trials), ElementsAre(kPruned, kWaits, kWaits));
  EXPECT_EQ(schedule.decide(trials)[0].reason, "among the worst of 3 after epoch 1");
  ASSERT_TRUE(schedule.next_copy(trials));
  EXPECT_EQ(schedule.next_copy(trials)->parent, 1U);
  trials.push_back(after({1}));
  EXPECT_FALSE(schedule.next_copy(trials));
  EXPECT_THAT(fates(schedule, trials), ElementsAre(kPruned, kTrains, kTrains, kTrains));
  // A failed one holds nobody up, and has failed even where it would be ended.
  trials = {failed(), after({1, 1}, true), after({2}), after({1, 0.5}, true)};
  EXPECT_THAT(fates(schedule, trials), ElementsAre(kEnded, kEnded, kTrains, kEnded));
}

TEST(TrialSchedule, AMemberOfAPopulationThatEndsBeforeItsGenerationIsTheWorst) {
  SearchSpec search;
  search.method = SearchMethod::kPopulation;
  search.trials = 3;
  search.interval = 2;
  const TrialSchedule schedule(search, 3, 4);
  const std::vector<TrialResult> trials = {after({0.1}, true), after({2, 2}), after({3, 3})};
  ASSERT_TRUE(schedule.next_copy(trials));
  EXPECT_EQ(schedule.next_copy(trials)->parent, 1U);
  EXPECT_THAT(fates(schedule, trials), ElementsAre(kEnded, kWaits, kWaits));
}

// The values that are known, none where none is.
std::vector<std::optional<double>> known(const TrialSchedule& schedule,
                                         const std::vector<TrialResult>& trials) {
  std::vector<std::optional<double>> values;
  const auto results = schedule.known_to_next(trials);
  EXPECT_TRUE(results);
  if (!results) return values;
  for (const KnownResult& result : *results) values.push_back(result.is_known ? result.value : std::nullopt);
  return values;
}

TEST(TrialSchedule, ATrialIsChosenFromTheResultsOfAllButSoManyBefore) {
  SearchSpec search;
  search.method = SearchMethod::kTpe;
  search.trials = 10;
  search.at_once = 3;
  const TrialSchedule schedule(search, 3, 2);
  EXPECT_TRUE(schedule.known_to_next(std::vector<TrialResult>(2)));
  EXPECT_FALSE(schedule.known_to_next(std::vector<TrialResult>(3)));
  EXPECT_FALSE(schedule.known_to_next(std::vector<TrialResult>{{}, after({1, 1}, true), {}}));
  EXPECT_THAT(known(schedule, {after({2, 1}, true), after({3, 3}, true), {}}),
              ElementsAre(Optional(1.0), Eq(std::nullopt), Eq(std::nullopt)));
}

SearchSpec sampled(SearchMethod method, std::size_t trials) {
  SearchSpec search = halving();
  search.method = method;
  search.trials = trials;
  search.samples_tpe = true;
  search.at_once = 2;
  return search;
}

TEST(TrialSchedule, ATrialOfHalvingIsChosenFromTheFirstRung) {
  const TrialSchedule schedule(sampled(SearchMethod::kHalving, 4), 2, 4);
  EXPECT_FALSE(schedule.known_to_next(std::vector<TrialResult>(2)));
  // What was trained further by an earlier start, and what has ended after the trial would begin, is not
  // used.
  EXPECT_THAT(known(schedule, {after({3, 1, 0.5}), after({4})}),
              ElementsAre(Optional(3.0), Eq(std::nullopt)));
  EXPECT_FALSE(schedule.known_to_next(std::vector<TrialResult>(4))) << "there are no more than 4";
  // The rung waits for trials that are not there yet.
  EXPECT_EQ(schedule.decide(std::vector<TrialResult>{after({3}), after({4})}, true)[0].fate, kWaits);
  EXPECT_EQ(schedule.decide(std::vector<TrialResult>{after({3}), after({4})}, false)[0].fate, kTrains);
}

TEST(TrialSchedule, ATrialOfALaterBracketIsChosenWhenTheEarlierOnesAreThrough) {
  const TrialSchedule schedule(sampled(SearchMethod::kHyperband, 10), 2, 4);
  std::vector<TrialResult> trials = {after({1, 0.9, 0.8, 0.7}, true), after({2, 1.9}), after({3}),
                                     after({4})};
  EXPECT_THAT(known(schedule, trials),
              ElementsAre(Optional(1.0), Optional(2.0), Optional(3.0), Optional(4.0)))
      << "of the rung that all have, as none has ten results";
  trials[0] = after({1, 0.9});
  EXPECT_FALSE(schedule.known_to_next(trials)) << "its last rung is missing";
}

TEST(TrialSchedule, TheHighestRungWithEnoughResultsCounts) {
  SearchSpec search = sampled(SearchMethod::kHyperband, 0);
  const std::size_t first = search_brackets(search, 0, 16)[0].halving.rungs()[0].trials;
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
  trials[5] = {.values = {5.0}, .ended = true, .failed = true};
  const auto with_failed = *schedule.known_to_next(trials);
  EXPECT_TRUE(with_failed[5].is_known);
}

TEST(TrialSchedule, AshaLetsTheBetterOfTwoGoOnWithoutWaitingForTheOthers) {
  SearchSpec search = halving();
  search.method = SearchMethod::kAsha;
  search.at_once = 2;
  const TrialSchedule schedule(search, 6, 4);
  EXPECT_THAT(fates(schedule, std::vector<TrialResult>(6)),
              ElementsAre(kTrains, kTrains, kWaits, kWaits, kWaits, kWaits));
  const std::vector<TrialResult> trials = {after({3}), after({1}), {}, {}, {}, {}};
  const std::vector<TrialDecision> decisions = schedule.decide(trials);
  EXPECT_EQ(decisions[1].fate, kTrains);
  EXPECT_EQ(decisions[1].until_epoch, 2);
  EXPECT_EQ(decisions[0].fate, kWaits) << "it may still go on";
}

TEST(TrialSchedule, AshaPrunesWhatIsLeftWhenAllHaveBegunAndNoneGoesOn) {
  SearchSpec search = halving();
  search.method = SearchMethod::kAsha;
  search.at_once = 1;
  const TrialSchedule schedule(search, 2, 2);
  const std::vector<TrialResult> trials = {after({3}), after({1, 1}, true)};
  EXPECT_THAT(fates(schedule, trials), ElementsAre(kPruned, kEnded));
  EXPECT_EQ(schedule.decide(trials)[0].reason, "not among the best 1 in 2 after epoch 1");
  EXPECT_THAT(fates(schedule, {failed(), failed()}), ElementsAre(kEnded, kEnded));
}

TEST(TrialSchedule, NoTrialBeginsOnceTheTargetIsReached) {
  SearchSpec search;
  search.method = SearchMethod::kRandom;
  search.target = 0.9;
  search.goals[0].largest_is_best = true;
  search.at_once = 2;
  const TrialSchedule schedule(search, 5, 1);
  std::vector<TrialResult> trials(5);
  EXPECT_THAT(fates(schedule, trials), ElementsAre(kTrains, kTrains, kWaits, kWaits, kWaits));
  trials[0] = after({-0.8}, true);
  EXPECT_THAT(fates(schedule, trials), ElementsAre(kEnded, kTrains, kTrains, kWaits, kWaits));
  trials[1] = after({-0.95}, true);
  EXPECT_THAT(fates(schedule, trials), ElementsAre(kEnded, kEnded, kTrains, kWaits, kWaits));
  EXPECT_THAT(schedule.winner(trials), Optional(Eq(1U)));
}

TEST(TrialResult, TurnsValuesSoThatSmallerIsBetterAndLeavesOutWhatIsNoNumber) {
  SearchSpec search;
  search.goals = {asked_goal("Accuracy/validation", true)};
  RunRecord run;
  run.epochs.resize(3);
  run.epochs[0].set("validation_accuracy", 0.5);
  run.epochs[1].set("validation_accuracy", std::numeric_limits<double>::quiet_NaN());
  run.epochs[2].set("validation_accuracy", 0.4);
  EXPECT_THAT(trial_result(run, search, false).values,
              ElementsAre(Optional(-0.5), Eq(std::nullopt), Optional(-0.4)));
  EXPECT_THAT(trial_result(run, search, true).values,
              ElementsAre(Optional(-0.5), Optional(-0.5), Optional(-0.5)));
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
  const TrialResult trial = trial_result(run, search, false);
  EXPECT_THAT(trial.values, ElementsAre(Optional(-0.7)));
  EXPECT_THAT(trial.others, ElementsAre(7.5)) << "the median after the first epoch";
  run.epochs[2].set("validation_accuracy", std::nullopt);
  EXPECT_EQ(final_value(trial_result(run, search, false)), std::nullopt) << "without a value it has failed";
  run.epochs[2].set("validation_accuracy", 0.7);
  run.status = RunStatus::kFailed;
  EXPECT_THAT(trial_result(run, search, false).values, ElementsAre(Eq(std::nullopt)));
}

// A program that does not say how often it reports has one epoch for the search.
TEST(TrialSchedule, TheNextTrialIsChosenByWhatTrialsHaveComeTo) {
  SearchSpec search;
  search.method = SearchMethod::kTpe;
  search.trials = 4;
  search.at_once = 1;
  const TrialSchedule schedule(search, 0, 1);
  TrialResult failing = after({0.1}, true);
  failing.failed = true;
  const std::optional<std::vector<KnownResult>> known =
      schedule.known_to_next(std::vector<TrialResult>{after({3, 2, 1}, true), failing});
  ASSERT_TRUE(known.has_value());
  EXPECT_TRUE((*known)[0].is_known && (*known)[1].is_known);
  EXPECT_EQ((*known)[0].value, 1) << "not its first report";
  EXPECT_EQ((*known)[1].value, std::nullopt) << "it has failed";
}

// Trials end in any order, some fail, and whoever may train is trained: the fates are always the same.
TEST(TrialSchedule, TheOrderOfResultsChangesNothing) {
  SearchSpec search = halving();
  search.reduction = 3;
  constexpr std::size_t kTrials = 20;
  constexpr int kEpochs = 9;
  const TrialSchedule schedule(search, kTrials, kEpochs);
  const auto value = [](std::size_t trial, int epoch) {
    return static_cast<double>((trial * 7919 + static_cast<std::size_t>(epoch) * 104729) % 1009);
  };
  std::vector<TrialFate> expected;
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    std::vector<TrialResult> trials(kTrials);
    for (;;) {
      const std::vector<TrialDecision> decisions = schedule.decide(trials);
      std::vector<std::size_t> ready;
      for (std::size_t i = 0; i < kTrials; ++i) {
        if (decisions[i].fate == kTrains) ready.push_back(i);
      }
      if (ready.empty()) break;
      const std::size_t i = ready[random() % ready.size()];
      while (static_cast<int>(trials[i].values.size()) < decisions[i].until_epoch)
        trials[i].values.emplace_back(value(i, static_cast<int>(trials[i].values.size()) + 1));
      if (i % 6 == 5) trials[i] = failed();
      trials[i].ended |= trials[i].values.size() == kEpochs;
    }
    const std::vector<TrialFate> found = fates(schedule, trials);
    if (expected.empty()) expected = found;
    EXPECT_EQ(found, expected) << "seed " << seed;
  }
  EXPECT_EQ(std::ranges::count(expected, kEnded), 2 + 3);  // floor(20 / 9) to the end, and three that failed
}

}  // namespace
}  // namespace sweep

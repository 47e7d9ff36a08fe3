// Decisions of asha are functions of results, in an order of their own.
#include "runmanager/search/asha.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/runmanager/search/made_domains.h"

namespace sweep {
namespace {

using test::MadeResults;
using ::testing::ElementsAre;
using Value = std::optional<double>;

bool never(double) { return false; }

// The result of trial t at every rung.
double value_of(std::size_t trial) { return static_cast<double>(trial * 7919 % 1009); }

MadeResults all_results(std::size_t trials, std::size_t rungs) {
  MadeResults results;
  for (std::size_t t = 0; t < trials; ++t)
    for (std::size_t r = 0; r < rungs; ++r) results.set(r, {value_of(t)}, t);
  return results;
}

TEST(Asha, BeginsAsManyTrialsAsThereAreWorkers) {
  const AshaState state = Asha({1, 2, 4}, 2, 3).play(5, false, MadeResults(), never);
  EXPECT_THAT(state.begun, ElementsAre(1, 1, 1, 0, 0));
  EXPECT_FALSE(state.is_over);
}

TEST(Asha, SendsATrialOnOnceItIsTheBestOfEtaResults) {
  const Asha asha({1, 2, 4}, 2, 1);
  MadeResults results;
  results.set(0, {5.0});
  EXPECT_THAT(asha.play(4, false, results, never).begun, ElementsAre(1, 1, 0, 0))
      << "one of one is not enough";
  results.set(0, {3.0}, 1);
  EXPECT_THAT(asha.play(4, false, results, never).begun, ElementsAre(1, 2, 0, 0));
  results.set(1, {3.0}, 1);
  EXPECT_THAT(asha.play(4, false, results, never).begun, ElementsAre(1, 2, 1, 0));
  results.set(0, {9.0, 4.0}, 2);
  // The second of four: of the best half.
  EXPECT_THAT(asha.play(4, false, results, never).begun, ElementsAre(1, 2, 1, 2));
}

// With one worker by hand: 3 trials at a rung send one on, and the last rung has the best of the rung before.
TEST(Asha, TrainsTheBestOfNineTrialsToTheEnd) {
  const AshaState state = Asha({1, 3, 9}, 3, 1).play(9, false, all_results(9, 3), never);
  ASSERT_TRUE(state.is_over);
  // Values: 0 857 705 553 401 249 97 954 802 (multiples of 7919 modulo 1009).
  EXPECT_THAT(state.begun, ElementsAre(3, 1, 1, 1, 1, 2, 2, 1, 1));
}

TEST(Asha, AnEqualEarlierTrialGoesOnFirstAndFailedOnesNever) {
  const MadeResults results = MadeResults().set(0, {std::nullopt, 2.0, 2.0, 2.0});
  const AshaState state = Asha({1, 2}, 4, 1).play(4, false, results, never);
  EXPECT_THAT(state.begun, ElementsAre(1, 2, 1, 1));
}

TEST(Asha, OneTrialComesToTheEndEvenIfThereAreFewerThanEta) {
  const AshaState state = Asha({1, 3, 9}, 3, 4).play(2, false, all_results(2, 3), never);
  EXPECT_TRUE(state.is_over);
  EXPECT_THAT(state.begun, ElementsAre(3, 1));
}

TEST(Asha, EndsWhereAllHaveFailed) {
  const MadeResults results = MadeResults().set(0, std::vector<Value>(6));
  const AshaState state = Asha({1, 3}, 3, 2).play(6, false, results, never);
  EXPECT_TRUE(state.is_over);
  EXPECT_THAT(state.begun, ElementsAre(1, 1, 1, 1, 1, 1));
}

TEST(Asha, WithATargetOnlyWhatReachesItGoesOnAndNoTrialBegins) {
  const auto reaches = [](double value) { return value <= 1; };
  const MadeResults results = MadeResults().set(0, {5.0, 0.5, 2.0}).set(1, {0.5}, 1);
  const AshaState state = Asha({1, 2}, 2, 2).play(6, false, results, reaches);
  EXPECT_THAT(state.begun, ElementsAre(1, 2, 1, 0, 0, 0)) << "trial 2 had begun, and goes no further";
}

TEST(Asha, AsksForTheNextTrialWhenItWouldBegin) {
  const Asha asha({1, 2}, 2, 2);
  MadeResults results;
  EXPECT_TRUE(asha.play(1, true, results, never).wants_trial);
  EXPECT_FALSE(asha.play(2, true, results, never).wants_trial) << "both workers are busy";
  results.set(0, {1.0});
  const AshaState state = asha.play(2, true, results, never);
  EXPECT_TRUE(state.wants_trial);
  EXPECT_THAT(state.used, ElementsAre(1, 0)) << "it is chosen from the result that is there by then";
}

// What a trial is chosen from does not change when more is known.
TEST(Asha, DecisionsStayWhenMoreIsKnownInAnyOrder) {
  constexpr std::size_t kTrials = 60;
  const std::vector<int> epochs = {1, 3, 9, 27};
  for (const std::size_t at_once : {1, 4, 7}) {
    const Asha asha(epochs, 3, at_once);
    const AshaState expected = asha.play(kTrials, false, all_results(kTrials, 4), never);
    ASSERT_TRUE(expected.is_over);
    for (std::uint32_t seed = 0; seed < 30; ++seed) {
      std::mt19937 random(seed);
      MadeResults results;
      std::vector<std::size_t> trained(kTrials), last_used(kTrials);
      for (;;) {
        const AshaState state = asha.play(kTrials, false, results, never);
        std::vector<std::size_t> ready;
        for (std::size_t t = 0; t < kTrials; ++t) {
          EXPECT_GE(state.used[t], last_used[t]);
          EXPECT_LE(state.begun[t], expected.begun[t]);
          if (trained[t] < state.begun[t]) ready.push_back(t);
        }
        EXPECT_LE(ready.size(), at_once);
        if (state.is_over) {
          EXPECT_EQ(state.begun, expected.begun);
          break;
        }
        ASSERT_FALSE(ready.empty());
        last_used = state.used;
        const std::size_t t = ready[random() % ready.size()];
        results.set(trained[t]++, {value_of(t)}, t);
      }
    }
  }
}

// As in the paper: few come far, and the best does.
TEST(Asha, OfManyTrialsOneInEtaGoesOn) {
  constexpr std::size_t kTrials = 729;
  const AshaState state = Asha({1, 3, 9, 27}, 3, 8).play(kTrials, false, all_results(kTrials, 4), never);
  std::vector<std::size_t> reached(5);
  for (const std::size_t rungs : state.begun)
    for (std::size_t r = 1; r <= rungs; ++r) ++reached[r];
  EXPECT_EQ(reached[1], kTrials);
  for (std::size_t r = 2; r <= 4; ++r) {
    // Some go on that would not if all were known; Li et al. bound them by the root of the number.
    EXPECT_GE(reached[r], reached[r - 1] / 3);
    EXPECT_LE(static_cast<double>(reached[r]),
              static_cast<double>(reached[r - 1]) / 3 + 3 * std::sqrt(static_cast<double>(reached[r - 1])));
  }
  std::size_t best = 0;
  for (std::size_t t = 0; t < kTrials; ++t)
    if (value_of(t) < value_of(best)) best = t;
  EXPECT_EQ(state.begun[best], 4U);
}

}  // namespace
}  // namespace sweep

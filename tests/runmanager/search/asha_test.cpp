// Decisions of asha are functions of results, in an order of their own.
#include "runmanager/search/halving.h"

#include <random>

#include "tests/runmanager/search/made_domains.h"
#include "tests/support/test.h"

namespace sweep::asha_test {

using test::MadeResults, test::no_target;

// The result of trial t at every rung.
double value_of(std::size_t trial) { return static_cast<double>(trial * 7919 % 1009); }

MadeResults all_results(std::size_t trials, const std::vector<int>& epochs) {
  MadeResults results;
  for (std::size_t t = 0; t < trials; ++t)
    for (const int epoch : epochs) results.set(epoch, t, value_of(t));
  return results;
}

// Whether no trial goes on any more: all that have begun have ended.
bool is_over(const SearchState& state) { return !state.ended.at(0).empty(); }

struct Played {
  Asha asha;
  MadeResults results;
  std::vector<int> until;  // of each trial
  const char* claim;
};

TEST(Asha, SendsTrialsOnAsTheirResultsAllow) {
  const std::vector<int> four = {1, 2, 4};
  const Played games[] = {
      {Asha{four, 2, 3}, "", {1, 1, 1, 0, 0}, "as many begin as there are workers"},
      {Asha{four, 2, 1}, "1: 5", {1, 1, 0, 0}, "one of one is not enough to go on"},
      {Asha{four, 2, 1}, "1: 5 3", {1, 2, 0, 0}, "the best of eta results goes on"},
      {Asha{four, 2, 1}, "1: 5 3 | 2: . 3", {1, 2, 1, 0}, "then the next trial begins"},
      {Asha{four, 2, 1}, "1: 5 3 9 4 | 2: . 3", {1, 2, 1, 2}, "the second of four is of the best half"},
      {Asha{{1, 2}, 4, 1}, "1: x 2 2 2", {1, 2, 1, 1}, "an equal earlier one first, failed ones never"}};
  for (const auto& [asha, results, until, claim] : games) {
    const SearchState state = asha.play(until.size(), false, results, no_target);
    EXPECT_EQ(state.until, until) << claim;
    EXPECT_FALSE(is_over(state)) << claim;
  }
}

TEST(Asha, EndsWithTheBestTrialsAtTheLastRung) {
  const std::vector<int> nine = {1, 3, 9};
  const Played games[] = {
      // By hand: 3 trials at a rung send one on, and the last rung has the best of the rung before. Values: 0
      // 857 705 553 401 249 97 954 802 (multiples of 7919 modulo 1009).
      {Asha{nine, 3, 1}, all_results(9, nine), {9, 1, 1, 1, 1, 3, 3, 1, 1}, "nine trials"},
      {Asha{nine, 3, 4}, all_results(2, nine), {9, 1}, "fewer trials than eta"},
      {Asha{{1, 3}, 3, 2}, "1: x x x x x x", {1, 1, 1, 1, 1, 1}, "all have failed"}};
  for (const auto& [asha, results, until, claim] : games) {
    const SearchState state = asha.play(until.size(), false, results, no_target);
    EXPECT_EQ(state.until, until) << claim;
    EXPECT_TRUE(is_over(state)) << claim;
  }
}

TEST(Asha, SaysIfNoTrialHasTheMetric) {
  const auto reason = [](const char* results) {
    return Asha{{1, 3}, 3, 2}.play(2, false, MadeResults(results), no_target).ended.at(0);
  };
  EXPECT_EQ(reason("1: x x"), "no trial has a value of the metric after epoch 1, so none goes on");
  EXPECT_EQ(reason("1: 2 1 | 3: . 1"), "not among the best 1 in 3 after epoch 1");
}

TEST(Asha, WithATargetOnlyWhatReachesItGoesOnAndNoTrialBegins) {
  const auto reaches = [](double value) { return value <= 1; };
  const SearchState state = Asha{{1, 2}, 2, 2}.play(6, false, MadeResults("1: 5 0.5 2 | 2: . 0.5"), reaches);
  EXPECT_THAT(state.until, ElementsAre(1, 2, 1, 0, 0, 0)) << "trial 2 had begun, and goes no further";
}

TEST(Asha, AsksForTheNextTrialWhenItWouldBegin) {
  const Asha asha({1, 2}, 2, 2);
  MadeResults results;
  EXPECT_TRUE(asha.play(1, true, results, no_target).wants_trial);
  EXPECT_FALSE(asha.play(2, true, results, no_target).wants_trial) << "both workers are busy";
  results.set(1, 0, 1);
  const SearchState state = asha.play(2, true, results, no_target);
  EXPECT_TRUE(state.wants_trial);
  EXPECT_THAT(state.used, ElementsAre(1, 0)) << "it is chosen from the result that is there by then";
}

// What a trial is chosen from does not change when more is known.
TEST(Asha, DecisionsStayWhenMoreIsKnownInAnyOrder) {
  constexpr std::size_t kTrials = 60;
  const std::vector<int> epochs = {1, 3, 9, 27};
  for (const std::size_t at_once : {1, 4, 7}) {
    const Asha asha(epochs, 3, at_once);
    const SearchState expected = asha.play(kTrials, false, all_results(kTrials, epochs), no_target);
    ASSERT_TRUE(is_over(expected));
    for (std::uint32_t seed = 0; seed < 30; ++seed) {
      std::mt19937 random(seed);
      MadeResults results;
      std::vector<int> trained(kTrials), last_used(kTrials);
      for (;;) {
        const SearchState state = asha.play(kTrials, false, results, no_target);
        std::vector<std::size_t> ready;
        for (std::size_t t = 0; t < kTrials; ++t) {
          EXPECT_GE(state.used[t], last_used[t]);
          EXPECT_LE(state.until[t], expected.until[t]);
          if (trained[t] < state.until[t]) ready.push_back(t);
        }
        EXPECT_LE(ready.size(), at_once);
        if (is_over(state)) {
          EXPECT_EQ(state.until, expected.until);
          break;
        }
        ASSERT_FALSE(ready.empty());
        last_used = state.used;
        const std::size_t t = ready[random() % ready.size()];
        results.set(trained[t] = state.until[t], t, value_of(t));
      }
    }
  }
}

// As in the paper: few come far, and the best does.
TEST(Asha, OfManyTrialsOneInEtaGoesOn) {
  constexpr std::size_t kTrials = 729;
  const std::vector<int> epochs = {1, 3, 9, 27};
  const SearchState state = Asha{epochs, 3, 8}.play(kTrials, false, all_results(kTrials, epochs), no_target);
  std::size_t before = kTrials;
  for (const int epoch : epochs) {
    const auto reached = static_cast<std::size_t>(
        std::ranges::count_if(state.until, [epoch](int until) { return until >= epoch; }));
    const std::size_t least = epoch == 1 ? kTrials : before / 3;
    // Some go on that would not if all were known; Li et al. bound them by the root of the number.
    EXPECT_GE(reached, least);
    EXPECT_LE(static_cast<double>(reached),
              static_cast<double>(before) / 3 + (epoch == 1 ? kTrials : 3 * std::sqrt(before)));
    before = reached;
  }
  std::size_t best = 0;
  for (std::size_t t = 0; t < kTrials; ++t)
    if (value_of(t) < value_of(best)) best = t;
  EXPECT_EQ(state.until[best], 27);
}

}  // namespace sweep::asha_test

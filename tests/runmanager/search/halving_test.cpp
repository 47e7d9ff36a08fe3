#include "runmanager/search/decisions.h"

#include <random>

#include "tests/runmanager/search/made_domains.h"

namespace sweep::halving_test {

// "81x1 27x3": 81 trials to epoch 1, 27 of them to epoch 3.
std::string text_of(const std::vector<Rung>& rungs) {
  std::string text;
  for (const Rung& rung : rungs)
    text += (text.empty() ? "" : " ") + std::to_string(rung.trials) + "x" + std::to_string(rung.epochs);
  return text;
}

TEST(Halving, HasTheseRungs) {
  const struct {
    std::size_t trials;
    int least, most, eta;
    const char *rungs, *claim;
  } cases[] = {
      {81, 1, 81, 3, "81x1 27x3 9x9 3x27 1x81", "keeps an eta-th, and trains that eta times as long"},
      {16, 1, 8, 2, "16x1 8x2 4x4 2x8", "the same"},
      {27, 1, 10, 3, "27x1 9x3 3x10", "ends with the largest number of epochs also if that is no power"},
      {10, 2, 7, 2, "10x4 5x7", "the same"},
      {5, 1, 81, 3, "5x27 1x81", "leaves out the first rungs if there are too few trials"},
      {1, 1, 81, 3, "1x81", "the same"},
      {100, 5, 100, 4, "100x6 25x25 6x100", "never trains less than the least epochs"},
  };
  for (const auto& [trials, least, most, eta, rungs, claim] : cases)
    EXPECT_EQ(text_of(Halving(trials, least, most, eta).rungs()), rungs) << claim;
}

TEST(Halving, NeverTrainsLessThanTheLeastEpochs) {
  for (int most = 1; most <= 100; ++most)
    for (int least = 1; least <= most; ++least)
      for (int eta = 2; eta <= 5; ++eta) {
        const Halving halving(1000, least, most, eta);
        EXPECT_GE(halving.rungs().front().epochs, least);
        EXPECT_EQ(halving.rungs().back().epochs, most);
        for (std::size_t i = 1; i < halving.rungs().size(); ++i) {
          EXPECT_LT(halving.rungs()[i - 1].epochs, halving.rungs()[i].epochs);
          EXPECT_EQ(halving.rungs()[i - 1].trials / eta, halving.rungs()[i].trials);
        }
      }
}

TEST(Halving, SaysHowManyEpochsAreTrained) {
  EXPECT_EQ(Halving(27, 1, 9, 3).total_epochs(), 27u * 1 + 9u * 2 + 3u * 6);
  EXPECT_EQ(Halving(3, 10, 10, 3).total_epochs(), 30u);
}

TEST(Halving, SaysIfNoTrialHasTheMetric) {
  SearchState state(2);
  Halving(2, 1, 2, 2).play(state, false, test::MadeResults("1: x x"), test::no_target);
  EXPECT_EQ(state.ended[0], "none of the 2 trials has a value of the metric after epoch 1, so none goes on");
}

TEST(Halving, TheLargestNumbersDoNotOverflow) {
  const int most = std::numeric_limits<int>::max();
  EXPECT_EQ(Halving(std::numeric_limits<std::size_t>::max(), 1, most, most).rungs().size(), 2u);
  EXPECT_EQ(Halving(std::numeric_limits<std::size_t>::max(), most, most, 2).rungs().size(), 1u);
}

std::vector<std::string> texts_of(const std::vector<Halving>& brackets) {
  std::vector<std::string> texts;
  for (const Halving& bracket : brackets) texts.push_back(text_of(bracket.rungs()));
  return texts;
}

// Algorithm 1 of Li et al. (2018) with R = 81 and eta = 3, the example of their table 1.
TEST(Hyperband, HasTheBracketsOfThePaper) {
  EXPECT_THAT(
      texts_of(hyperband_brackets(1, 81, 3)),
      ElementsAre("81x1 27x3 9x9 3x27 1x81", "34x3 11x9 3x27 1x81", "15x9 5x27 1x81", "8x27 2x81", "5x81"));
}

// The table in the documentation of mlr3hyperband.
TEST(Hyperband, HasTheBracketsOfMlr3) {
  EXPECT_THAT(texts_of(hyperband_brackets(1, 8, 2)),
              ElementsAre("8x1 4x2 2x4 1x8", "6x2 3x4 1x8", "4x4 2x8", "4x8"));
}

TEST(Hyperband, TheTrialsOfBracketsFollowEachOther) {
  for (const std::size_t trials : {1u, 5u, 26u, 143u, 500u}) {
    std::size_t next = 0;
    for (const Halving& bracket : hyperband_brackets(1, 81, 3, trials)) {
      EXPECT_EQ(bracket.first_trial(), next);
      next += bracket.rungs().front().trials;
    }
    EXPECT_EQ(next, trials);
  }
}

TEST(Hyperband, BeginsAgainWithTheFirstBracketIfThereAreMoreTrialsAndTheLastHasWhatIsLeft) {
  EXPECT_THAT(texts_of(hyperband_brackets(1, 4, 2, 20)),
              ElementsAre("4x1 2x2 1x4", "3x2 1x4", "3x4", "4x1 2x2 1x4", "3x2 1x4", "3x4"));
  EXPECT_THAT(texts_of(hyperband_brackets(1, 9, 3, 11)), ElementsAre("9x1 3x3 1x9", "2x9"));
}

TEST(Hyperband, NoBracketTrainsLessThanTheLeastEpochs) {
  EXPECT_THAT(texts_of(hyperband_brackets(4, 10, 2)), ElementsAre("2x5 1x10", "2x10"));
  for (int most = 1; most <= 60; ++most)
    for (int least = 1; least <= most; ++least)
      for (const Halving& bracket : hyperband_brackets(least, most, 2)) {
        EXPECT_GE(bracket.rungs().front().epochs, least);
        EXPECT_EQ(bracket.rungs().back().epochs, most);
      }
}

// Decisions of asha are functions of results, in an order of their own.

using test::MadeResults, test::no_target, test::text_of;

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

TEST(Asha, SendsTrialsOnAsTheirResultsAllow) {
  const std::vector<int> four = {1, 2, 4}, nine = {1, 3, 9};
  const struct {
    Asha asha;
    MadeResults results;
    const char *state, *claim;
  } games[] = {
      {Asha{four, 2, 3}, "", "1 1 1 0 0", "as many begin as there are workers"},
      {Asha{four, 2, 1}, "1: 5", "1 1 0 0", "one of one is not enough to go on"},
      {Asha{four, 2, 1}, "1: 5 3", "1 2 0 0", "the best of eta results goes on"},
      {Asha{four, 2, 1}, "1: 5 3 | 2: . 3", "1 2 1 0", "then the next trial begins"},
      {Asha{four, 2, 1}, "1: 5 3 9 4 | 2: . 3", "1 2 1 2", "the second of four is of the best half"},
      {Asha{four, 2, 2}, "1: 5 3 . | 2: . 3", "1 2 1 0 0", "a free worker waits for an earlier result"},
      {Asha{four, 2, 2}, "1: 5 3 1 | 2: . 3", "1 2 2 1 0", "which may send its trial on"},
      {Asha{four, 2, 2}, "1: 5 3 9 | 2: . 3", "1 2 1 1 1", "or begin another"},
      {Asha{{1, 2}, 4, 1}, "1: x 2 2 2", "1 2 1 1", "an equal earlier one first, failed ones never"},
      // By hand: 3 trials at a rung send one on, and the last rung has the best of the rung before. Values: 0
      // 857 705 553 401 249 97 954 802 (multiples of 7919 modulo 1009).
      {Asha{nine, 3, 1}, all_results(9, nine), "9! 1! 1! 1! 1! 3! 3! 1! 1!", "nine trials"},
      {Asha{nine, 3, 4}, all_results(2, nine), "9! 1!", "fewer trials than eta"},
      {Asha{{1, 3}, 3, 2}, "1: x x x x x x", "1! 1! 1! 1! 1! 1!", "all have failed"}};
  for (const auto& [asha, results, state, claim] : games) {
    const auto trials = static_cast<std::size_t>(std::ranges::count(std::string_view(state), ' ')) + 1;
    EXPECT_EQ(text_of(asha.play(trials, false, results, no_target)), state) << claim;
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
  const Asha asha{{1, 2}, 2, 2};
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
    const Asha asha{epochs, 3, at_once};
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

}  // namespace sweep::halving_test

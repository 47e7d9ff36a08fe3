#include "runmanager/search/halving.h"

#include "tests/runmanager/search/made_domains.h"
#include "tests/support/test.h"

namespace sweep::halving_test {

using Values = std::vector<std::optional<double>>;
using Indices = std::vector<std::size_t>;

TEST(Halving, KeepsAnEtathOfTheTrialsAndTrainsThemEtaTimesAsLong) {
  EXPECT_EQ(Halving(81, 1, 81, 3).rungs(), (std::vector<Rung>{{81, 1}, {27, 3}, {9, 9}, {3, 27}, {1, 81}}));
  EXPECT_EQ(Halving(16, 1, 8, 2).rungs(), (std::vector<Rung>{{16, 1}, {8, 2}, {4, 4}, {2, 8}}));
}

TEST(Halving, EndsWithTheLargestNumberOfEpochsAlsoIfThatIsNoPower) {
  EXPECT_EQ(Halving(27, 1, 10, 3).rungs(), (std::vector<Rung>{{27, 1}, {9, 3}, {3, 10}}));
  EXPECT_EQ(Halving(10, 2, 7, 2).rungs(), (std::vector<Rung>{{10, 4}, {5, 7}}));
}

TEST(Halving, NeverTrainsLessThanTheLeastEpochs) {
  EXPECT_EQ(Halving(100, 5, 100, 4).rungs().front(), (Rung{100, 6}));
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

TEST(Halving, LeavesOutTheFirstRungsIfThereAreTooFewTrials) {
  EXPECT_EQ(Halving(5, 1, 81, 3).rungs(), (std::vector<Rung>{{5, 27}, {1, 81}}));
  EXPECT_EQ(Halving(1, 1, 81, 3).rungs(), (std::vector<Rung>{{1, 81}}));
}

TEST(Halving, SaysHowManyEpochsAreTrained) {
  EXPECT_EQ(Halving(27, 1, 9, 3).total_epochs(), 27u * 1 + 9u * 2 + 3u * 6);
  EXPECT_EQ(Halving(3, 10, 10, 3).total_epochs(), 30u);
}

TEST(Halving, TheBestGoOnInTheOrderOfTheTrials) {
  const Halving halving(6, 1, 4, 2);  // 6, 3, 1
  EXPECT_EQ(halving.decide(0, Values{0.5, 0.1, 0.9, 0.2, 0.8, 0.3}), (Indices{1, 3, 5}));
  EXPECT_EQ(halving.decide(1, Values{-1.0, -3.0, -2.0}), (Indices{1}));
  EXPECT_EQ(halving.decide(2, Values{1.0}), Indices{});
}

TEST(Halving, OfEqualTrialsTheEarlierOneGoesOn) {
  EXPECT_EQ(Halving(4, 1, 2, 2).decide(0, Values{2.0, 1.0, 1.0, 1.0}), (Indices{1, 2}));
}

TEST(Halving, WhoFailedOrDivergedNeverGoesOn) {
  const Halving halving(6, 1, 2, 2);
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(halving.decide(0, Values{std::nullopt, 5.0, infinity, NAN, -infinity, 4.0}), (Indices{1, 5}));
  EXPECT_EQ(halving.decide(0, Values(6, std::nullopt)), Indices{});
}

TEST(Halving, SaysIfNoTrialHasTheMetric) {
  const HyperbandBracket bracket{.first_trial = 0, .halving = Halving(2, 1, 2, 2)};
  for (const auto& [results, why] :
       {std::pair("1: x x",
                  "none of the 2 trials has a value of the metric after epoch 1, "
                  "so none goes on"),
        {"1: x 3", "not among the best 1 of 2 after epoch 1"}}) {
    SearchState state(2);
    bracket.play(state, false, test::MadeResults(results), test::no_target);
    EXPECT_EQ(state.ended[0], why);
  }
}

TEST(Halving, FewerThanExpectedFillTheNextRungFirst) {
  EXPECT_EQ(Halving(9, 1, 3, 3).decide(0, Values{3.0, 2.0}), (Indices{0, 1}));
}

TEST(Halving, ImpossibleNumbersAreErrors) {
  EXPECT_THROW(Halving(0, 1, 2, 2), ConfigError);
  EXPECT_THROW(Halving(1, 0, 2, 2), ConfigError);
  EXPECT_THROW(Halving(1, 3, 2, 2), ConfigError);
  EXPECT_THROW(Halving(1, 1, 2, 1), ConfigError);
  EXPECT_THROW(Halving(1, 1, 2, 2).decide(1, {}), std::out_of_range);
}

TEST(Halving, TheLargestNumbersDoNotOverflow) {
  const int most = std::numeric_limits<int>::max();
  EXPECT_EQ(Halving(std::numeric_limits<std::size_t>::max(), 1, most, most).rungs().size(), 2u);
  EXPECT_EQ(Halving(std::numeric_limits<std::size_t>::max(), most, most, 2).rungs().size(), 1u);
}

using Rungs = std::vector<Rung>;

std::vector<Rungs> rungs_of(const std::vector<HyperbandBracket>& brackets) {
  std::vector<Rungs> rungs;
  rungs.reserve(brackets.size());
  for (const HyperbandBracket& bracket : brackets) rungs.push_back(bracket.halving.rungs());
  return rungs;
}

// Algorithm 1 of Li et al. (2018) with R = 81 and eta = 3, the example of their table 1.
TEST(Hyperband, HasTheBracketsOfThePaper) {
  EXPECT_EQ(rungs_of(hyperband_brackets(1, 81, 3)), (std::vector<Rungs>{
                                                        {{81, 1}, {27, 3}, {9, 9}, {3, 27}, {1, 81}},
                                                        {{34, 3}, {11, 9}, {3, 27}, {1, 81}},
                                                        {{15, 9}, {5, 27}, {1, 81}},
                                                        {{8, 27}, {2, 81}},
                                                        {{5, 81}},
                                                    }));
}

// The table in the documentation of mlr3hyperband.
TEST(Hyperband, HasTheBracketsOfMlr3) {
  EXPECT_EQ(rungs_of(hyperband_brackets(1, 8, 2)), (std::vector<Rungs>{
                                                       {{8, 1}, {4, 2}, {2, 4}, {1, 8}},
                                                       {{6, 2}, {3, 4}, {1, 8}},
                                                       {{4, 4}, {2, 8}},
                                                       {{4, 8}},
                                                   }));
}

TEST(Hyperband, TheTrialsOfBracketsFollowEachOther) {
  for (const std::size_t trials : {1u, 5u, 26u, 143u, 500u}) {
    std::size_t next = 0;
    for (const HyperbandBracket& bracket : hyperband_brackets(1, 81, 3, trials)) {
      EXPECT_EQ(bracket.first_trial, next);
      next += bracket.halving.rungs().front().trials;
    }
    EXPECT_EQ(next, trials);
  }
}

TEST(Hyperband, BeginsAgainWithTheFirstBracketIfThereAreMoreTrials) {
  const auto brackets = hyperband_brackets(1, 4, 2, 20);
  EXPECT_EQ(rungs_of(brackets), (std::vector<Rungs>{
                                    {{4, 1}, {2, 2}, {1, 4}},
                                    {{3, 2}, {1, 4}},
                                    {{3, 4}},
                                    {{4, 1}, {2, 2}, {1, 4}},
                                    {{3, 2}, {1, 4}},
                                    {{3, 4}},
                                }));
}

TEST(Hyperband, TheLastBracketHasWhatIsLeft) {
  EXPECT_EQ(rungs_of(hyperband_brackets(1, 9, 3, 11)), (std::vector<Rungs>{
                                                           {{9, 1}, {3, 3}, {1, 9}},
                                                           {{2, 9}},
                                                       }));
}

TEST(Hyperband, NoBracketTrainsLessThanTheLeastEpochs) {
  EXPECT_EQ(rungs_of(hyperband_brackets(4, 10, 2)), (std::vector<Rungs>{{{2, 5}, {1, 10}}, {{2, 10}}}));
  for (int most = 1; most <= 60; ++most)
    for (int least = 1; least <= most; ++least)
      for (const HyperbandBracket& bracket : hyperband_brackets(least, most, 2)) {
        EXPECT_GE(bracket.halving.rungs().front().epochs, least);
        EXPECT_EQ(bracket.halving.rungs().back().epochs, most);
      }
}

TEST(Hyperband, ImpossibleNumbersAreErrors) {
  EXPECT_THROW(hyperband_brackets(1, 9, 3, 0), ConfigError);
  EXPECT_THROW(hyperband_brackets(0, 9, 3), ConfigError);
  EXPECT_THROW(hyperband_brackets(10, 9, 3), ConfigError);
  EXPECT_THROW(hyperband_brackets(1, 9, 1), ConfigError);
}

}  // namespace sweep::halving_test

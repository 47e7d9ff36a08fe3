#include "runmanager/search/hyperband.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace sweep {
namespace {

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

}  // namespace
}  // namespace sweep

#include "runmanager/answers/importances.h"

#include <random>

#include "tests/runmanager/answers/made_runs.h"

namespace sweep::importances_test {

const Goal kLowestLoss = asked_goal("loss", false);

RunRecord trial(Params params, double loss) {
  return testing::made_run(std::move(params), "cpu", 1, {loss}).record;
}

// Trials at random points: `make` adds the settings, from uniform numbers in (0, 1), and returns the loss.
class Unit {
 public:
  explicit Unit(unsigned seed) : random_(seed) {}
  double operator()() { return std::uniform_real_distribution<double>(0, 1)(random_); }

 private:
  std::mt19937 random_;
};
std::vector<RunRecord> trials(std::size_t count, const std::function<double(Unit&, Params&)>& make,
                              unsigned seed = 1) {
  Unit unit(seed);
  std::vector<RunRecord> runs;
  for (std::size_t i = 0; i < count; ++i) {
    Params params;
    const double loss = make(unit, params);
    runs.push_back(trial(std::move(params), loss));
  }
  return runs;
}

std::map<std::string, Importance> by_key(const Importances& importances) {
  std::map<std::string, Importance> map;
  for (const Importance& importance : importances.settings) map[importance.key] = importance;
  return map;
}

TEST(Importances, FailedTrialsAreNotAmongTheBestHoweverManyThereAre) {
  std::vector<RunRecord> runs = trials(9, [](Unit& unit, Params& params) {
    params = {{"lr", unit()}};
    return std::get<double>(params[0].second);
  });
  for (std::size_t i = 2; i < runs.size(); ++i) runs[i].status = RunStatus::kFailed;
  EXPECT_EQ(importances_of(runs, kLowestLoss).best, 2U);
}

// For 3 x + y: x carries 90 % of the variance. The best tenth is the triangle below 3 x + y = t, of area
// t²/6, so t = sqrt(0.6). Its density in x is (t - 3 x) / 0.1 and in y (t - y) / 0.3; the integral of the
// squares, less 1, is t³ / 9 / 0.01 - 1 = 4.164 for x and t³ / 27 / 0.01 - 1 = 0.721 for y.
constexpr double kOfX = 4.164, kOfY = 0.721;
double linear(Unit& unit, Params& params) {
  const double x = unit(), y = unit();
  params = {{"x", x}, {"y", y}, {"nothing", unit()}};
  return 3 * x + y;
}

TEST(Importances, AreTheDivergencesOfTheBestTenth) {
  const Importances importances = importances_of(trials(3000, linear), kLowestLoss);
  EXPECT_EQ(importances.trials, 3000u);
  EXPECT_EQ(importances.best, 300u);
  auto found = by_key(importances);
  EXPECT_NEAR(found["x"].divergence, kOfX, 0.1 * kOfX);
  EXPECT_NEAR(found["y"].divergence, kOfY, 0.15 * kOfY);
  EXPECT_LT(found["nothing"].share, 0.01);
  EXPECT_NEAR(found["x"].share, kOfX / (kOfX + kOfY), 0.03);
  EXPECT_FALSE(found["x"].may_be_chance || found["y"].may_be_chance);
  EXPECT_EQ(importances.settings[0].key, "x");
}

TEST(Importances, OfHundredTrialsAreRightOnAverage) {
  double of_x = 0, of_nothing = 0;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    auto found = by_key(importances_of(trials(100, linear, seed), kLowestLoss));
    of_x += found["x"].share / 100;
    of_nothing += found["nothing"].share / 100;
  }
  EXPECT_NEAR(of_x, kOfX / (kOfX + kOfY), 0.12);
  EXPECT_LT(of_nothing, 0.1);
}

TEST(Importances, OfTenTrialsWithOtherValuesEachAreThoseOfNumbers) {
  const Importances importances = importances_of(trials(10,
                                                        [](Unit& unit, Params& params) {
                                                          const double x = unit();
                                                          params = {{"x", x}, {"nothing", unit()}};
                                                          return x;
                                                        }),
                                                 kLowestLoss);
  EXPECT_EQ(importances.settings[0].key, "x");
  EXPECT_GT(importances.settings[0].share, 0.7);
}

TEST(Importances, OfWhatHasNoInfluenceAreChance) {
  std::size_t chance = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    const auto runs = trials(
        200,
        [](Unit& unit, Params& params) {
          params = {{"many", unit()}, {"few", std::floor(5 * unit())}};
          return unit();
        },
        seed);
    for (const Importance& setting : importances_of(runs, kLowestLoss).settings)
      chance += setting.may_be_chance;
  }
  EXPECT_GE(chance, 370u) << "of 400";
}

TEST(Importances, AreThoseOfLogarithms) {
  const auto of = [](bool by_log) {
    return importances_of(trials(500,
                                 [by_log](Unit& unit, Params& params) {
                                   const double x = unit(), y = unit();
                                   params = {{"lr", by_log ? std::pow(10, -5 * x) : -x}, {"y", y}};
                                   return std::abs(x - 0.4) + 0.3 * y;
                                 }),
                          kLowestLoss);
  };
  const Importances plain = of(false), logarithmic = of(true);
  ASSERT_EQ(plain.settings[0].key, "lr");
  EXPECT_DOUBLE_EQ(plain.settings[0].divergence, logarithmic.settings[0].divergence);
  EXPECT_DOUBLE_EQ(plain.settings[1].divergence, logarithmic.settings[1].divergence);
}

// All of the best tenth have "a", which half of the trials have: 1 / 0.5 - 1 = 1. Only those have "x", whose
// best fifth is the best tenth of all: (1 / 0.2 - 1) · 0.5 · (0.2 / 0.1)² = 8. "y" belongs to the others,
// which are never among the best.
TEST(Importances, OfConditionalSettingsAreOfTheTrialsThatHaveThem) {
  const auto runs = trials(3000, [](Unit& unit, Params& params) {
    const bool is_a = unit() < 0.5;
    const double x = unit();
    params = {{"kind", std::string(is_a ? "a" : "b")}, {is_a ? "x" : "y", x}};
    return is_a ? x : 2 + x;
  });
  auto found = by_key(importances_of(runs, kLowestLoss));
  EXPECT_NEAR(found["kind"].divergence, 1, 0.1);
  EXPECT_NEAR(found["x"].divergence, 8, 1);
  EXPECT_EQ(found["y"].divergence, 0);
  EXPECT_EQ(found["y"].best, "");
  EXPECT_EQ(found["x"].trials + found["y"].trials, 3000u);
  EXPECT_EQ(found["kind"].best, "a in 300 of 300");
}

TEST(Importances, CountPrunedTrialsAsWorseAndFailedOnesAsWorst) {
  std::vector<RunRecord> runs;
  for (int i = 0; i < 40; ++i) {
    runs.push_back(trial({{"end", std::string(i < 20 ? "whole" : "early")}}, i < 20 ? 1 + i : 0.1));
    if (i >= 20) runs.back().status = i % 2 == 0 ? RunStatus::kPruned : RunStatus::kFailed;
  }
  const Importances importances = importances_of(runs, kLowestLoss);
  EXPECT_EQ(importances.best, 10u);
  EXPECT_EQ(importances.settings[0].best, "whole in 10 of 10");
  EXPECT_DOUBLE_EQ(importances.settings[0].divergence, 1);
  for (RunRecord& run : runs) run.epochs[0].set("loss", std::numeric_limits<double>::quiet_NaN());
  runs[3].epochs[0].set("loss", 1.0);
  EXPECT_EQ(importances_of(runs, kLowestLoss).best, 1u)
      << "those that diverged are not good, however many there are";
}

TEST(Importances, FollowTheGoalAndSayWhatTheBestHave) {
  std::vector<RunRecord> runs;
  for (int i = 0; i < 200; ++i)
    runs.push_back(trial({{"n", std::int64_t{i}}, {"device", std::string("cpu")}}, i));
  const Goal highest = asked_goal("loss", true);
  const Importances importances = importances_of(runs, highest);
  ASSERT_EQ(importances.settings.size(), 1u) << "the device does not differ";
  EXPECT_EQ(importances.settings[0].best, "182 to 197");
  EXPECT_EQ(importances_of(runs, kLowestLoss).settings[0].best, "2 to 17");
  const Answer answer = answer_of(importances, {TableFormat::kCsv, false});
  EXPECT_THAT(answer.text, HasSubstr("PED-ANOVA, of 200 trials"));
  EXPECT_THAT(answer.text, HasSubstr("n        182 to 197"));
  EXPECT_EQ(answer.json.at("importances").at(0).at("share"), 1);
  EXPECT_THAT(answer.tables.at(0).rows, ElementsAre(ElementsAre("n", "182 to 197", "1", "200", "no")));
  for (int width = 42; width < 100; ++width)
    EXPECT_LE(testing::widest_line(answer_of(importances, {.width = width}).text), width);
}

TEST(Importances, NeedTrialsThatDiffer) {
  const auto message = [](const std::vector<RunRecord>& runs) {
    return message_of<ConfigError>([&] { importances_of(runs, kLowestLoss); });
  };
  EXPECT_EQ(message({}), "no completed trial has a finite loss");
  EXPECT_EQ(message({trial({{"n", 1.0}}, 1), trial({{"n", 2.0}}, 1)}),
            "importances need 4 trials that have ended, but there are 2");
  EXPECT_EQ(message(std::vector<RunRecord>(5, trial({{"n", 1.0}}, 1))),
            "no setting has two values among the trials that have ended");
}

}  // namespace sweep::importances_test

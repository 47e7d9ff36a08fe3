#include "runmanager/answers/effects.h"

#include "tests/runmanager/answers/made_runs.h"

namespace sweep::effects_test {

using ::testing::_;

RunRecord measured(Params params, const std::string& metric, double value) {
  RunRecord run = testing::made_run(std::move(params), "cpu", 1).record;
  run.metrics[metric] = value;
  return run;
}

// A 3 x 2 x 2 grid with two repeats: value = sin(n^2) + effects of a and b, with n the number of the run. The
// same table was given to statsmodels, anova_lm(ols("v ~ C(a) * C(b) * C(c)", table).fit(), typ=2).
std::vector<RunRecord> grid(std::int64_t repeats) {
  std::vector<RunRecord> runs;
  int n = 0;
  for (const auto& [a, of_a] : {std::pair("x", 0), {"y", 1}, {"z", 3}}) {
    for (const auto& [b, of_b] : {std::pair("p", 0.0), {"q", of_a == 3 ? 1 : 0.5}}) {
      for (const auto& [c, of_c] : {std::pair("u", 0.0), {"v", 0.1}}) {
        for (std::int64_t repeat = 0; repeat < 2; ++repeat, ++n) {
          const double value = std::sin(n * n) + of_a + of_b + of_c;
          if (repeat < repeats)
            runs.push_back(measured({{"a", a}, {"b", b}, {"c", c}, {"repeat", repeat}}, "score", value));
        }
      }
    }
  }
  return runs;
}

// By the metric's own better end.
Effects effects_of(const std::vector<RunRecord>& runs, const char* metric) {
  return effects_of(runs, goal_for(metric_named(metric), {}));
}

TEST(Effects, AreThoseOfStatsmodelsWithRepeats) {
  const Effects effects = effects_of(grid(2), "score");
  ASSERT_EQ(effects.effects.size(), 6u);
  EXPECT_EQ(effects.combinations, 12u);
  EXPECT_EQ(effects.repeats, 2u);
  const double squares[] = {50.3321826012, 1.31797804061, 0.127868552714,
                            3.82223589944, 1.59855086295, 0.0214441696674};
  const double p[] = {5.43718574531e-06, 0.177205678176, 0.663147022761,
                      0.088946373584,    0.322213758584, 0.857950985988};
  const std::size_t degrees[] = {2, 1, 1, 2, 2, 1};
  const nlohmann::ordered_json json = answer_of(effects, {TableFormat::kJson, false}).json;
  for (std::size_t i = 0; i < 6; ++i) {
    const Effect& effect = effects.effects[i];
    EXPECT_NEAR(effect.sum_squares, squares[i], 1e-9) << i;
    EXPECT_NEAR(effect.p.value(), p[i], 1e-9) << i;
    EXPECT_EQ(effect.degrees, degrees[i]) << i;
    const nlohmann::ordered_json& told = json.at("effects").at(i);
    EXPECT_EQ(
        std::tuple(told["keys"], told["sum_squares"], told["degrees"], told["f"], told["p"]),
        std::tuple(effect.keys, effect.sum_squares, effect.degrees, effect.f.value(), effect.p.value()));
  }
  EXPECT_EQ(json.at("error").at("degrees"), 12);
  EXPECT_EQ(json.at("error").at("sum_squares"), effects.error_sum_squares);
  EXPECT_NEAR(effects.effects[0].f.value(), 39.2469061497, 1e-8);
  EXPECT_THAT(effects.effects[4].keys, ElementsAre("a", "c"));
  EXPECT_EQ(effects.error, EffectError::kRepeats);
  EXPECT_EQ(effects.error_degrees, 12u);
  EXPECT_NEAR(effects.error_sum_squares, 7.69469813635, 1e-9);
  const EffectLevel& z = effects.effects[0].levels[2];
  EXPECT_NEAR(z.metric.mean, 3.5565148060091465, 1e-12);
  EXPECT_NEAR(z.metric.interval->second - z.metric.mean, 0.6168507554190737, 1e-9);
  EXPECT_EQ(effects.effects[0].best, 0u) << "of a score that is not known to be better when larger";
}

TEST(Effects, HaveTheBestValuesThatTheGoalAsksFor) {
  for (const bool largest : {false, true}) {
    std::vector<RunRecord> runs = grid(2);
    for (RunRecord& run : runs) run.run_seconds = 1;
    const Effects effects = effects_of(runs, asked_goal("score", largest));
    EXPECT_EQ(effects.effects[0].levels[effects.effects[0].best].value, largest ? "z" : "x");
    ASSERT_EQ(effects.front.size(), 1u);
    EXPECT_THAT(effects.front[0].settings, Contains(Pair("a", largest ? "z" : "x")));
    EXPECT_THAT(answer_of(effects, {TableFormat::kText, false}).text,
                HasSubstr(largest ? "(larger is better)" : "(smaller is better)"));
    EXPECT_EQ(answer_of(effects, {TableFormat::kJson, false}).json["larger_is_better"], largest);
  }
}

TEST(Effects, FitTheTerminal) {
  std::vector<RunRecord> runs = grid(2);
  for (RunRecord& run : runs) run.run_seconds = 1;
  const Effects effects = effects_of(runs, "score");
  for (int width = 40; width < 100; ++width)
    EXPECT_LE(testing::widest_line(answer_of(effects, {.width = width}).text), width);
  EXPECT_THAT(answer_of(effects, {.width = 45}).text,
              AllOf(HasSubstr("not shown for lack of width"), HasSubstr("more of them together")));
}

TEST(Effects, LeaveTablesWhole) {
  const Answer answer = answer_of(effects_of(grid(2), "score"), {.width = 10});
  for (TextTable table : answer.tables) {
    table.fit(10);
    EXPECT_THAT(answer.text, HasSubstr(formatted_table(table, {}))) << "though it is too wide";
  }
}

TEST(Effects, OfEqualValuesAreNone) {
  for (const double value : {0.1, 0.098, 0.7}) {
    std::vector<RunRecord> runs = grid(2);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      runs[i].metrics["score"] = value;
      runs[i].metrics["other"] = static_cast<double>(i);  // so that settings change something
    }
    const Effects effects = effects_of(runs, "score");
    EXPECT_EQ(effects.mean, value);
    EXPECT_EQ(effects.error_sum_squares, 0);
    for (const Effect& effect : effects.effects) {
      EXPECT_EQ(effect.share, 0) << value;
      EXPECT_FALSE(effect.p) << value;
    }
  }
}

TEST(Effects, AreTestedAgainstHigherInteractionsWithoutRepeats) {
  const Effects effects = effects_of(grid(1), "score");
  EXPECT_EQ(effects.error, EffectError::kInteractions);
  EXPECT_EQ(effects.error_degrees, 2u);
  EXPECT_NEAR(effects.error_sum_squares, 1.15137068391, 1e-9);
  EXPECT_NEAR(effects.effects[0].p.value(), 0.0518031124554, 1e-9);
  EXPECT_NEAR(effects.effects[3].f.value(), 0.606941572343, 1e-9);
}

TEST(Effects, OfTwoSettingsWithoutRepeatsAreTestedAgainstTheirInteraction) {
  std::vector<RunRecord> runs = grid(1);
  std::erase_if(runs, [](const RunRecord& run) { return run.params[2].second == ParamValue("v"); });
  const Effects effects = effects_of(runs, "score");
  ASSERT_EQ(effects.effects.size(), 2u);
  EXPECT_NEAR(effects.effects[0].p.value(), 0.148087889861, 1e-9);
  EXPECT_NEAR(effects.effects[1].f.value(), 0.0633050715029, 1e-9);
  EXPECT_NEAR(effects.error_sum_squares, 1.06312910351, 1e-9);
}

TEST(Effects, OfASingleSettingWithoutRepeatsHaveNoTest) {
  std::vector<RunRecord> runs = grid(1);
  std::erase_if(runs, [](const RunRecord& run) {
    return run.params[2].second == ParamValue("v") || run.params[1].second == ParamValue("q");
  });
  const Effects effects = effects_of(runs, "score");
  ASSERT_EQ(effects.effects.size(), 1u);
  EXPECT_EQ(effects.error, EffectError::kNone);
  EXPECT_FALSE(effects.effects[0].p);
  EXPECT_FALSE(effects.effects[0].levels[0].metric.interval);
  EXPECT_NEAR(effects.effects[0].share, 1, 1e-12);
  const auto tables = answer_of(effects, {TableFormat::kCsv, true}).tables;
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_THAT(tables[0].rows[0], ElementsAre("a", _, _, "", "")) << "no sign for what is not known";
  EXPECT_NEAR(std::stod(tables[0].rows[0][2]), 1, 1e-12) << "a number, not \"100.0%\"";
}

TEST(Effects, OfASettingThatChangesNothingAreZeroInSpiteOfRounding) {
  std::vector<RunRecord> runs;
  for (const double lr : {0.1, 0.01, 0.001})
    for (const std::int64_t workers : {0, 1, 2})
      runs.push_back(measured({{"lr", lr}, {"num_workers", workers}}, "test_accuracy", 0.1 + lr / 3));
  const Effects effects = effects_of(runs, "test_accuracy");
  EXPECT_EQ(effects.effects[1].sum_squares, 0);
  EXPECT_EQ(answer_of(effects, {TableFormat::kJson, false}).json["effects"][1]["best"], nullptr);
  EXPECT_EQ(answer_of(effects, {TableFormat::kJson, false}).json["effects"][0]["best"], "0.1");
  EXPECT_FALSE(effects.effects[0].p) << "there is no error to test against";
}

TEST(Effects, AreNotRoundedByARunThatDiverged) {
  std::vector<RunRecord> runs;
  for (const auto& [lr, r2] : {std::pair(10.0, -1e20), {0.1, 0.85}, {0.01, 0.9}})
    runs.push_back(measured({{"lr", lr}}, "r2", r2));
  const Effect effect = effects_of(runs, "r2").effects.at(0);
  EXPECT_EQ(effect.levels[0].metric.mean, -1e20);
  EXPECT_NEAR(effect.levels[1].metric.mean, 0.85, 1e-12);
  EXPECT_EQ(effect.levels[effect.best].value, "0.01");
}

TEST(Effects, CountRunsThatDifferOnlyInWhatChangesNoBitOnce) {
  const Effects once = effects_of(grid(2), "score");
  for (const auto& [key, values] :
       {std::pair<std::string, std::vector<std::string>>{"num_workers", {"0", "4"}},
        {"device", {"cuda:0", "cuda:1"}}}) {
    std::vector<RunRecord> runs;
    for (const RunRecord& run : grid(2)) {
      for (const std::string& value : values) {
        runs.push_back(run);
        runs.back().params.emplace_back(key, value);
        runs.back().epochs[0].set("epoch_seconds", value == values[0] ? 1 : 2);
        runs.back().run_seconds = value == values[0] ? 1 : 2;
      }
    }
    const Effects effects = effects_of(runs, "score");
    EXPECT_EQ(effects.repeats, 2u);
    EXPECT_EQ(effects.combinations, 12u);
    EXPECT_EQ(effects.error_degrees, once.error_degrees);
    EXPECT_THAT(effects.left_out, IsEmpty());
    ASSERT_EQ(effects.effects.size(), 7u);
    EXPECT_EQ(effects.effects[0].p, once.effects[0].p);
    EXPECT_EQ(effects.effects[0].f, once.effects[0].f);
    EXPECT_THAT(effects.effects[3].keys, ElementsAre(key));
    EXPECT_EQ(effects.effects[3].sum_squares, 0);
    EXPECT_FALSE(effects.effects[3].p);
    EXPECT_EQ(effects.effects[3].levels[1].metric.count, 24u);
    EXPECT_THAT(answer_of(effects, {TableFormat::kText, false}).text, HasSubstr("any"));
    for (const FrontRun& run : effects.front) EXPECT_EQ(run.settings.back().second, values[0]);
    EXPECT_EQ(effects_of(runs, "epoch_seconds").combinations, 24u) << "it changes the time";
  }
}

TEST(Effects, SayWhatTheyLack) {
  const auto message = [](const std::vector<RunRecord>& runs, const char* metric = "score") {
    return message_of<ConfigError>([&] { effects_of(runs, metric); });
  };
  std::vector<RunRecord> gap = grid(2), other = grid(2), no_number = grid(2), search;
  gap[3].status = gap[2].status = RunStatus::kFailed;
  EXPECT_THAT(message(gap), AllOf(HasSubstr("each of the 12 combinations, but 1 has none: a=x,b=p,c=v"),
                                  Not(HasSubstr("…"))));
  EXPECT_THAT(message(gap, "speed"),
              AllOf(HasSubstr("no finite speed"), HasSubstr("score"), HasSubstr("epoch_seconds")));
  other[0].params.erase(other[0].params.begin());
  EXPECT_THAT(message(other), HasSubstr("but some have no a"));
  no_number[0].metrics["score"] = std::nan("");
  EXPECT_THAT(message(no_number), HasSubstr("has no finite score"));
  EXPECT_THAT(message({}), HasSubstr("no run is completed"));
  EXPECT_THAT(message({grid(1)[0]}), HasSubstr("no setting has two values"));
  for (int i = 0; i < 3000; ++i) {
    Params params;
    for (const char* key : {"a", "b", "c", "d", "e", "f"}) params.emplace_back(key, std::sin(i) + i);
    search.push_back(testing::made_run(std::move(params), "cpu", 1, {1.0 / (i + 1)}).record);
  }
  EXPECT_THAT(message(search, "loss"), HasSubstr("each of the 7.29e+20 combinations"))
      << "without a walk over all points";
}

// Accuracies of a small test set are often the same.
TEST(Effects, RepeatsWithTheSameNumbersAllCount) {
  std::vector<RunRecord> runs;
  for (const auto& [x, repeat, loss] :
       {std::tuple(1, 0, 0.1), std::tuple(1, 1, 0.9), std::tuple(2, 0, 0.3), std::tuple(2, 1, 0.3)})
    runs.push_back(
        testing::made_run({{"x", std::int64_t{x}}, {"repeat", std::int64_t{repeat}}}, "cpu", 1, {loss})
            .record);
  const Effects effects = effects_of(runs, "loss");
  EXPECT_EQ(effects.repeats, 2u);
  EXPECT_DOUBLE_EQ(effects.mean, 0.4);
  EXPECT_THAT(effects.left_out, IsEmpty());
}

TEST(Effects, LeaveOutRepeatsThatOtherCombinationsDoNotHave) {
  std::vector<RunRecord> runs = grid(2);
  runs[3].status = RunStatus::kFailed;
  const Effects effects = effects_of(runs, "score");
  EXPECT_EQ(effects.repeats, 1u);
  EXPECT_EQ(effects.left_out.size(), 11u);
  EXPECT_THAT(answer_of(effects, {}).text, EndsWith(" and 8 more\n"));
}

TEST(Effects, TheFrontHasWhatNoOtherRunBeatsInBothTimeAndMetric) {
  std::vector<RunRecord> runs;
  const std::pair<double, double> time_and_accuracy[] = {{5, 0.9}, {3, 0.8}, {4, 0.7}, {3, 0.85}, {9, 0.9}};
  double lr = 0;
  for (const auto& [time, accuracy] : time_and_accuracy) {
    runs.push_back(measured({{"lr", lr += 0.1}}, "test_accuracy", accuracy));
    runs.back().run_seconds = time;
  }
  const Effects effects = effects_of(runs, "test_accuracy");
  ASSERT_EQ(effects.front.size(), 2u);
  EXPECT_EQ(effects.front[0].metric, 0.85);
  EXPECT_EQ(effects.front[1].run_seconds, 5);
  EXPECT_EQ(effects.effects[0].levels[effects.effects[0].best].value, "0.1");
  EXPECT_THAT(effects_of(runs, "run_seconds").front, IsEmpty());
  EXPECT_THAT(answer_of(effects, {TableFormat::kText, false}).text,
              AllOf(HasSubstr("90.00%"), HasSubstr("nothing to test"), Not(HasSubstr("not shown"))));
  EXPECT_THAT(answer_of(effects, {.width = 24}).text,
              AllOf(HasSubstr("90.00%"), HasSubstr("  not shown for lack of")));
}

}  // namespace sweep::effects_test

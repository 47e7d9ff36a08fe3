// The key "search", and axes that are ranges.

#include "tests/support/sweep_folder.h"

namespace sweep::search_file_test {

// With a validation set, which the default metric needs.
std::string searching(const std::string& search, const std::string& more) {
  return R"({"dataset": {"name": "fashion-mnist", "validation": 1000}, "network": "net.json", "epochs": 9,)"
         "\n\"search\": " +
         search + ",\n" + more + "}";
}

constexpr const char* kRates = R"("params": {"lr": {"log_uniform": [0.0001, 0.1]}, "batch_size": [10, 100]})";

using SearchFile = testing::InSweepFolder;

TEST_F(SearchFile, DrawsPointsWithinTheirRanges) {
  const Sweep sweep = folder.load(
      searching(R"({"method": "random", "trials": 60, "seed": 4})",
                R"("params": {"lr": {"log_uniform": [0.001, 0.1]}, "batch_size": {"int_uniform": [16, 64]},
                    "optimizer": ["sgd", "adam"]})"));
  ASSERT_THAT(sweep.runs, SizeIs(60));
  EXPECT_THAT(sweep.keys, ElementsAre("lr", "batch_size", "optimizer"));
  std::set<std::string> names;
  int low = 0;
  for (const RunConfig& run : sweep.runs) {
    EXPECT_GE(run.lr, 0.001);
    EXPECT_LE(run.lr, 0.1);
    low += run.lr < 0.01;
    EXPECT_GE(run.batch_size, 16U);
    EXPECT_LE(run.batch_size, 64U);
    EXPECT_EQ(std::get<double>(*find_param(run.params, "lr")), run.lr);
    EXPECT_EQ(std::get<std::int64_t>(*find_param(run.params, "batch_size")),
              static_cast<std::int64_t>(run.batch_size));
    EXPECT_EQ(std::holds_alternative<AdamOptions>(run.optimizer),
              param_text(run.params, "optimizer") == "adam");
    EXPECT_LT(run.name.size(), 45U) << run.name;
    EXPECT_TRUE(names.insert(run.name).second);
  }
  EXPECT_GT(low, 15);
  EXPECT_LT(low, 45);
}

TEST_F(SearchFile, TheSameSeedDrawsTheSamePointsAndMoreTrialsBeginWithThem) {
  const auto names = [&](const std::string& search) {
    std::vector<std::string> list;
    for (const RunConfig& run : folder.load(searching(search, kRates)).runs) list.push_back(run.name);
    return list;
  };
  const auto ten = names(R"({"method": "random", "trials": 10, "seed": 7})");
  auto twenty = names(R"({"method": "random", "trials": 20, "seed": 7})");
  twenty.resize(10);
  EXPECT_EQ(ten, twenty);
  EXPECT_NE(ten, names(R"({"method": "random", "trials": 10, "seed": 8})"));
}

TEST_F(SearchFile, RepeatsEachRandomPoint) {
  const Sweep sweep = folder.load(searching(R"({"method": "random", "trials": 2})",
                                            R"("repeats": 2, "params": {"lr": {"uniform": [0.1, 1]}})"));
  ASSERT_THAT(sweep.runs, SizeIs(4));
  EXPECT_THAT(sweep.keys, ElementsAre("lr", "repeat"));
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(sweep.runs[i].index, i);
    EXPECT_EQ(sweep.runs[i].repeat, i % 2);
    EXPECT_EQ(sweep.runs[i].lr, sweep.runs[i / 2 * 2].lr);
    EXPECT_EQ(param_text(sweep.runs[i].params, "repeat"), std::to_string(i % 2));
  }
  EXPECT_NE(sweep.runs[0].lr, sweep.runs[2].lr);
}

TEST_F(SearchFile, HalvingWithoutTrialsHasEveryCombination) {
  const Sweep sweep = folder.load(
      searching(R"({"method": "halving"})", R"("params": {"lr": [0.1, 0.2, 0.3], "batch_size": [10, 100]})"));
  EXPECT_THAT(sweep.runs, SizeIs(6));
  EXPECT_EQ(sweep.runs[0].name, "lr=0.1,batch_size=10");
  ASSERT_TRUE(sweep.search);
  EXPECT_EQ(sweep.search->method, SearchMethod::kHalving);
  EXPECT_FALSE(sweep.trials);
}

TEST_F(SearchFile, TpeBeginsWithTheTrialsThatNeedNoResults) {
  const Sweep sweep = folder.load(searching(R"({"method": "tpe", "trials": 30, "at_once": 3})", kRates));
  EXPECT_THAT(sweep.runs, SizeIs(3));
  ASSERT_TRUE(sweep.trials);
  EXPECT_THAT(sweep.trials->points, SizeIs(3));
  const RunConfig next = sweep.trials->make_run(3, {0.05, 1.0});
  EXPECT_EQ(next.name, "lr=0.05,batch_size=100");
  EXPECT_EQ(next.batch_size, 100U);
  EXPECT_EQ(next.index, 3U);
  EXPECT_EQ(next.resolved.at("lr"), 0.05);
}

TEST_F(SearchFile, BeginsWithThePointsThatItIsGiven) {
  const Sweep sweep = folder.load(searching(R"({"method": "random", "trials": 4,
                    "points": [{"lr": 0.0123456, "batch_size": 100}, {"batch_size": 10}]})",
                                            kRates));
  ASSERT_THAT(sweep.runs, SizeIs(4));
  EXPECT_EQ(sweep.runs[0].name, "lr=0.0123456,batch_size=100");
  EXPECT_EQ(sweep.runs[0].lr, 0.0123456);
  EXPECT_EQ(sweep.runs[1].batch_size, 10U);
  EXPECT_GE(sweep.runs[1].lr, 0.0001);
}

std::string learning(const std::string& source) {
  return searching(R"({"method": "tpe", "trials": 9, "learn_from": [)" + source + "]}", kRates);
}

// Which runs of another sweep count, with which values, and that the sweep keeps them.
TEST_F(SearchFile, LearnsFromCompletedRunsThatLieInItsSpace) {
  const auto run = [](const std::string& params, const std::string& status, double loss) {
    return R"({"name": "r", "status": ")" + status + R"(", "params": )" + params +
           R"(, "epochs": [{"epoch": 1, "validation_loss": 9}, {"epoch": 2, "validation_loss": )" +
           std::to_string(loss) + "}]}";
  };
  std::filesystem::create_directories(folder.path() / "runs/old");
  folder.write("runs/old/results.json", R"({"sweep": "old", "runs": [)" +
                                            run(R"({"lr": 0.01, "batch_size": 10})", "completed", 0.5) + "," +
                                            run(R"({"lr": 0.02, "seed": 7})", "completed", 0.25) + "," +
                                            run(R"({"lr": 0.01, "batch_size": 100})", "failed", 0.1) + "," +
                                            run(R"({"lr": 0.01, "batch_size": 50})", "completed", 0.1) + "," +
                                            run(R"({"lr": 0.5, "batch_size": 10})", "completed", 0.1) + "," +
                                            run(R"({"lr": 0.01, "optimizer": "adam"})", "completed", 0.1) +
                                            "," + run(R"({"optimizer": "sgd"})", "completed", 0.1) + "]}");
  const auto check = [](const Sweep& sweep) {
    ASSERT_THAT(sweep.search->learned, SizeIs(2));
    EXPECT_EQ(sweep.search->learned[0].point, (SearchPoint{0.01, 0.0}));
    EXPECT_EQ(sweep.search->learned[0].value, 0.5);
    EXPECT_EQ(sweep.search->learned[1].point, (SearchPoint{0.02, std::nullopt}));
    EXPECT_EQ(sweep.search->learned[1].value, 0.25);
  };
  const Sweep sweep = folder.load(learning("\"runs/old\""));
  check(sweep);
  std::filesystem::remove_all(folder.path() / "runs");
  check(folder.load(sweep.resolved.dump()));
}

// Results name an object by its JSON, and a run that kept its best epoch counts with that one.
TEST_F(SearchFile, LearnsFromRunsWithObjectsAndFromBestEpochs) {
  std::filesystem::create_directories(folder.path() / "runs/old");
  folder.write("runs/old/results.json", R"({"runs": [
    {"status": "completed", "params": {"optimizer": "{\"name\":\"sgd\",\"momentum\":0.9}", "loss": "{\"name\":\"mse\"}"},
     "best_epoch": 2, "epochs": [{"validation_loss": 3}, {"validation_loss": 1}, {"validation_loss": 2}]},
    {"status": "completed", "params": {"optimizer": "adam"}, "epochs": [{"validation_loss": 1}, {"validation_loss": 2}]},
    {"status": "completed", "params": {"optimizer": "{\"name\":\"sgd\"}"}, "epochs": [{"validation_loss": 1}]}]})");
  const Sweep sweep = folder.load(searching(
      R"({"method": "tpe", "trials": 9, "learn_from": ["runs/old"]})",
      R"("loss": {"name": "mse"}, "params": {"optimizer": ["adam", {"name": "sgd", "momentum": 0.9}]})"));
  ASSERT_THAT(sweep.search->learned, SizeIs(2));
  EXPECT_EQ(sweep.search->learned[0].point, SearchPoint{1.0});
  EXPECT_EQ(sweep.search->learned[0].value, 1);
  EXPECT_EQ(sweep.search->learned[1].value, 2);
}

TEST_F(SearchFile, ALargerMetricThatIsBestIsLearnedAsSuch) {
  const Sweep sweep = folder.load(searching(
      R"({"method": "tpe", "trials": 9, "metric": "Accuracy/validation",
          "learn_from": [{"params": {"lr": 0.01}, "value": 0.9}]})",
      kRates));
  ASSERT_THAT(sweep.search->learned, SizeIs(1));
  EXPECT_EQ(sweep.search->learned[0].value, -0.9);
}

TEST_F(SearchFile, MayHaveSeveralGoals) {
  const auto goals_of = [&](const std::string& goals) {
    const Sweep sweep = folder.load(searching(R"({"method": "tpe", "trials": 9, )" + goals + "}", kRates));
    std::string text;
    for (const Goal& goal : sweep.search->goals)
      text += (text.empty() ? "" : ", ") + goal.asked + (goal.largest_is_best ? " max" : " min");
    return text;
  };
  EXPECT_EQ(goals_of(R"("metric": ["Accuracy/validation", "Duration/epoch_seconds", "parameters"])"),
            "Accuracy/validation max, Duration/epoch_seconds min, parameters min");
  EXPECT_EQ(goals_of(R"("metric": ["Loss/train", "Loss/validation"], "mode": ["max", "min"])"),
            "Loss/train max, Loss/validation min");
  EXPECT_EQ(goals_of(R"("metric": "Loss/train", "mode": "max")"), "Loss/train max");
}

TEST_F(SearchFile, WithTheSamplerTpeResultsChooseTheLaterTrialsOfRungs) {
  for (const char* method : {"halving", "hyperband", "asha"}) {
    const std::string start = R"({"method": ")" + std::string(method) + R"(", "trials": 30)";
    EXPECT_THAT(folder.load(searching(start + "}", kRates)).runs, SizeIs(30)) << method;
    const Sweep sweep = folder.load(searching(start + R"(, "sampler": "tpe", "at_once": 3})", kRates));
    EXPECT_THAT(sweep.runs, SizeIs(3)) << method;
    EXPECT_EQ(total_trials(*sweep.search, 9), 30U) << method;
  }
}

TEST_F(SearchFile, AGridWithNothingElseIsNoSearch) {
  EXPECT_FALSE(folder.load(searching(R"({"method": "grid"})", R"("params": {"lr": [0.1]})")).search);
  EXPECT_TRUE(
      folder.load(searching(R"({"method": "grid", "target": 0.1})", R"("params": {"lr": [0.1]})")).search);
}

TEST_F(SearchFile, IsOverriddenOnTheCommandLine) {
  const std::string file = searching(R"({"method": "random", "trials": 5})", kRates);
  EXPECT_THAT(folder.load(file, {R"(lr={"uniform":[0.2,0.3]})"}).runs[0].lr, AllOf(Ge(0.2), Le(0.3)));
}

TEST_F(SearchFile, ATrialWithoutAKeyKnowsTheValueInForce) {
  const Sweep sweep = folder.load(SweepFolder::with(
      R"("search": {"method": "random", "trials": 20, "metric": "Loss/train"},
         "params": {"optimizer": ["adam", "sgd"], "momentum": {"uniform": [0.1, 1]}, "batch_size": {"int_uniform": [2, 9]}},
         "when": {"momentum": {"optimizer": "sgd"}, "batch_size": {"optimizer": "adam"}})"));
  for (const RunConfig& run : sweep.runs) {
    if (std::holds_alternative<AdamOptions>(run.optimizer))
      EXPECT_THAT(run.not_swept, ElementsAre(Pair("momentum", ParamValue(0.0))));
    else
      EXPECT_THAT(run.not_swept, ElementsAre(Pair("batch_size", ParamValue(std::int64_t{100}))));
  }
}

}  // namespace sweep::search_file_test

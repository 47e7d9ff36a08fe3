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

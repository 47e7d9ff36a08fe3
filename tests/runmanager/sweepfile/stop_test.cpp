// The keys "evaluate_first", "stop" and "checkpoint".
#include <gtest/gtest.h>

#include <utility>

#include "core/base/error.h"
#include "runmanager/config/data_check.h"
#include "tests/support/sweep_folder.h"

namespace sweep {
namespace {

using testing::SweepFolder;

// Its sizes are known only when a test says them.
std::string on_own_data(const std::string& keys) {
  return R"({"dataset": {"name": "mine", "path": "d"}, "network": "net.json",)" + ("\n" + keys + "}");
}

TEST(Stop, BadValuesAreNamedWithWhatIsAllowed) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("evaluate_first": 1)", "s.json:2:19: evaluate_first: got 1, want true or false"},
      {R"("stop": 3)",
       "s.json:2:9: stop: got 3, want an object with any of: metric, mode, patience, min_delta, "
       "restore_best"},
      {R"("stop": null)",
       "s.json:2:9: stop: got null, want an object with any of: metric, mode, patience, min_delta, "
       "restore_best"},
      {R"("stop": {"patiense": 3})",
       "s.json:2:10: stop.patiense: unknown key \"patiense\", allowed: metric, mode, patience, min_delta, "
       "restore_best, did you mean \"patience\"?"},
      {R"("stop": {"patience": 0})", "s.json:2:22: stop.patience: got 0, want an integer >= 1"},
      {R"("stop": {"patience": 1.5})", "s.json:2:22: stop.patience: got 1.5, want an integer >= 1"},
      {R"("stop": {"patience": 1e30})",
       "s.json:2:22: stop.patience: got 1e30, want an integer >= 1 and <= 1000000000"},
      {R"("stop": {"min_delta": -0.1})", "s.json:2:23: stop.min_delta: got -0.1, want a number >= 0"},
      {R"("stop": {"mode": "maximum"})", "s.json:2:18: stop.mode: got \"maximum\", want min or max"},
      {R"("stop": {"restore_best": "yes"})",
       "s.json:2:26: stop.restore_best: got \"yes\", want true or false without quotes"},
      {R"("params": {"stop.patience": [1, -1]})",
       "s.json:2:33: params.stop.patience.1: got -1, want an integer >= 1"},
      {R"("checkpoint": "bets")",
       "s.json:2:15: checkpoint: got \"bets\", want last or best, did you mean \"best\"?"},
  };
  const SweepFolder folder;
  for (const auto& [keys, message] : cases) EXPECT_EQ(folder.error(SweepFolder::with(keys)), message);
}

TEST(Stop, ItsMetricIsOneOfAnEpochsAndTheNearestIsNamed) {
  const SweepFolder folder;
  EXPECT_EQ(folder.error(SweepFolder::with(R"("stop": {"metric": "loss/validation"})")),
            "s.json:2:20: stop.metric: got \"loss/validation\", want Loss/train, Accuracy/train, Number "
            "Correct/train, Top-5 Accuracy/train, MAE/train, RMSE/train, R2/train, Loss/validation, "
            "Accuracy/validation, Number Correct/validation, Top-5 Accuracy/validation, MAE/validation, "
            "RMSE/validation or R2/validation, did you mean \"Loss/validation\"?");
}

TEST(Stop, OneThatTheDataCannotGiveIsFoundBeforeTraining) {
  const SweepFolder folder;
  const auto error = [&folder](const std::string& keys, const DataSizes& sizes) -> std::string {
    const Sweep sweep = folder.load(on_own_data(keys));
    try {
      check_against_data(sweep, [&sizes](const DatasetSpec&) { return sizes; });
      return "";
    } catch (const ConfigError& wrong) {
      return folder.without_folder(wrong.what());
    }
  };
  const DataSizes validated{.shape = {1, 28, 28}, .classes = 10, .train = 500, .validation = 50},
      alone{.shape = {1, 28, 28}, .classes = 10, .train = 500};
  EXPECT_EQ(error(R"("stop": {}, "evaluate_first": true)", validated), "");
  EXPECT_EQ(error(R"("stop": {"metric": "Loss/train"}, "checkpoint": "best")", alone), "");
  EXPECT_EQ(error(R"("stop": {})", alone),
            "s.json:2:9: stop: got \"Loss/validation\" (the default metric), which needs a validation set "
            "(dataset.validation), want Loss/train, Accuracy/train or Number Correct/train");
  EXPECT_EQ(error(R"("stop": {"metric": "Top-5 Accuracy/train"})", alone),
            "s.json:2:20: stop.metric: got \"Top-5 Accuracy/train\", which is not measured for such targets, "
            "want Loss/train, Accuracy/train or Number Correct/train");
  EXPECT_EQ(error(R"("evaluate_first": true)", alone),
            "s.json:2:19: evaluate_first: there is no validation set to measure before training, want "
            "dataset.validation, or false");
}

TEST(Stop, ItsModeFollowsFromItsMetric) {
  const SweepFolder folder;
  const auto stop = [&folder](const std::string& object) {
    return folder.load(on_own_data("\"stop\": " + object)).runs.at(0).stop.value();
  };
  EXPECT_FALSE(stop("{}").largest_is_best);
  EXPECT_EQ(stop("{}").metric, "Loss/validation");
  EXPECT_EQ(stop("{}").patience, 3);
  EXPECT_TRUE(stop(R"({"metric": "Accuracy/validation"})").largest_is_best);
  EXPECT_TRUE(stop(R"({"metric": "R2/train"})").largest_is_best);
  EXPECT_FALSE(stop(R"({"metric": "Accuracy/validation", "mode": "min"})").largest_is_best);
  const Sweep sweep = folder.load(on_own_data(R"("params": {"stop.patience": [1, 2]})"));
  EXPECT_EQ(testing::names_of(sweep), (std::vector<std::string>{"stop.patience=1", "stop.patience=2"}));
  EXPECT_EQ(sweep.runs[1].resolved["stop"]["patience"], 2);
  EXPECT_EQ(sweep.runs[1].resolved["stop"]["mode"], "min");
  EXPECT_FALSE(folder.load(on_own_data("\"seed\": 1")).runs[0].resolved.contains("stop"));
}

}  // namespace
}  // namespace sweep

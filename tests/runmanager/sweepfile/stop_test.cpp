// The keys "evaluate_first", "stop" and "checkpoint".

#include "runmanager/config/data_check.h"
#include "tests/support/sweep_folder.h"

#include "tests/support/test.h"

namespace sweep::stop_test {

using testing::SweepFolder;

// Its sizes are known only when a test says them.
std::string on_own_data(const std::string& keys) {
  return R"({"dataset": {"name": "mine", "path": "d"}, "network": "net.json",)" + ("\n" + keys + "}");
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
  EXPECT_EQ(error(R"("stop": {"metric": "Top-5 Accuracy/train"},
                      "params": {"network.layers.out.out_features": [12]})",
                  alone),
            "")
      << "the engine counts them where the network has many outputs, however many classes there are";
  EXPECT_EQ(error(R"("evaluate_first": true)", alone),
            "s.json:2:19: evaluate_first: there is no validation set to measure before training, want "
            "dataset.validation, or false");
}

TEST(Stop, ItsModeFollowsFromItsMetric) {
  const SweepFolder folder;
  const auto stop = [&folder](const std::string& object) {
    return folder.load(on_own_data("\"stop\": " + object)).runs.at(0).stop.value();
  };
  EXPECT_FALSE(stop("{}").goal.largest_is_best);
  EXPECT_EQ(stop("{}").goal.asked, "Loss/validation");
  EXPECT_EQ(stop("{}").patience, 3);
  EXPECT_TRUE(stop(R"({"metric": "Accuracy/validation"})").goal.largest_is_best);
  EXPECT_TRUE(stop(R"({"metric": "R2/train"})").goal.largest_is_best);
  EXPECT_FALSE(stop(R"({"metric": "Accuracy/validation", "mode": "min"})").goal.largest_is_best);
  const Sweep sweep = folder.load(on_own_data(R"("params": {"stop.patience": [1, 2]})"));
  EXPECT_EQ(testing::names_of(sweep), (std::vector<std::string>{"stop.patience=1", "stop.patience=2"}));
  EXPECT_EQ(sweep.runs[1].resolved["stop"]["patience"], 2);
  EXPECT_EQ(sweep.runs[1].resolved["stop"]["mode"], "min");
  EXPECT_FALSE(folder.load(on_own_data("\"seed\": 1")).runs[0].resolved.contains("stop"));
}

}  // namespace sweep::stop_test

// Which runs the axes of a sweep file give, in which order, and what rules leave out.

#include "core/base/file.h"
#include "tests/support/reference_data.h"
#include "tests/support/sweep_folder.h"

namespace sweep::axes_test {

using Axes = testing::InSweepFolder;

TEST_F(Axes, TheLastKeyVariesFastest) {
  const Sweep sweep = folder.load(SweepFolder::with(
      R"("params": {"lr": [0.01, 0.001], "batch_size": [100, 1000], "shuffle": [true, false]})"));
  EXPECT_THAT(sweep.keys, ElementsAre("lr", "batch_size", "shuffle"));
  // itertools.product([0.01, 0.001], [100, 1000], [True, False])
  EXPECT_THAT(names_of(sweep),
              ElementsAre("lr=0.01,batch_size=100,shuffle=true", "lr=0.01,batch_size=100,shuffle=false",
                          "lr=0.01,batch_size=1000,shuffle=true", "lr=0.01,batch_size=1000,shuffle=false",
                          "lr=0.001,batch_size=100,shuffle=true", "lr=0.001,batch_size=100,shuffle=false",
                          "lr=0.001,batch_size=1000,shuffle=true", "lr=0.001,batch_size=1000,shuffle=false"));
  EXPECT_EQ(sweep.runs[6].lr, 0.001);
  EXPECT_EQ(sweep.runs[6].batch_size, 1000u);
  EXPECT_TRUE(sweep.runs[6].shuffle);
  EXPECT_EQ(sweep.runs[6].index, 6u);
}

// A row of axes.json: settings of a sweep file and overrides, and the "names" of the runs, their number, and
// the "keys", or a part of the message that it "has".
TEST_F(Axes, HaveTheseRuns) {
  for (const auto& row : nlohmann::json::parse(read_file(test::reference_path("axes.json")))) {
    SCOPED_TRACE(row);
    const std::string file = SweepFolder::with(row.at("settings"));
    if (row.contains("has")) {
      EXPECT_THAT(folder.error(file), HasSubstr(row.at("has").get<std::string>()));
      continue;
    }
    const Sweep sweep = folder.load(file, row.value("overrides", std::vector<std::string>()));
    EXPECT_EQ(names_of(sweep), row.value("names", names_of(sweep)));
    EXPECT_EQ(sweep.keys, row.value("keys", sweep.keys));
    EXPECT_EQ(sweep.runs.size(), row.value("runs", sweep.runs.size()));
  }
}

TEST_F(Axes, AnyKeyOfTheFileCanBeAnAxis) {
  folder.write("other.json",
               R"({"layers": [{"type": "flatten"}, {"name": "fc1", "type": "linear", "out_features": 10}]})");
  const Sweep sweep = folder.load(SweepFolder::with(
      R"("params": {"epochs": [2, 3], "dataset.validation": [0.1, 500], "network": ["net.json", "other.json"],
          "network.layers.fc1.out_features": [20], "network.layers.1.bias": [false], "log.images": [5],
          "optimizer": ["sgd", {"name": "adam", "eps": 1e-3}], "weight_decay": [0.5]})"));
  ASSERT_EQ(sweep.runs.size(), 16u);
  const RunConfig& last = sweep.runs.back();
  EXPECT_EQ(last.epochs, 3);
  EXPECT_EQ(std::get<std::size_t>(last.dataset.validation), 500u);
  EXPECT_EQ(last.network->name, "other");
  EXPECT_EQ(last.network->layers.size(), 2u);
  EXPECT_EQ(std::get<std::int64_t>(last.network->layers[1].arguments.at("out_features")), 20);
  EXPECT_EQ(std::get<bool>(last.network->layers[1].arguments.at("bias")), false);
  EXPECT_EQ(last.log.images, 5);
  const auto adam = std::get<AdamOptions>(last.optimizer);
  EXPECT_EQ(adam.eps, 1e-3);
  EXPECT_EQ(adam.weight_decay, 0.5);  // Set into the optimizer that the axis before it chose.
  EXPECT_EQ(std::get<double>(sweep.runs[0].dataset.validation), 0.1);
  EXPECT_EQ(sweep.runs[0].network->layers.size(), 4u);
}

TEST_F(Axes, LossAndClippingCanBeAxes) {
  const Sweep losses = folder.load(SweepFolder::with(
      R"("params": {"loss": ["cross_entropy", "mse"], "loss.label_smoothing": [0, 0.1], "clip_norm": [1, 0.5]},
         "when": {"loss.label_smoothing": {"loss": "cross_entropy"}})"));
  ASSERT_EQ(losses.runs.size(), 6u);
  EXPECT_EQ(losses.runs[2].loss.label_smoothing, 0.1);
  EXPECT_EQ(losses.runs[3].clip_norm, 0.5);
  EXPECT_EQ(losses.runs[5].loss.kind, LossOptions::Kind::kMse);
  EXPECT_EQ(losses.runs[5].name, "loss=mse,clip_norm=0.5");
  EXPECT_EQ(losses.runs[0].params[1].second, ParamValue(0.0));
  EXPECT_EQ(losses.runs[5].resolved["loss"], (nlohmann::ordered_json{{"name", "mse"}}));
  EXPECT_EQ(losses.runs[2].resolved["loss"]["label_smoothing"], 0.1);
  const std::string plain = SweepFolder::with(R"("epochs": 1)");
  EXPECT_EQ(folder.load(plain, {"loss.label_smoothing=0.25"}).runs[0].loss.label_smoothing, 0.25);
  EXPECT_FALSE(folder.load(plain).runs[0].resolved.contains("clip_norm"));
  EXPECT_EQ(folder.load(plain, {"clip_norm=3"}).runs[0].resolved["clip_norm"], 3.0);
  const Sweep switched = folder.load(plain, {"clip_norm=0,0.5"});
  EXPECT_EQ(switched.runs[0].name, "clip_norm=0");
  EXPECT_EQ(switched.runs[0].clip_norm, 0);
  EXPECT_FALSE(switched.runs[0].resolved.contains("clip_norm")) << "the same training as without it";
}

TEST_F(Axes, SchedulesAreNamesOrObjectsAndCanBeAxes) {
  const Sweep sweep = folder.load(SweepFolder::with(
      R"("params": {"schedule": ["constant", "cosine", {"name": "step", "step_size": 3}, "one_cycle",
           {"name": "warmup", "total_iters": 2, "then": "cosine"}], "schedule.eta_min": [0, 1e-3]},
         "when": {"schedule.eta_min": {"schedule": "cosine"}})"));
  ASSERT_EQ(sweep.runs.size(), 6u);
  EXPECT_EQ(sweep.runs[1].name, "schedule=cosine,schedule.eta_min=0");
  EXPECT_EQ(std::get<CosineSchedule>(sweep.runs[2].schedule).eta_min, 1e-3);
  EXPECT_EQ(sweep.runs[2].params[1].second, ParamValue(1e-3));
  EXPECT_EQ(std::get<StepSchedule>(sweep.runs[3].schedule).step_size, 3);
  EXPECT_EQ(sweep.runs[4].resolved["schedule"]["anneal_strategy"], "cos");
  EXPECT_EQ(sweep.runs[5].resolved["schedule"]["then"],
            (nlohmann::ordered_json{{"name", "cosine"}, {"eta_min", 0.0}}));
  const std::string warmup = SweepFolder::with(R"("schedule": "warmup")");
  for (const std::vector<std::string>& overrides :
       {std::vector<std::string>{"schedule.then=cosine", "schedule.then.T_max=7"},
        {R"(schedule.then={"name":"cosine","T_max":7})"}}) {
    const auto options = std::get<WarmupSchedule>(folder.load(warmup, overrides).runs[0].schedule);
    EXPECT_EQ(std::get<CosineSchedule>(options.then.value()).t_max, 7);
  }
}

TEST_F(Axes, AKeyHasOneTypeInAllRuns) {
  const Sweep sweep = folder.load(SweepFolder::with(
      R"("params": {"dataset.validation": [0.5, 500], "lr": [1, 2], "epochs": [1], "optimizer": ["sgd", {"name": "adam"}]})"));
  for (const RunConfig& run : sweep.runs) {
    EXPECT_TRUE(std::holds_alternative<double>(run.params[0].second));
    EXPECT_TRUE(
        std::holds_alternative<double>(run.params[1].second));  // A learning rate, whatever it looks like.
    EXPECT_TRUE(std::holds_alternative<std::int64_t>(run.params[2].second));
    EXPECT_TRUE(std::holds_alternative<std::string>(run.params[3].second));
  }
  EXPECT_EQ(std::get<double>(sweep.runs.back().params[0].second), 500.0);
  EXPECT_EQ(std::get<std::string>(sweep.runs.back().params[3].second), R"({"name":"adam"})");
}

TEST_F(Axes, AnArgumentStaysIfItsOptimizerIsALaterAxis) {
  const Sweep sweep =
      folder.load(SweepFolder::with(R"("params": {"optimizer.weight_decay": [0.5], "optimizer": ["adam"]})"));
  EXPECT_EQ(std::get<AdamOptions>(sweep.runs.at(0).optimizer).weight_decay, 0.5);
}

TEST_F(Axes, RangesIncludeBothEnds) {
  const auto values = [&](const std::string& axis) {
    std::vector<double> result;
    for (const RunConfig& run : folder.load(SweepFolder::with("\"params\": {\"lr\": " + axis + "}")).runs)
      result.push_back(run.lr);
    return result;
  };
  EXPECT_THAT(values(R"({"range": [0.1, 0.5, 0.1]})"), ElementsAre(0.1, 0.2, 0.3, 0.4, 0.5));
  EXPECT_THAT(values(R"({"range": [3, 1, -1]})"), ElementsAre(3, 2, 1));
  EXPECT_THAT(values(R"({"range": [1, 2, 0.7]})"), ElementsAre(1, 1.7));
  EXPECT_THAT(values(R"({"linspace": [1, 2, 5]})"), ElementsAre(1, 1.25, 1.5, 1.75, 2));
  EXPECT_THAT(values(R"({"linspace": [1, 2, 1]})"), ElementsAre(1));
  EXPECT_THAT(values(R"({"linspace": [0.1234567890123456, 0.6543210987654321, 2]})"),
              ElementsAre(0.1234567890123456, 0.6543210987654321))
      << "the ends are not rounded";
  EXPECT_THAT(values(R"({"logspace": [1e-4, 0.1, 4]})"), ElementsAre(1e-4, 1e-3, 1e-2, 1e-1));
  // numpy.geomspace(0.001, 0.1, 4) to 12 digits.
  EXPECT_THAT(values(R"({"logspace": [0.001, 0.1, 4]})"),
              ElementsAre(0.001, 0.00464158883361, 0.0215443469003, 0.1));
}

TEST_F(Axes, RangesOfIntegersAreIntegers) {
  const Sweep sweep = folder.load(SweepFolder::with(
      R"("params": {"batch_size": {"logspace": [10, 1000, 3]}, "epochs": {"range": [1, 5, 2]}, "seed": {"linspace": [0, 10, 3]}})"));
  EXPECT_EQ(sweep.runs.size(), 27u);
  EXPECT_EQ(sweep.runs.back().name, "batch_size=1000,epochs=5,seed=10");
  EXPECT_EQ(sweep.runs[13].name, "batch_size=100,epochs=3,seed=5");
}

TEST_F(Axes, ExcludedCombinationsAreLeftOutWithTheReason) {
  const Sweep sweep = folder.load(SweepFolder::with(
      R"("params": {"device": ["cuda", "cpu"], "batch_size": [10, 20, 30]}, "exclude": [{"device": "cpu", "batch_size": [20, 30]}])"));
  EXPECT_THAT(names_of(sweep), ElementsAre("device=cuda,batch_size=10", "device=cuda,batch_size=20",
                                           "device=cuda,batch_size=30", "device=cpu,batch_size=10"));
  ASSERT_EQ(sweep.excluded.size(), 2u);
  EXPECT_EQ(std::get<std::int64_t>(sweep.excluded[0].params[1].second), 20);
  EXPECT_THAT(sweep.excluded[0].reason,
              HasSubstr("s.json:2:80: exclude.0: device is \"cpu\" and batch_size is 20 or 30"));
}

TEST_F(Axes, ARuleMayAskForAListWhereTheKeyTakesLists) {
  const auto names = [&](const std::string& rules) {
    return names_of(folder.load(
        R"({"network": "net.json", "dataset": {"name": "mine", "path": "data"},
            "params": {"dataset.resize": [[32, 32], [64, 64], 16], "seed": [1, 2]}, )" +
        rules + "}"));
  };
  EXPECT_EQ(names(R"("exclude": [{"dataset.resize": [32, 32]}])").size(), 4u);
  EXPECT_EQ(names(R"("exclude": [{"dataset.resize": [[32, 32], 16]}])").size(), 2u);
  EXPECT_EQ(names(R"("when": {"seed": {"dataset.resize": [64, 64]}})").size(), 4u);
  EXPECT_EQ(names(R"("exclude": [{"dataset.resize": [16, 20]}])").size(), 4u);
  const Sweep weights = folder.load(SweepFolder::with(
      R"("params": {"loss.class_weights": [[1, 1, 1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1, 1, 1, 2]]},
         "exclude": [{"loss.class_weights": [1, 1, 1, 1, 1, 1, 1, 1, 1, 2]}])"));
  EXPECT_EQ(weights.runs.size(), 1u);
  EXPECT_THAT(weights.excluded.at(0).reason, HasSubstr("loss.class_weights is [1,1,1,1,1,1,1,1,1,2]"));
}

const auto decimal = [](double number) { return ParamValue(number); };

TEST_F(Axes, ARunWithoutAKeyKnowsTheValueInForce) {
  const Sweep sweep = folder.load(SweepFolder::with(
      R"("params": {"optimizer": ["adam", "sgd"], "momentum": [0.5, 0.9], "nesterov": [true, false], "eps": [1, 2],
                    "batch_size": [7, 9], "seed": [1]},
         "when": {"momentum": {"optimizer": "sgd"}, "nesterov": {"momentum": 0.9}, "eps": {"optimizer": "adam"},
                  "batch_size": {"optimizer": "adam"}})"));
  const RunConfig &adam = sweep.runs.front(), &sgd = sweep.runs.back();
  EXPECT_THAT(adam.not_swept, ElementsAre(Pair("momentum", decimal(0)), Pair("nesterov", ParamValue(false))))
      << "the defaults of an optimizer that it does not use";
  EXPECT_THAT(sgd.not_swept,
              ElementsAre(Pair("eps", decimal(1e-8)), Pair("batch_size", ParamValue(std::int64_t{100}))))
      << "the file's batch size";
  EXPECT_EQ(sgd.name, "optimizer=sgd,momentum=0.9,nesterov=false");
}

TEST_F(Axes, TheCommandLineMayLeaveFewerValuesThanRulesAreFor) {
  const std::string file = SweepFolder::with(
      R"("params": {"lr": {"logspace": [0.001, 0.1, 4]}, "optimizer": ["adam", {"name": "sgd"}], "momentum": [0.5, 0.9]},
         "when": {"momentum": {"optimizer": "sgd"}}, "exclude": [{"lr": [0.1, 0.2]}])");
  EXPECT_EQ(folder.load(file).runs.size(), 9u);
  const Sweep fewer = folder.load(file, {"optimizer=adam", "lr=0.3,0.4"});
  EXPECT_EQ(fewer.runs.size(), 2u);
  EXPECT_TRUE(fewer.runs[0].not_swept.empty()) << "momentum is of no run";
  // Also of what is resumed then.
  nlohmann::ordered_json recorded = fewer.resolved;
  recorded["provenance"] = nlohmann::ordered_json::object();
  EXPECT_EQ(folder.load(recorded.dump(), {"name=s-2"}).runs.size(), 2u);
}

TEST_F(Axes, ATrialWithoutAKeyKnowsTheValueInForce) {
  const Sweep sweep = folder.load(SweepFolder::with(
      R"("search": {"method": "random", "trials": 20, "metric": "Loss/train"},
         "params": {"optimizer": ["adam", "sgd"], "momentum": {"uniform": [0.1, 1]}, "batch_size": {"int_uniform": [2, 9]}},
         "when": {"momentum": {"optimizer": "sgd"}, "batch_size": {"optimizer": "adam"}})"));
  for (const RunConfig& run : sweep.runs) {
    if (std::holds_alternative<AdamOptions>(run.optimizer))
      EXPECT_THAT(run.not_swept, ElementsAre(Pair("momentum", decimal(0))));
    else
      EXPECT_THAT(run.not_swept, ElementsAre(Pair("batch_size", ParamValue(std::int64_t{100}))));
  }
}

TEST_F(Axes, RepeatsAreTheLastAxisAndKeepTheSeed) {
  const Sweep sweep =
      folder.load(SweepFolder::with(R"("seed": 7, "repeats": 2, "params": {"lr": [0.1, 0.2]})"));
  EXPECT_THAT(names_of(sweep),
              ElementsAre("lr=0.1,repeat=0", "lr=0.1,repeat=1", "lr=0.2,repeat=0", "lr=0.2,repeat=1"));
  EXPECT_THAT(sweep.keys, ElementsAre("lr", "repeat"));
  EXPECT_EQ(sweep.runs[1].repeat, 1u);
  EXPECT_EQ(sweep.runs[1].seed, 7u);
}

}  // namespace sweep::axes_test

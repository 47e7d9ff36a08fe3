// What `sweep plan` says of each run.
#include "runmanager/plan/plan.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runmanager/plan/lr_find.h"
#include "runmanager/terminal/terminal.h"
#include "tbwriter/event_files.h"
#include "tests/support/run_world.h"
#include "tests/support/sweep_folder.h"

namespace sweep::plan_test {

// 28·28·32 + 32 + 32·10 + 10 weights and biases.
constexpr std::size_t kParameters = 25450;

// A sweep with its plan, which refers to it.
struct Planned {
  explicit Planned(const std::string& settings, int jobs = 1)
      : sweep(folder.load(SweepFolder::with(settings))), plan{.sweep = &sweep, .jobs = jobs} {
    const auto sizes = [this](const DatasetSpec&) {
      ++asked_for_data;
      return DataSizes{.shape = {1, 28, 28}, .classes = 10, .train = 1050, .bytes = 1050 * 788};
    };
    plan_runs(plan, sizes, [](const Device& device) {
      return device.type == DeviceType::kCuda ? std::optional<std::string>("no such thing here")
                                              : std::nullopt;
    });
  }
  const SweepFolder folder;
  const Sweep sweep;
  SweepPlan plan;
  int asked_for_data = 0;
};

nlohmann::json json_of(const SweepPlan& plan) {
  std::ostringstream text;
  write_plan_json(plan, text);
  return nlohmann::json::parse(text.str());
}

TEST(Plan, SaysWhereARunTrainsOrWhyItIsSkipped) {
  const Planned planned(R"("params": {"device": ["cuda", "cpu"]})");
  ASSERT_NE(planned.plan.runs.at(0).skip, nullptr);
  EXPECT_EQ(*planned.plan.runs.at(0).skip, "no such thing here");
  EXPECT_EQ(planned.plan.runs.at(1).device, "cpu");
  EXPECT_EQ(planned.plan.runs.at(1).skip, nullptr);
  EXPECT_THAT(plan_text(planned.plan), HasSubstr("skipped: no such thing here\n"));
  EXPECT_THAT(plan_text(planned.plan), HasSubstr("s: 2 runs, 1 of them skipped\n"));
}

TEST(Plan, MemoryGrowsWithTheOptimizersArraysAndTheBatch) {
  const Planned planned(R"("optimizer": "sgd", "params": {"momentum": [0, 0.9], "batch_size": [100, 1000]})");
  const auto& runs = planned.plan.runs;
  EXPECT_EQ(runs.at(0).cost->parameter_count, kParameters);
  EXPECT_EQ(runs.at(0).cost->steps_per_epoch, 11u);  // 10 whole batches and one of 50.
  EXPECT_EQ(runs.at(1).cost->steps_per_epoch, 2u);
  const auto engine = [&](std::size_t run) { return runs.at(run).cost->memory->engine; };
  // Padded to cache lines, an array of the optimizer is at most a little longer than the parameters.
  EXPECT_NEAR(static_cast<double>(engine(2) - engine(0)), 4.0 * kParameters, 4096);
  EXPECT_GT(engine(1), engine(0)) << "more partial sums of the gradient";
}

TEST(Plan, ComputesAShapeOnceHoweverManyRunsHaveIt) {
  const Planned planned(R"("params": {"lr": [0.1, 0.2], "seed": [1, 2, 3], "batch_size": [100, 1000]})");
  EXPECT_EQ(planned.asked_for_data, 1);
  EXPECT_EQ(planned.plan.runs.at(0).cost, planned.plan.runs.at(10).cost);
  EXPECT_NE(planned.plan.runs.at(0).cost, planned.plan.runs.at(1).cost);
}

TEST(Plan, JsonHasEveryRunAndWhatIsLeftOut) {
  const Planned planned(R"("params": {"lr": [0.5, 0.25]}, "exclude": [{"lr": 0.25}])");
  const auto json = json_of(planned.plan);
  EXPECT_EQ(json["sweep"], "s");
  ASSERT_EQ(json["runs"].size(), 1u);
  const auto& run = json["runs"][0];
  EXPECT_EQ(run["name"], "lr=0.5");
  EXPECT_EQ(run["params"]["lr"], 0.5);
  EXPECT_TRUE(run["skip"].is_null());
  EXPECT_EQ(run["parameters"], kParameters);
  EXPECT_TRUE(run["seconds"].is_null()) << "nothing was measured";
  std::uint64_t sum = 0;
  for (const auto& [part, bytes] : run["memory"].items()) sum += bytes.get<std::uint64_t>();
  EXPECT_EQ(run["memory_bytes"], sum);
  ASSERT_EQ(json["excluded"].size(), 1u);
  EXPECT_EQ(json["excluded"][0]["name"], "lr=0.25");
  EXPECT_THAT(json["excluded"][0]["reason"].get<std::string>(), HasSubstr("exclude.0: lr is 0.25"));
}

TEST(Plan, TablesForProgramsHavePlainNumbers) {
  const Planned planned(R"("params": {"lr": [0.5]})");
  const std::string csv = formatted_table(plan_table(planned.plan, TableFormat::kCsv), {TableFormat::kCsv});
  EXPECT_THAT(
      csv,
      StartsWith("run,device,parameters,steps_per_epoch,memory_bytes,disk_bytes,seconds,note\nlr=0.5,cpu,"));
  EXPECT_THAT(csv, HasSubstr(fmt::format(",{},{},,\n", planned.plan.runs[0].cost->memory->total(),
                                         planned.plan.runs[0].disk_bytes())));
}

TEST(Plan, JsonKeepsNamesThatNeedEscapes) {
  Planned planned(R"("params": {"lr": [0.5]})");
  planned.plan.runs[0].note = "a \"quoted\" \\ note\n\xff";
  EXPECT_EQ(json_of(planned.plan)["runs"][0]["note"], "a \"quoted\" \\ note\n\xef\xbf\xbd");
}

TEST(Plan, RunsAtOnceNeedMemoryTogetherAndTheDataOnce) {
  const Planned planned(R"("params": {"batch_size": [100, 1000, 200]})", 2);
  const auto own = [&](std::size_t run) { return planned.plan.runs.at(run).cost->memory->own(); };
  EXPECT_EQ(planned.plan.memory_bytes(), own(1) + own(2) + 1050 * 788);
}

TEST(Plan, EveryDataSetIsInMemoryFromTheStart) {
  const Planned planned(R"("params": {"dataset": ["fashion-mnist", "mnist"], "lr": [0.1, 0.2]})");
  EXPECT_EQ(planned.plan.memory_bytes(), planned.plan.runs.at(0).cost->memory->own() + 2 * 1050 * 788);
}

TEST(Plan, TimeIsThatOfTheSlotThatEndsLast) {
  Planned planned(R"("epochs": 2, "params": {"batch_size": [100, 200, 500]})", 2);
  double epoch = 1;
  for (PlannedRun& run : planned.plan.runs)
    run.cost->times = PilotTimes{.setup = 0.5, .epoch = epoch++, .end = 0.5};
  // 3 s and then 7 s beside 5 s.
  EXPECT_EQ(planned.plan.seconds(), 10);
  planned.plan.runs[0].fate = "kept";
  EXPECT_EQ(planned.plan.seconds(), 7) << "what is kept takes no time";
  planned.plan.runs[2].fate = "continued";
  planned.plan.runs[2].trained_epochs = 1;
  EXPECT_EQ(planned.plan.seconds(), 5);
  EXPECT_THAT(plan_text(planned.plan), HasSubstr("time: 5.0 s\n"));
}

TEST(Plan, SaysThatTheDiskIsTooSmall) {
  Planned planned("\"epochs\": 1");
  planned.plan.disk_free = 1000;
  EXPECT_THAT(plan_text(planned.plan), HasSubstr("1000 B are free, which is NOT ENOUGH"));
  planned.plan.disk_free = std::uint64_t{1} << 40;
  EXPECT_THAT(plan_text(planned.plan), Not(HasSubstr("NOT ENOUGH")));
}

TEST(Plan, NoLineOfTheTableIsLongerThanTheTerminal) {
  const Planned planned(
      R"("params": {"lr": [0.5, 0.25], "optimizer": ["sgd", "adam"], "batch_size": [100, 1000]})");
  for (const int width : {40, 60, 80, 200}) {
    std::istringstream text(plan_text(planned.plan, width));
    std::string line;
    for (std::size_t i = 0; i <= planned.plan.runs.size() && std::getline(text, line); ++i)
      EXPECT_LE(display_width(line), width) << line;
  }
  EXPECT_THAT(plan_text(planned.plan, 60), HasSubstr("not shown for lack of width: steps/epoch"));
  EXPECT_THAT(plan_text(planned.plan, 200), Not(HasSubstr("not shown")));
}

// The learning-rate range test, on a network whose losses are computed by hand or by a real engine.

class LrFind : public ::testing::Test {
 protected:
  LrFind() {
    run_.config = &config_;
    run_.data = std::make_shared<const Dataset>(small_dataset());
    run_.network = std::make_shared<const Network>(config_.network, run_.data->shape);
  }

  RunConfig config_ = small_run(0, 0.5);
  PreparedRun run_;
};

TEST_F(LrFind, RaisesTheLearningRateByTheSameFactorFromBatchToBatch) {
  const LrCurve curve = find_lr(run_, {.from = 1e-6, .to = 1e-2, .steps = 41, .threads = 1});
  ASSERT_EQ(curve.points.size(), 41u) << "ten epochs of four batches, and one more";
  EXPECT_DOUBLE_EQ(curve.points.front().lr, 1e-6);
  EXPECT_NEAR(curve.points.back().lr, 1e-2, 1e-12);
  for (std::size_t i = 1; i < curve.points.size(); ++i)
    EXPECT_NEAR(curve.points[i].lr / curve.points[i - 1].lr, std::pow(10.0, 0.1), 1e-9);
}

TEST_F(LrFind, GivesTheSameBitsOnAnyNumberOfThreads) {
  const LrCurve one = find_lr(run_, {.from = 1e-4, .to = 1, .steps = 30, .threads = 1});
  const LrCurve three = find_lr(run_, {.from = 1e-4, .to = 1, .steps = 30, .threads = 3});
  EXPECT_EQ(lr_curve_table(one).rows, lr_curve_table(three).rows);
}

TEST_F(LrFind, StopsWhereTheLossDiverges) {
  const LrCurve curve = find_lr(run_, {.from = 1e-3, .to = 1e6, .steps = 200, .threads = 1});
  EXPECT_TRUE(curve.diverged);
  EXPECT_LT(curve.points.size(), 200u);
  EXPECT_THAT(lr_curve_text(curve, 80, true), HasSubstr("The loss diverged at lr "));
}

TEST_F(LrFind, SuggestsNothingWhereTheLossDoesNotFall) {
  const LrCurve curve = find_lr(run_, {.from = 1e-12, .to = 1e-11, .steps = 20, .threads = 1});
  EXPECT_FALSE(curve.steepest);
  EXPECT_FALSE(curve.minimum_tenth);
  EXPECT_THAT(lr_curve_text(curve, 80, true), HasSubstr("no learning rate is suggested"));
  EXPECT_TRUE(lr_curve_json(curve)["steepest"].is_null());
}

TEST_F(LrFind, WidensARangeThatBeginsTooHigh) {
  Dataset data = small_dataset();
  auto set = std::make_shared<TensorDataset>(*data.train.set);
  std::vector<std::uint8_t> pixels;
  for (std::size_t i = 0; i < set->size() * 16; ++i) {  // learnable, except for a few samples
    const std::size_t label = static_cast<std::size_t>(set->labels()[i / 16]) + (i / 16 % 7 == 0 ? 1 : 0);
    pixels.push_back(i % 16 % 3 == label % 3 ? 200 : 0);
  }
  set->samples = std::move(pixels);
  data.train.set = set;
  run_.data = std::make_shared<const Dataset>(data);
  const LrCurve curve = find_lr(run_, {.from = 100, .to = 1e6, .steps = 60, .threads = 1});
  EXPECT_TRUE(curve.is_widened);
  EXPECT_LE(curve.points.front().lr, 0.1);
  EXPECT_TRUE(curve.minimum_tenth);
  EXPECT_THAT(lr_curve_text(curve, 80, true), HasSubstr("begins lower than was asked for"));
  EXPECT_FALSE(find_lr(run_, {.from = 1e-5, .to = 10, .steps = 60, .threads = 1}).is_widened);
}

TEST_F(LrFind, RefusesRangesThatAreNone) {
  EXPECT_THROW(find_lr(run_, {.from = 0, .to = 1}), ConfigError);
  EXPECT_THROW(find_lr(run_, {.from = 1, .to = 1}), ConfigError);
  EXPECT_THROW(find_lr(run_, {.from = 1, .to = std::nan("")}), ConfigError);
  EXPECT_THROW(find_lr(run_, {.from = 1e-10, .to = 1e300}), ConfigError) << "rates between would be infinite";
  EXPECT_THROW(find_lr(run_, {.from = 1e-3, .to = 1, .steps = 2}), ConfigError);
}

TEST_F(LrFind, ThePlotFitsTheWidth) {
  const LrCurve curve = find_lr(run_, {.from = 1e-5, .to = 10, .steps = 60, .threads = 1});
  for (const bool unicode : {true, false}) {
    for (const int width : {60, 80, 200}) {
      std::istringstream text(lr_curve_text(curve, width, unicode));
      for (std::string line; std::getline(text, line);) {
        EXPECT_LE(display_width(line), width);
        EXPECT_TRUE(unicode || std::ranges::all_of(line, [](unsigned char c) { return c < 0x80; }));
      }
    }
  }
}

TEST_F(LrFind, EventsReplaceThoseOfAnEarlierTest) {
  const test::TemporaryDirectory directory;
  const LrCurve curve = find_lr(run_, {.from = 1e-5, .to = 1, .steps = 20, .threads = 1});
  write_lr_events(curve, directory.path() / "s.lr-find");
  write_lr_events(curve, directory.path() / "s.lr-find");
  EXPECT_EQ(tbwriter::list_event_files(directory.path() / "s.lr-find").size(), 1u);
}

}  // namespace sweep::plan_test

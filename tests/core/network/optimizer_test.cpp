#include "core/network/optimizer.h"

#include "tests/support/reference_data.h"

namespace sweep::optimizer_test {

TEST(MakeOptimizer, DefaultsArePyTorchs) {
  const auto adam = std::get<AdamOptions>(make_optimizer("adam"));
  EXPECT_EQ(adam.beta1, 0.9);
  EXPECT_EQ(adam.beta2, 0.999);
  EXPECT_EQ(adam.eps, 1e-8);
  EXPECT_EQ(adam.weight_decay, 0);
  const auto sgd = std::get<SgdOptions>(make_optimizer("sgd"));
  EXPECT_EQ(sgd.momentum, 0);
  EXPECT_FALSE(sgd.nesterov);
}

TEST(MakeOptimizer, TakesArgumentsInTheirNaturalTypes) {
  const auto sgd = std::get<SgdOptions>(
      make_optimizer("sgd", {{"momentum", 0.9}, {"nesterov", true}, {"weight_decay", std::int64_t{1}}}));
  EXPECT_EQ(sgd.momentum, 0.9);
  EXPECT_EQ(sgd.weight_decay, 1);
  EXPECT_TRUE(sgd.nesterov);
  const auto adam = std::get<AdamOptions>(make_optimizer("adam", {{"betas", std::array{0.8, 0.99}}}));
  EXPECT_EQ(adam.beta1, 0.8);
}

TEST(MakeOptimizer, MistakesSayWhatIsAllowed) {
  const auto expect = [](const char* type, const Arguments& given, const char* message) {
    EXPECT_THAT([&] { make_optimizer(type, given); }, ThrowsMessage<ConfigError>(HasSubstr(message)));
  };
  expect("adm", {}, "did you mean \"adam\"?");
  expect("adam", {{"momentum", 0.9}}, "allowed: betas, eps, weight_decay");
  expect("adam", {{"betas", std::array{0.9, 1.0}}}, "betas");
  expect("sgd", {{"nesterov", true}}, "momentum");  // torch.optim.SGD refuses the same.
}

TEST(Schedule, GivesEveryStepPyTorchsLearningRateAndMomentum) {
  int compared = 0;
  const nlohmann::json references = test::reference_json("schedules.json");
  for (const nlohmann::json& expected : references.at("cases")) {
    SCOPED_TRACE(expected.at("schedule").dump() + " " + expected.at("optimizer").get<std::string>());
    const ScheduleOptions schedule = test::schedule_from(expected.at("schedule"));
    const int epochs = expected.at("epochs");
    const std::int64_t steps = expected.at("steps_per_epoch");
    const auto rates = expected.at("learning_rates").get<std::vector<double>>();
    const auto momenta = expected.at("momenta").get<std::vector<double>>();
    const double lr = expected.at("lr");
    for (int epoch = 0; epoch < epochs; ++epoch) {
      for (std::int64_t step = 0; step < steps; ++step) {
        const auto i = static_cast<std::size_t>(epoch * steps + step);
        const StepValues values = values_at(
            schedule, lr, {.epoch = epoch, .step = step, .epochs = epochs, .steps_per_epoch = steps});
        // PyTorch multiplies from step to step, which rounds a little differently.
        EXPECT_NEAR(values.learning_rate, rates.at(i), 1e-13 + 1e-12 * rates[i]) << "step " << i;
        ASSERT_EQ(values.momentum.has_value(), !momenta.empty());
        if (!momenta.empty()) {
          EXPECT_NEAR(*values.momentum, momenta.at(i), 1e-13) << "step " << i;
        }
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 500);
}

TEST(Schedule, OneCycleHasNoHoleWhereAPhaseIsOneStepLong) {
  // PyTorch divides by zero here: 0.25 · 4 steps end at step 0.
  const ScheduleOptions schedule = make_schedule("one_cycle", {{"pct_start", 0.25}});
  const StepValues first = values_at(schedule, 0.1, {.epochs = 1, .steps_per_epoch = 4});
  EXPECT_EQ(first.learning_rate, 0.1);
  EXPECT_EQ(first.momentum, 0.85);
}

TEST(Schedule, OneCycleGivesTheOptimizerMomentumFromItsFirstStep) {
  const ScheduleOptions cycle = make_schedule("one_cycle");
  const auto sgd = std::get<SgdOptions>(scheduled_optimizer(SgdOptions{.nesterov = true}, cycle));
  EXPECT_EQ(sgd.momentum, 0.95);
  EXPECT_TRUE(sgd.nesterov);
  EXPECT_EQ(std::get<RmspropOptions>(scheduled_optimizer(RmspropOptions{}, cycle)).momentum, 0.95);
  EXPECT_EQ(std::get<AdamOptions>(scheduled_optimizer(AdamOptions{}, cycle)).beta1, 0.95);
  EXPECT_EQ(std::get<AdamOptions>(scheduled_optimizer(AdamOptions{}, cycle)).beta2, 0.999);
  const ScheduleOptions fixed = make_schedule("one_cycle", {{"cycle_momentum", false}});
  EXPECT_EQ(std::get<SgdOptions>(scheduled_optimizer(SgdOptions{}, fixed)).momentum, 0);
  EXPECT_EQ(std::get<SgdOptions>(scheduled_optimizer(SgdOptions{}, ConstantSchedule{})).momentum, 0);
}

TEST(MakeSchedule, TheFirstTypeIsConstant) {
  EXPECT_TRUE(std::holds_alternative<ConstantSchedule>(make_schedule(schedule_types().front().name)));
}

TEST(MakeSchedule, MistakesSayWhatIsAllowed) {
  const auto expect = [](const char* message, const char* type, const Arguments& given = {},
                         const ScheduleOptions* then = nullptr) {
    EXPECT_THAT([&] { make_schedule(type, given, then); }, ThrowsMessage<ConfigError>(HasSubstr(message)));
  };
  expect("did you mean \"cosine\"?", "cosin");
  expect("step needs \"step_size\"", "step");
  expect("got \"line\", want cos or linear", "one_cycle", {{"anneal_strategy", std::string("line")}});
  expect("max_momentum", "one_cycle", {{"max_momentum", 1.0}});
  const ScheduleOptions step = StepSchedule{}, cycle = OneCycleSchedule{};
  expect("only warmup has a schedule after it", "cosine", {}, &step);
  expect("one of constant, step and cosine, not one_cycle", "warmup", {}, &cycle);
  expect("got 0, want a number > 0 and <= 1", "warmup", {{"start_factor", 0.0}});
}

}  // namespace sweep::optimizer_test

#include "core/network/optimizer.h"

#include "tests/support/test.h"

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

TEST(WithMomentum, ChangesWhatEachOptimizerCallsIt) {
  EXPECT_EQ(std::get<SgdOptions>(with_momentum(SgdOptions{.nesterov = true}, 0.5)).momentum, 0.5);
  EXPECT_TRUE(std::get<SgdOptions>(with_momentum(SgdOptions{.nesterov = true}, 0.5)).nesterov);
  EXPECT_EQ(std::get<RmspropOptions>(with_momentum(RmspropOptions{}, 0.5)).momentum, 0.5);
  const auto adam = std::get<AdamOptions>(with_momentum(AdamOptions{}, 0.5));
  EXPECT_EQ(adam.beta1, 0.5);
  EXPECT_EQ(adam.beta2, 0.999);
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

}  // namespace sweep::optimizer_test

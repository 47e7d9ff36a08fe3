// Optimizers through an engine: clipping, and momentum that changes.

#include "tests/support/training.h"

#include "tests/support/test.h"

namespace sweep::optimizer_state_test {

using test::engine_for;

double length(const std::vector<float>& values) {
  double squares = 0;
  for (const float x : values) squares += static_cast<double>(x) * static_cast<double>(x);
  return std::sqrt(squares);
}

TEST(Engine, ClippedGradientsKeepTheirDirection) {
  const Network network(test::deeplizard(), {1, 28, 28});
  const test::OwnedBatch batch = test::random_batch(60, 784, 10, 12);
  const auto gradients_with = [&](double clip_norm, int threads) {
    EngineOptions options{.device = test::device()};
    options.batch_size = 60;
    options.threads = threads;
    options.clip_norm = clip_norm;
    const auto engine = make_engine(network, options);
    engine->set_parameters(initial_parameters(network, 3));
    engine->train(batch.view(), 0.01);
    return engine->gradients();
  };
  const std::vector<float> whole = gradients_with(0, 1);
  const double norm = length(whole);
  EXPECT_EQ(gradients_with(norm * 2, 1), whole);
  const std::vector<float> clipped = gradients_with(norm / 4, 1);
  EXPECT_NEAR(length(clipped), norm / 4, 1e-5 * norm);
  for (std::size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(clipped[i], whole[i] / 4, 1e-6 * norm);
  EXPECT_EQ(gradients_with(norm / 4, 3), clipped);
}

// The parameters after two steps, the second with another momentum than the first.
std::vector<float> after_two_steps(const OptimizerOptions& optimizer, double first, double second) {
  const Network network(test::mlp(), {1, 28, 28});
  const test::OwnedBatch batch = test::random_batch(20, 784, 10, 5);
  const auto engine = engine_for(network, 20, 1, optimizer);
  for (const double momentum : {first, second}) engine->train(batch.view(), {0.01, momentum});
  return engine->parameters();
}

TEST(Engine, MomentumCanChangeBetweenSteps) {
  const SgdOptions sgd{.momentum = 0.9};
  EXPECT_EQ(after_two_steps(sgd, 0.9, 0.5), after_two_steps(SgdOptions{.momentum = 0.1}, 0.9, 0.5))
      << "what was set counts, not what the engine was made with";
  // The first step of sgd is the gradient whatever the momentum.
  EXPECT_EQ(after_two_steps(sgd, 0.9, 0.5), after_two_steps(sgd, 0.5, 0.5));
  const std::vector<OptimizerOptions> optimizers = {sgd, AdamOptions{}, RmspropOptions{.momentum = 0.9}};
  for (const OptimizerOptions& optimizer : optimizers)
    EXPECT_NE(after_two_steps(optimizer, 0.9, 0.5), after_two_steps(optimizer, 0.9, 0.9));
}

TEST(Engine, WithoutMomentumRefusesToChangeIt) {
  const Network network(test::mlp(), {1, 28, 28});
  const std::vector<OptimizerOptions> optimizers = {SgdOptions{}, RmspropOptions{}};
  for (const OptimizerOptions& optimizer : optimizers) {
    const auto engine = engine_for(network, 20, 1, optimizer);
    EXPECT_THAT(
        [&] {
          engine->train(test::random_batch(20, 784, 10, 5).view(), {0.01, 0.5});
        },
        ThrowsMessage<ConfigError>(HasSubstr("without momentum")));
  }
}

}  // namespace sweep::optimizer_state_test

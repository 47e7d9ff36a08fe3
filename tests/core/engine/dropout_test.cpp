// Dropout: how much it drops, and what its choice depends on.

#include "tests/support/training.h"

#include "tests/support/test.h"

namespace sweep::dropout_test {

using test::engine_for;

TEST(Dropout, DoesNothingInEvaluation) {
  const Network network({"n", {test::flatten("f"), {"dropout", "dropout", {{"p", 0.9}}}}}, {1, 1, 3});
  const auto engine = engine_for(network, 2);
  const test::OwnedBatch batch{{0, 51, 255, 255, 0, 51}, {0, 1}, {0, 1}};
  std::vector<float> outputs(6);
  engine->predict(batch.view(), outputs);
  EXPECT_THAT(outputs, ElementsAre(0.0f, 0.2f, 1.0f, 1.0f, 0.0f, 0.2f));
}

// One class has a loss and a gradient of zero; with two classes the gradients show which units were kept.
std::vector<float> kept_per_unit(std::uint64_t seed, int steps, int threads) {
  const Network network({"n",
                         {test::flatten("f"),
                          {"wide", "linear", {{"out_features", std::int64_t{500}}, {"bias", false}}},
                          {"dropout", "dropout", {{"p", 0.25}}},
                          {"out", "linear", {{"out_features", std::int64_t{2}}, {"bias", false}}}}},
                        {1, 1, 1});
  EngineOptions options{.device = test::device()};
  options.batch_size = 64;
  options.threads = threads;
  options.optimizer = SgdOptions{};
  options.seed = seed;
  const auto engine = make_engine(network, options);
  std::vector<float> parameters(network.parameter_count(), 0.0f);
  std::fill_n(parameters.begin(), 500, 1.0f);
  engine->set_parameters(parameters);
  test::OwnedBatch batch;
  batch.pixels.assign(64, 255);
  batch.labels.assign(64, 0);
  for (std::uint32_t i = 0; i < 64; ++i) batch.indices.push_back(i);
  for (int step = 0; step < steps; ++step) engine->train(batch.view(), 1e-30);
  const std::vector<float> gradients = engine->gradients();
  // d loss / d out.weight[0][unit] = (1/2 − 1) · mean of the unit over the batch, each 0 or 4/3.
  std::vector<float> kept;
  for (std::size_t unit = 0; unit < 500; ++unit) kept.push_back(-2 * gradients[500 + unit] * 0.75f);
  return kept;
}

TEST(Dropout, KeepsTheShareAndTheMeanThatItShould) {
  const std::vector<float> kept = kept_per_unit(1, 1, 1);
  double mean = 0;
  for (const float k : kept) {
    EXPECT_NEAR(std::round(k * 64), k * 64, 1e-3);  // whole images
    mean += k / 500.0;
  }
  EXPECT_NEAR(mean, 0.75, 4 * std::sqrt(0.75 * 0.25 / 32000));
}

TEST(Dropout, DependsOnSeedAndStepButNotOnThreads) {
  EXPECT_EQ(kept_per_unit(1, 1, 1), kept_per_unit(1, 1, 3));
  EXPECT_NE(kept_per_unit(1, 1, 1), kept_per_unit(2, 1, 1));
  EXPECT_NE(kept_per_unit(1, 1, 1), kept_per_unit(1, 2, 1));
}

}  // namespace sweep::dropout_test

// What every caller relies on: bits that do not depend on threads, totals, state that can be saved and set
// back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "tests/core/kernels/cpu/simd_targets.h"
#include "tests/support/batch.h"
#include "tests/support/test_device.h"
#include "tests/support/test_networks.h"

namespace sweep {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::unique_ptr<Engine> engine_for(const Network& network, std::size_t batch_size, int threads = 1,
                                   OptimizerOptions optimizer = AdamOptions{}) {
  EngineOptions options{.device = test::device()};
  options.threads = threads;
  options.batch_size = batch_size;
  options.optimizer = optimizer;
  auto engine = make_engine(network, options);
  engine->set_parameters(initial_parameters(network, 3));
  return engine;
}

struct Outcome {
  std::vector<float> parameters, gradients;
  Totals totals;
};

Outcome train_three_steps(std::size_t images, int threads,
                          const Network& network = Network(test::deeplizard(), {1, 28, 28})) {
  const auto engine = engine_for(network, images, threads);
  const test::OwnedBatch batch = test::random_batch(images, element_count(network.input()), 10, 11);
  for (int step = 0; step < 3; ++step) engine->train(batch.view(), 0.01);
  return {engine->parameters(), engine->gradients(), engine->take_totals()};
}

class AnyThreads : public testing::TestWithParam<std::size_t> {};

void expect_same_bits(const Outcome& one, const Outcome& several) {
  EXPECT_EQ(one.parameters, several.parameters);
  EXPECT_EQ(one.gradients, several.gradients);
  EXPECT_EQ(one.totals.loss, several.totals.loss);
  EXPECT_EQ(one.totals.correct, several.totals.correct);
}

TEST_P(AnyThreads, GiveTheSameBits) {
  SKIP_UNLESS_CPU();
  const Outcome one = train_three_steps(GetParam(), 1);
  for (const int threads : {2, 3, 4, 5, 6, 7, 8}) {
    SCOPED_TRACE(threads);
    expect_same_bits(one, train_three_steps(GetParam(), threads));
  }
}

TEST(Engine, ThreadsGiveTheSameBitsWithWideConvolutions) {
  SKIP_UNLESS_CPU();
  const Network network(test::wide_convolutions(), {1, 12, 15});
  const Outcome one = train_three_steps(133, 1, network);
  for (const int threads : {2, 3, 7}) {
    SCOPED_TRACE(threads);
    expect_same_bits(one, train_three_steps(133, threads, network));
  }
}

INSTANTIATE_TEST_SUITE_P(BatchSizes, AnyThreads, testing::Values(1, 15, 16, 17, 100, 333, 1100));

// Wider vectors add in another order, and only some instruction sets fuse multiplications with additions, so
// bits may differ; three steps of Adam with lr 0.01 move a weight by up to 0.03, and where a gradient is
// nearly 0 its sign decides the way.
TEST(Engine, InstructionSetsAgreeWithinRounding) {
  SKIP_UNLESS_CPU();
  std::vector<std::pair<std::string, Outcome>> outcomes;
  test::for_each_simd_target(
      [&](const std::string& target) { outcomes.emplace_back(target, train_three_steps(100, 1)); });
  for (const auto& [target, outcome] : outcomes) {
    SCOPED_TRACE(target);
    EXPECT_NEAR(outcome.totals.loss, outcomes[0].second.totals.loss, 1e-4 * outcomes[0].second.totals.loss);
    double difference = 0;
    for (std::size_t i = 0; i < outcome.parameters.size(); ++i) {
      difference += std::abs(outcome.parameters[i] - outcomes[0].second.parameters[i]);
    }
    EXPECT_LT(difference / static_cast<double>(outcome.parameters.size()), 1e-4);
  }
  EXPECT_GE(outcomes.size(), 1u);
}

TEST(Engine, TotalsAddUpOverBatchesUntilTheyAreTaken) {
  const Network network(test::mlp(), {1, 28, 28});
  const auto engine = engine_for(network, 40);
  const test::OwnedBatch batch = test::random_batch(40, 784, 10, 5);
  engine->evaluate(batch.view());
  const Totals once = engine->take_totals();
  EXPECT_EQ(once.samples, 40);
  engine->evaluate(batch.view());
  engine->evaluate(batch.view());
  const Totals twice = engine->take_totals();
  EXPECT_EQ(twice.samples, 80);
  EXPECT_DOUBLE_EQ(twice.loss, 2 * once.loss);
  EXPECT_EQ(twice.correct, 2 * once.correct);
  EXPECT_EQ(engine->take_totals().samples, 0);
}

TEST(Engine, TotalsAgreeWithThePredictions) {
  const Network network(test::deeplizard(), {1, 28, 28});
  const auto engine = engine_for(network, 50);
  const test::OwnedBatch batch = test::random_batch(50, 784, 10, 6);
  std::vector<float> outputs(500);
  engine->predict(batch.view(), outputs);
  double loss = 0;
  std::int64_t correct = 0;
  for (std::size_t i = 0; i < 50; ++i) {
    const float* row = outputs.data() + i * 10;
    double total = 0;
    for (int c = 0; c < 10; ++c) total += std::exp(static_cast<double>(row[c]));
    loss += std::log(total) - static_cast<double>(row[batch.labels[i]]);
    correct += std::max_element(row, row + 10) - row == batch.labels[i] ? 1 : 0;
  }
  engine->evaluate(batch.view());
  const Totals totals = engine->take_totals();
  EXPECT_NEAR(totals.loss, loss, 1e-4);
  EXPECT_EQ(totals.correct, correct);
}

TEST(Engine, RowsChooseTheSamples) {
  const Network network(test::mlp(), {1, 28, 28});
  const auto engine = engine_for(network, 40);
  test::OwnedBatch all = test::random_batch(40, 784, 10, 8);
  std::vector<float> in_order(400), reversed(400);
  engine->predict(all.view(), in_order);
  std::reverse(all.rows.begin(), all.rows.end());
  engine->predict(all.view(), reversed);
  for (std::size_t i = 0; i < 40; ++i) {
    for (std::size_t c = 0; c < 10; ++c) EXPECT_EQ(reversed[(39 - i) * 10 + c], in_order[i * 10 + c]);
  }
}

TEST(Engine, ParametersSetAreParametersGot) {
  const Network network(test::deeplizard(), {1, 28, 28});
  const std::vector<float> values = initial_parameters(network, 9);
  const auto engine = engine_for(network, 1);
  engine->set_parameters(values);
  EXPECT_EQ(engine->parameters(), values);
}

class SavedState : public testing::TestWithParam<OptimizerOptions> {};

TEST_P(SavedState, ContinuesWithTheSameBits) {
  const Network network(test::deeplizard(), {1, 28, 28});
  const test::OwnedBatch batch = test::random_batch(60, 784, 10, 12);
  const auto whole = engine_for(network, 60, 1, GetParam());
  const auto first = engine_for(network, 60, 1, GetParam());
  for (int i = 0; i < 5; ++i) whole->train(batch.view(), 0.01);
  for (int i = 0; i < 2; ++i) first->train(batch.view(), 0.01);
  const auto second = engine_for(network, 60, 2, GetParam());
  second->set_parameters(first->parameters());
  second->set_optimizer_state(first->optimizer_state(), first->step_count());
  for (int i = 0; i < 3; ++i) second->train(batch.view(), 0.01);
  EXPECT_EQ(second->parameters(), whole->parameters());
  EXPECT_EQ(second->step_count(), 5);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, SavedState,
                         testing::Values(OptimizerOptions(AdamOptions{}), OptimizerOptions(SgdOptions{}),
                                         OptimizerOptions(SgdOptions{0.9, 0, 1e-4, true}),
                                         OptimizerOptions(AdamOptions{0.9, 0.99, 1e-8, 0.1, true}),
                                         OptimizerOptions(RmspropOptions{}),
                                         OptimizerOptions(RmspropOptions{0.9, 1e-6, 0.01, 0.5, true})));

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

TEST(Engine, DivergenceShowsInTheLoss) {
  const Network network(test::mlp(), {1, 28, 28});
  const auto engine = engine_for(network, 20, 1, SgdOptions{});
  std::vector<float> values = engine->parameters();
  values[100] = std::nanf("");
  engine->set_parameters(values);
  engine->evaluate(test::random_batch(20, 784, 10, 2).view());
  EXPECT_TRUE(std::isnan(engine->take_totals().loss));
}

// Three steps with dropout, with or without a profile before and after each.
Outcome train_three_steps_with_dropout(bool profiled) {
  NetworkSpec spec = test::deeplizard();
  spec.layers.insert(spec.layers.end() - 1, LayerSpec{"drop", "dropout", {}});
  const Network network(spec, {1, 28, 28});
  const auto engine = engine_for(network, 100, 2);
  const test::OwnedBatch batch = test::random_batch(100, 784, 10, 11),
                         other = test::random_batch(37, 784, 10, 12);
  for (int step = 0; step < 3; ++step) {
    if (profiled) engine->profile(other.view());
    engine->train(batch.view(), 0.01);
    if (profiled) engine->profile(batch.view());
    EXPECT_EQ(engine->step_count(), step + 1);
  }
  return {engine->parameters(), engine->gradients(), engine->take_totals()};
}

TEST(Profile, ChangesNoBitOfTheTraining) {
  const Outcome plain = train_three_steps_with_dropout(false),
                profiled = train_three_steps_with_dropout(true);
  EXPECT_EQ(profiled.parameters, plain.parameters);
  EXPECT_EQ(profiled.gradients, plain.gradients);
  EXPECT_EQ(profiled.totals.loss, plain.totals.loss);
  EXPECT_EQ(profiled.totals.correct, plain.totals.correct);
  EXPECT_EQ(profiled.totals.samples, plain.totals.samples);
}

TEST(Profile, HasEveryLayerAndCountsFusedOnesUnderTheFirst) {
  SKIP_UNLESS_CPU();
  const Network network(test::deeplizard(), {1, 28, 28});
  const auto engine = engine_for(network, 100);
  const auto small = engine->profile(test::random_batch(20, 784, 10, 11).view());
  const auto profile = engine->profile(test::random_batch(100, 784, 10, 11).view());
  ASSERT_EQ(profile.size(), network.layers().size());
  for (std::size_t i = 0; i < profile.size(); ++i) {
    const Layer& layer = network.layers()[i];
    SCOPED_TRACE(layer.name);
    EXPECT_EQ(profile[i].layer, layer.name);
    if (layer.type == "conv2d" || layer.type == "linear") {
      EXPECT_GT(profile[i].seconds, 0);
      EXPECT_LT(profile[i].seconds, 60);
      std::size_t parameters = 0;
      for (const std::size_t index : layer.parameters) parameters += network.parameters()[index].count;
      EXPECT_GE(profile[i].bytes, parameters * sizeof(float));
      EXPECT_GT(profile[i].bytes, small[i].bytes) << "the activations grow with the batch";
    } else {
      EXPECT_EQ(profile[i].seconds, 0);
      EXPECT_EQ(profile[i].bytes, 0u);
    }
  }
  // The last layer is fused with nothing: 10 outputs of 7 blocks of 16, and its parameters with padding.
  const std::size_t outputs = 10 * 7 * 16, weights = network.layers().back().input[0] * 10 + 10;
  EXPECT_GE(profile.back().bytes, (outputs + weights) * sizeof(float));
  EXPECT_LE(profile.back().bytes, (outputs + weights + 2000) * sizeof(float));
}

TEST(Profile, TakesLongerForMoreSamplesAndRefusesTooMany) {
  SKIP_UNLESS_CPU();
  const Network network(test::deeplizard(), {1, 28, 28});
  const auto engine = engine_for(network, 1600);
  const auto seconds = [&](std::size_t images) {
    double sum = 0;
    for (const LayerProfile& layer : engine->profile(test::random_batch(images, 784, 10, 11).view()))
      sum += layer.seconds;
    return sum;
  };
  EXPECT_GT(seconds(1600), seconds(16));  // a hundred times as much
  EXPECT_THROW(seconds(1601), ShapeError);
  EXPECT_EQ(seconds(0), 0);
}

TEST(Engine, WrongSizesAreErrors) {
  const Network network(test::mlp(), {1, 28, 28});
  const auto engine = engine_for(network, 10);
  EXPECT_THAT([&] { engine->train(test::random_batch(11, 784, 10, 1).view(), 0.1); },
              ThrowsMessage<ShapeError>(HasSubstr("11")));
  EXPECT_THROW(engine->train(test::random_batch(5, 783, 10, 1).view(), 0.1), ShapeError);
  EXPECT_THROW(engine->set_parameters(std::vector<float>(3)), ShapeError);
  std::vector<float> outputs(7);
  EXPECT_THROW(engine->predict(test::random_batch(5, 784, 10, 1).view(), outputs), ShapeError);
  EXPECT_THROW(engine->set_optimizer_state({}, 3), ConfigError);
}

TEST(Dropout, DoesNothingInEvaluation) {
  const Network network({"n", {test::flatten("f"), {"dropout", "dropout", {{"p", 0.9}}}}}, {1, 1, 3});
  const auto engine = engine_for(network, 2);
  const test::OwnedBatch batch{{0, 51, 255, 255, 0, 51}, {0, 1}, {0, 1}};
  std::vector<float> outputs(6);
  engine->predict(batch.view(), outputs);
  EXPECT_THAT(outputs, testing::ElementsAre(0.0f, 0.2f, 1.0f, 1.0f, 0.0f, 0.2f));
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
  for (std::uint32_t i = 0; i < 64; ++i) batch.rows.push_back(i);
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

TEST(Engine, NormalisedPixelsAreLikePyTorchs) {
  // One linear layer that passes pixels through: logits are the inputs.
  const Network network(
      {"n", {test::flatten("f"), {"pass", "linear", {{"out_features", std::int64_t{8}}, {"bias", false}}}}},
      {2, 2, 2});
  EngineOptions options{.device = test::device()};
  options.batch_size = 1;
  options.transform = {{0.5f, 0.25f}, {0.5f, 2.0f}};
  const auto engine = make_engine(network, options);
  std::vector<float> identity(64);
  for (std::size_t i = 0; i < 8; ++i) identity[i * 8 + i] = 1;
  engine->set_parameters(identity);
  test::OwnedBatch batch{{0, 51, 102, 255, 0, 51, 102, 255}, {0}, {0}};
  std::vector<float> outputs(8);
  engine->predict(batch.view(), outputs);
  EXPECT_THAT(outputs, testing::Pointwise(testing::FloatNear(1e-6f),
                                          {-1.0f, -0.6f, -0.2f, 1.0f, -0.125f, -0.025f, 0.075f, 0.375f}));
}

// The parameters after two steps, the second with another momentum than the first.
std::vector<float> after_two_steps(const OptimizerOptions& optimizer, double first, double second) {
  const Network network(test::mlp(), {1, 28, 28});
  const test::OwnedBatch batch = test::random_batch(20, 784, 10, 5);
  const auto engine = engine_for(network, 20, 1, optimizer);
  for (const double momentum : {first, second}) {
    engine->set_momentum(momentum);
    engine->train(batch.view(), 0.01);
  }
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
    EXPECT_THAT([&] { engine->set_momentum(0.5); },
                ThrowsMessage<ConfigError>(HasSubstr("without momentum")));
  }
}

}  // namespace
}  // namespace sweep

// What every caller relies on: totals, rows, parameters, sizes that are refused.

#include "tests/support/training.h"

namespace sweep::contract_test {

using test::engine_for;

const Network kMlp(test::mlp(), {1, 28, 28});

TEST(Engine, TotalsAddUpOverBatchesUntilTheyAreTaken) {
  const auto engine = engine_for(kMlp, {.batch_size = 40});
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

TEST(Engine, WrongSizesAreErrors) {
  const auto engine = engine_for(kMlp, {.batch_size = 10, .optimizer = AdamOptions{}});
  EXPECT_THAT([&] { engine->train(test::random_batch(11, 784, 10, 1).view(), 0.1); },
              ThrowsMessage<ShapeError>(HasSubstr("11")));
  EXPECT_THROW(engine->train(test::random_batch(5, 783, 10, 1).view(), 0.1), ShapeError);
  EXPECT_THROW(engine->set_parameters(std::vector<float>(3)), ShapeError);
  EXPECT_THROW(engine->set_buffers(std::vector<float>(3)), ShapeError);
  std::vector<float> outputs(7);
  EXPECT_THROW(engine->predict(test::random_batch(5, 784, 10, 1).view(), outputs), ShapeError);
  EXPECT_THROW(engine->evaluate(test::random_batch(5, 784, 10, 1).view(), outputs), ShapeError);
  EXPECT_THROW(engine->set_optimizer_state({}, 3), ConfigError);
  const std::vector<OptimizerState> before = engine->optimizer_state();
  std::vector<OptimizerState> state = before;
  state.front().values[0] = 1;
  state.back().values.pop_back();
  EXPECT_THROW(engine->set_optimizer_state(state, 3), ShapeError);
  EXPECT_EQ(engine->optimizer_state().front().values, before.front().values) << "nothing is changed";
  EXPECT_THROW(engine_for(kMlp, {.parallel = {.model = {{"conv*", test::device().name()}}}}), ConfigError)
      << "it has no such layer";
}

TEST(Engine, ClassesRowsAndMeansOutOfRangeAreErrors) {
  const auto engine = engine_for(kMlp, {.batch_size = 5});
  const auto refused = [&](test::OwnedBatch batch) {
    return message_of<ShapeError>([&] { engine->train(batch.view(), 0.1); });
  };
  for (const int label : {-1, 10}) {
    test::OwnedBatch batch = test::random_batch(5, 784, 10, 1);
    batch.labels[3] = label;
    EXPECT_EQ(refused(batch), "a sample of class " + std::to_string(label) +
                                  ", but the network has outputs for 10 classes, from 0");
  }
  test::OwnedBatch batch = test::random_batch(5, 784, 10, 1);
  batch.indices[4] = 5;
  EXPECT_EQ(refused(batch), "a batch with an index beyond its 5 samples");
  const InputTransform of_two_channels{{0.5f, 0.25f}, {0.5f, 2.0f}};
  EXPECT_EQ(
      message_of<ConfigError>([&] { engine_for(kMlp, {.transform = of_two_channels}); }),
      "normalize has 2 means and 2 standard deviations, but the images have 1 channel: give one of each "
      "per channel");
}

TEST(Engine, OptionsOutOfRangeAreErrors) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::pair<const char*, std::function<void(EngineOptions&)>> wrong[] = {
      {"batch_size: got 0, want 1", [](auto& o) { o.batch_size = 0; }},
      {"batch_size: got 18446744073709551615", [](auto& o) { o.batch_size = SIZE_MAX; }},
      {"threads: got -1", [](auto& o) { o.threads = -1; }},
      {"accumulation_steps: got 0", [](auto& o) { o.accumulation_steps = 0; }},
      {"clip_norm: got nan", [](auto& o) { o.clip_norm = kNan; }},
      {"label_smoothing: got 2", [](auto& o) { o.loss.label_smoothing = 2; }},
      {"beta: got -1", [](auto& o) { o.loss.beta = -1; }},
      {"class_weights: got 0", [](auto& o) { o.loss.class_weights.assign(10, 0); }},
      {"std must be greater than 0, found 0",
       [](auto& o) {
         o.transform = {{0}, {0}};
       }},
      {"mean must be a finite number, found nan",
       [](auto& o) {
         o.transform = {{std::numeric_limits<float>::quiet_NaN()}, {1}};
       }},
      {"class_weights: got 10, want none, or cross_entropy",
       [](auto& o) {
         o.loss = {.kind = LossOptions::Kind::kMse, .class_weights = std::vector<float>(10, 1)};
       }},
      {"beta1: got 1", [](auto& o) { o.optimizer = AdamOptions{.beta1 = 1}; }},
      {"eps: got nan", [](auto& o) { o.optimizer = RmspropOptions{.eps = kNan}; }},
      {"momentum: got -0.1", [](auto& o) { o.optimizer = SgdOptions{.momentum = -0.1}; }},
      {"parallel.data: got 0", [](auto& o) { o.parallel.data = 0; }},
      {"parallel.data: got 2000", [](auto& o) { o.parallel.data = 2000; }},
      {"micro_batches: got 0", [](auto& o) { o.parallel.pipeline = {.stages = 2, .micro_batches = 0}; }}};
  for (const auto& [message, change] : wrong) {
    EngineOptions options;
    change(options);
    EXPECT_THAT(message_of<ConfigError>([&] { engine_for(kMlp, options); }), HasSubstr(message));
  }
}

TEST(Engine, NormalisedPixelsAreLikePyTorchs) {
  // One linear layer that passes pixels through: logits are the inputs.
  const Network network(
      {"n", {test::flatten("f"), {"pass", "linear", {{"out_features", std::int64_t{8}}, {"bias", false}}}}},
      {2, 2, 2});
  const auto engine = engine_for(network, {.transform = {{0.5f, 0.25f}, {0.5f, 2.0f}}});
  std::vector<float> identity(64);
  for (std::size_t i = 0; i < 8; ++i) identity[i * 8 + i] = 1;
  engine->set_parameters(identity);
  test::OwnedBatch batch{{0, 51, 102, 255, 0, 51, 102, 255}, {0}, {0}};
  std::vector<float> outputs(8);
  engine->predict(batch.view(), outputs);
  EXPECT_THAT(outputs,
              Pointwise(FloatNear(1e-6f), {-1.0f, -0.6f, -0.2f, 1.0f, -0.125f, -0.025f, 0.075f, 0.375f}));
}

// Optimizers through an engine: clipping, and momentum that changes.

double length(const std::vector<float>& values) {
  double squares = 0;
  for (const float x : values) squares += static_cast<double>(x) * static_cast<double>(x);
  return std::sqrt(squares);
}

TEST(Engine, ClippedGradientsKeepTheirDirection) {
  const Network network(test::deeplizard(), {1, 28, 28});
  const test::OwnedBatch batch = test::random_batch(60, 784, 10, 12);
  const auto gradients_with = [&](double clip_norm, int threads) {
    const auto engine = engine_for(network, {.threads = threads, .batch_size = 60, .clip_norm = clip_norm});
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
  const test::OwnedBatch batch = test::random_batch(20, 784, 10, 5);
  const auto engine = engine_for(kMlp, {.batch_size = 20, .optimizer = optimizer});
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
  const std::vector<OptimizerOptions> optimizers = {SgdOptions{}, RmspropOptions{}};
  for (const OptimizerOptions& optimizer : optimizers) {
    const auto engine = engine_for(kMlp, {.batch_size = 20, .optimizer = optimizer});
    EXPECT_THAT(
        [&] {
          engine->train(test::random_batch(20, 784, 10, 5).view(), {0.01, 0.5});
        },
        ThrowsMessage<ConfigError>(HasSubstr("without momentum")));
  }
}

// Networks that train in phases, because batch normalization looks at the whole batch.

constexpr std::size_t kPixels = 3 * 8 * 8;

const Network kResidual(test::small_residual(), {3, 8, 8});

TEST(BatchNorm, EvaluationUsesTheRunningStatisticsSoThatSamplesDoNotSeeEachOther) {
  const auto engine = engine_for(kResidual, {.batch_size = 40});
  const test::OwnedBatch batch = test::random_batch(40, kPixels, 10, 5);
  engine->train(batch.view(), 0.01);
  std::vector<float> together(400), alone(10);
  engine->predict(batch.view(), together);
  const std::vector<float> buffers = engine->buffers();
  const Batch last{batch.pixels, batch.labels, std::span(batch.indices).last(1)};
  engine->predict(last, alone);
  // A library may choose another algorithm for another batch size, and round differently.
  const std::string kernels = engine->kernels();
  const bool same_kernels = kernels.empty() || kernels == "builtin";
  for (std::size_t c = 0; c < 10; ++c) {
    if (same_kernels) {
      EXPECT_EQ(alone[c], together[390 + c]);
    } else {
      EXPECT_NEAR(alone[c], together[390 + c], 1e-4f * (1 + std::abs(alone[c])));
    }
  }
  EXPECT_EQ(engine->buffers(), buffers);
}

TEST(BatchNorm, BuffersStartAsPyTorchsAndMoveWithTraining) {
  const auto engine = engine_for(kResidual, {.batch_size = 40});
  EXPECT_EQ(engine->buffers(), initial_buffers(kResidual));
  engine->train(test::random_batch(40, kPixels, 10, 5).view(), 0.01);
  EXPECT_NE(engine->buffers(), initial_buffers(kResidual));
}

// PyTorch refuses to train on one value per channel, and then a sweep whose last batch has one sample fails.
TEST(BatchNorm, OneValuePerChannelTrainsAndLeavesTheRunningVariance) {
  const Network network({"n", {{"bn", "batch_norm2d"}, test::flatten("f"), test::linear("out", 2)}},
                        {3, 1, 1});
  const auto engine = engine_for(network, {.optimizer = AdamOptions{}});
  engine->train(test::random_batch(1, 3, 2, 1).view(), 0.01);
  for (const float x : engine->parameters()) EXPECT_TRUE(std::isfinite(x));
  const std::vector<float> buffers = engine->buffers();
  for (const float x : buffers) EXPECT_TRUE(std::isfinite(x));
  const Parameter& variance = network.buffers().back();
  ASSERT_EQ(variance.name, "bn.running_var");
  for (std::size_t c = 0; c < variance.count; ++c) EXPECT_EQ(buffers[variance.offset + c], 1);
}

// Dropout: how much it drops, and what its choice depends on.

TEST(Dropout, DoesNothingInEvaluation) {
  const Network network({"n", {test::flatten("f"), {"dropout", "dropout", {{"p", 0.9}}}}}, {1, 1, 3});
  const auto engine = engine_for(network, {.batch_size = 2});
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
  const auto engine =
      engine_for(network, {.threads = threads, .batch_size = 64, .optimizer = SgdOptions{}, .seed = seed});
  std::vector<float> parameters(network.parameter_count(), 0.0f);
  std::fill_n(parameters.begin(), 500, 1.0f);
  engine->set_parameters(parameters);
  test::OwnedBatch batch = test::random_batch(64, 1, 1, 1);
  batch.pixels.assign(64, 255);
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

// What an engine counts of its parameters and gradients, against their values.

// value_counter_test.cpp has the buckets and sums.
void expect_counts(const std::vector<HistogramCounts>& counts, const Network& network,
                   const std::vector<float>& values) {
  ASSERT_EQ(counts.size(), network.parameters().size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Parameter& parameter = network.parameters()[i];
    SCOPED_TRACE(parameter.name);
    std::vector<float> own(values.begin() + static_cast<std::ptrdiff_t>(parameter.offset),
                           values.begin() + static_cast<std::ptrdiff_t>(parameter.offset + parameter.count));
    EXPECT_EQ(counts[i].number, static_cast<std::int64_t>(own.size()));
    std::erase_if(own, [](float value) { return !std::isfinite(value); });
    EXPECT_EQ(counts[i].min, std::ranges::min(own));
    EXPECT_EQ(counts[i].max, std::ranges::max(own));
  }
}

TEST(CountParameters, FindsWhatIsInTheValuesOrLeavesItToWhoeverHasThem) {
  const Network network(test::deeplizard(), {1, 28, 28});
  const auto engine = engine_for(network, {.batch_size = 50});
  std::vector<float> parameters = initial_parameters(network, 3);
  parameters[5] = 0;
  parameters[6] = 1e-40f;
  engine->set_parameters(parameters);
  std::vector<double> limits;
  for (int i = -200; i < 200; ++i) limits.push_back(i * 0.001);
  if (test::device().type == DeviceType::kCpu) {
    EXPECT_FALSE(engine->parameter_histograms(limits));
    return;
  }
  const test::OwnedBatch batch = test::random_batch(50, 784, 10, 11);
  engine->train(batch.view(), 0.01);
  const auto counts = engine->parameter_histograms(limits), again = engine->parameter_histograms(limits);
  ASSERT_TRUE(counts && again);
  expect_counts(counts->values, network, engine->parameters());
  expect_counts(counts->gradients, network, engine->gradients());
  for (std::size_t i = 0; i < counts->values.size(); ++i) {
    EXPECT_EQ(counts->values[i].sum, again->values[i].sum);
    EXPECT_EQ(counts->gradients[i].sum_squares, again->gradients[i].sum_squares);
  }

  parameters[7] = std::numeric_limits<float>::quiet_NaN();
  parameters[8] = -std::numeric_limits<float>::infinity();
  engine->set_parameters(parameters);
  limits = {0};  // other limits are no trouble
  const auto counted = engine->parameter_histograms(limits)->values;
  expect_counts(counted, network, parameters);
  EXPECT_EQ(counted.at(0).buckets.size(), 2u);
}

}  // namespace sweep::contract_test

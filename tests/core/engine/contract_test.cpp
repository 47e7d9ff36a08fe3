// What every caller relies on: totals, rows, parameters, sizes that are refused.

#include "tests/support/training.h"

#include "tests/support/test.h"

namespace sweep::contract_test {

using test::engine_for;

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

TEST(Engine, DivergenceShowsInTheLoss) {
  const Network network(test::mlp(), {1, 28, 28});
  const auto engine = engine_for(network, 20, 1, SgdOptions{});
  std::vector<float> values = engine->parameters();
  values[100] = std::nanf("");
  engine->set_parameters(values);
  engine->evaluate(test::random_batch(20, 784, 10, 2).view());
  EXPECT_TRUE(std::isnan(engine->take_totals().loss));
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
  EXPECT_THROW(engine->evaluate(test::random_batch(5, 784, 10, 1).view(), outputs), ShapeError);
  EXPECT_THROW(engine->set_optimizer_state({}, 3), ConfigError);
  EngineOptions options{.device = test::device()};
  options.parallel.model = {{"conv*", test::device().name()}};
  EXPECT_THROW(make_engine(network, options), ConfigError) << "it has no such layer";
}

TEST(Engine, ClassesRowsAndMeansOutOfRangeAreErrors) {
  const Network network(test::mlp(), {1, 28, 28});
  const auto engine = engine_for(network, 5);
  const auto refused = [&](test::OwnedBatch batch) {
    return test::message_of<ShapeError>([&] { engine->train(batch.view(), 0.1); });
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
  EngineOptions options{.device = test::device()};
  options.transform = {{0.5f, 0.25f}, {0.5f, 2.0f}};
  EXPECT_EQ(test::message_of<ConfigError>([&] { make_engine(network, options); }),
            "transform: 2 means and 2 deviations for samples of [1, 28, 28]");
}

TEST(Engine, OptionsOutOfRangeAreErrors) {
  const Network network(test::mlp(), {1, 28, 28});
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
      {"std: got 0",
       [](auto& o) {
         o.transform = {{0}, {0}};
       }},
      {"mean: got nan",
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
    EngineOptions options{.device = test::device()};
    change(options);
    EXPECT_THAT(test::message_of<ConfigError>([&] { make_engine(network, options); }), HasSubstr(message));
  }
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
  EXPECT_THAT(outputs,
              Pointwise(FloatNear(1e-6f), {-1.0f, -0.6f, -0.2f, 1.0f, -0.125f, -0.025f, 0.075f, 0.375f}));
}

}  // namespace sweep::contract_test

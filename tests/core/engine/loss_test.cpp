// Every loss, on floats, with classes and with numbers as targets: short trainings against PyTorch's in
// double.

#include <nlohmann/json.hpp>

#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "tests/support/reference_data.h"
#include "tests/support/spec_json.h"
#include "tests/support/test.h"
#include "tests/support/test_device.h"

namespace sweep::engine_loss_test {

using nlohmann::json;

const json& cases() {
  static const json all = test::reference_json("loss_references.json").at("cases");
  return all;
}

// The arrays of `named`, in the layout of the network's parameters.
std::vector<float> joined(const json& named, const Network& network) {
  std::vector<float> values;
  for (const Parameter& parameter : network.parameters()) {
    const auto array = named.at(parameter.name).get<std::vector<float>>();
    values.insert(values.end(), array.begin(), array.end());
  }
  return values;
}

Subset samples_of(const json& reference) {
  auto set = std::make_shared<TensorDataset>();
  set->shape = reference.at("input").get<Shape>();
  set->samples = reference.at("samples").get<std::vector<float>>();
  if (reference.at("classes") > 0) {
    set->targets = reference.at("targets").get<std::vector<std::int32_t>>();
  } else {
    set->targets = reference.at("targets").get<std::vector<float>>();
  }
  return {set, 0, set->size()};
}

struct Training {
  explicit Training(const json& reference, int num_workers = 0)
      : network(test::network_from_json("net", reference.at("network")), reference.at("input").get<Shape>()),
        loader(samples_of(reference),
               {.batch_size = reference.at("batch_size"), .num_workers = num_workers}) {
    EngineOptions options{.device = test::device(), .batch_size = reference.at("batch_size")};
    options.optimizer = SgdOptions{};
    options.loss = make_loss(reference.at("loss").at("name").get<std::string>(),
                             test::arguments_from(reference.at("loss")));
    engine = make_engine(network, options);
    engine->set_parameters(joined(reference.at("weights"), network));
  }

  Network network;
  DataLoader loader;
  std::unique_ptr<Engine> engine;
};

void expect_training_of(const json& reference, int num_workers) {
  SCOPED_TRACE(reference.at("name").get<std::string>());
  Training training(reference, num_workers);
  const auto losses = reference.at("batch_losses").get<std::vector<double>>();
  std::size_t step = 0;
  for (std::uint32_t epoch = 0; epoch < reference.at("epochs"); ++epoch) {
    training.loader.begin_epoch(epoch);
    while (const Batch* batch = training.loader.next()) {
      training.engine->train(*batch, reference.at("lr").get<double>());
      const Totals totals = training.engine->take_totals();
      EXPECT_NEAR(totals.loss / static_cast<double>(totals.samples), losses.at(step),
                  2e-6 + 2e-6 * losses[step])
          << "step " << step;
      if (step++ > 0) continue;
      const std::vector<float> expected = joined(reference.at("gradients"), training.network),
                               gradients = training.engine->gradients();
      for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(gradients[i], expected[i], 2e-6) << i;
    }
  }
  EXPECT_EQ(step, losses.size());

  training.loader.begin_epoch(0);
  while (const Batch* batch = training.loader.next()) training.engine->evaluate(*batch);
  const Totals totals = training.engine->take_totals();
  ASSERT_EQ(totals.samples, 37);
  EXPECT_NEAR(totals.loss / 37, reference.at("loss_after").get<double>(), 1e-5);
  if (reference.at("classes") > 0) {
    EXPECT_EQ(totals.correct, reference.at("correct").get<std::int64_t>());
    EXPECT_EQ(totals.ranked, reference.contains("top5") ? 37 : 0);
    EXPECT_EQ(totals.in_top, reference.value("top5", 0));
    EXPECT_EQ(totals.numbers, 0);
  } else {
    EXPECT_EQ(totals.numbers, 37 * reference.at("outputs").get<std::int64_t>());
    EXPECT_NEAR(totals.absolute_error, reference.at("absolute_error").get<double>(), 1e-3);
    EXPECT_NEAR(totals.squared_error, reference.at("squared_error").get<double>(), 1e-3);
    EXPECT_EQ(totals.correct + totals.ranked, 0);
  }
}

TEST(Loss, TrainsAsPyTorchDoesInDouble) {
  ASSERT_GE(cases().size(), 32u);
  for (const json& reference : cases()) expect_training_of(reference, 0);
}

TEST(Loss, TrainsTheSameOnBatchesThatWorkersGather) {
  for (const json& reference : cases()) expect_training_of(reference, 2);
}

TEST(Loss, IsNotFiniteWhereAnOutputIsNot) {
  for (const json& reference : cases()) {
    SCOPED_TRACE(reference.at("name").get<std::string>());
    if (!reference.at("weights").contains("out.bias")) continue;
    json diverged = reference;
    diverged["weights"]["out.bias"].back() = 1e39;  // infinite as a float
    Training training(diverged);
    training.loader.begin_epoch(0);
    training.engine->evaluate(*training.loader.next());
    EXPECT_FALSE(std::isfinite(training.engine->take_totals().loss));
  }
}

json case_called(const char* name) {
  return *std::ranges::find_if(cases(), [&](const json& c) { return c.at("name") == name; });
}

TEST(Loss, CountsABatchWithoutWeightAsNothing) {
  json reference = case_called("mlp cross_entropy [0.5, 2, 1, 0.25] 4 of 4");
  reference["loss"]["class_weights"] = {1, 0, 1, 1};
  Training training(reference);
  const std::vector<float> before = training.engine->parameters(), samples(7 * 2, 0.5f);
  const std::vector<std::int32_t> labels = {1, 1};
  const std::vector<std::uint32_t> rows = {0, 1};
  training.engine->train({samples, labels, rows}, 0.1);
  EXPECT_EQ(training.engine->take_totals().loss, 0);
  EXPECT_EQ(training.engine->parameters(), before);
}

TEST(Loss, RefusesTargetsAndWeightsThatDoNotFit) {
  Training numbers(case_called("mlp mse 3 of 0"));
  const std::vector<float> samples(7 * 2), targets(2 * 2);
  const std::vector<std::uint32_t> rows = {0, 1};
  EXPECT_EQ(
      test::message_of<ShapeError>([&] {
        numbers.engine->train({samples, targets, rows}, 0.1);
      }),
      "samples of another size than the network's input [7], or targets of another size than its output");
  json reference = case_called("mlp mse 4 of 4");
  reference["loss"] = {{"name", "cross_entropy"}};
  Training classes(reference);
  const std::vector<float> fours(4 * 2);
  EXPECT_EQ(test::message_of<ShapeError>([&] {
              classes.engine->train({samples, fours, rows}, 0.1);
            }),
            "cross_entropy needs classes as targets, but those of the batch are numbers");
  reference["loss"]["class_weights"] = {1, 2, 3};
  EXPECT_EQ(test::message_of<ConfigError>([&] { Training{reference}; }),
            "loss: 3 class_weights for a network of 4 outputs");
}

}  // namespace sweep::engine_loss_test

// Every layer, forward and backward, against PyTorch in double precision.

#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "tests/core/kernels/cpu/simd_targets.h"
#include "tests/support/reference_data.h"
#include "tests/support/test_device.h"
#include "tests/support/test_networks.h"

namespace sweep::references_test {

const TensorFile& references() {
  static const TensorFile file = read_safetensors(test::reference_path("layer_gradients.safetensors"));
  return file;
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& [name, description] : references().metadata) {
    if (name.rfind("__", 0) != 0 && description.find("\"layers\"") != std::string::npos)
      names.push_back(name);
  }
  return names;
}

// One case of the reference file, on an engine with plain SGD.
struct Case {
  explicit Case(const std::string& name, int threads = 1)
      : description(nlohmann::json::parse(references().metadata.at(name))),
        network(test::network_from_json(name, description.at("layers")),
                description.at("input").get<Shape>()) {
    const TensorIndex index(references());
    const auto tensor = [&](const std::string& suffix) { return index.find(name + "/" + suffix); };
    for (const float x : tensor("input")->values) batch.pixels.push_back(static_cast<std::uint8_t>(x));
    for (const float x : tensor("labels")->values) batch.labels.push_back(static_cast<std::int32_t>(x));
    for (std::uint32_t i = 0; i < batch.labels.size(); ++i) batch.indices.push_back(i);
    logits = tensor("logits")->values;
    loss = tensor("loss")->values.at(0);
    parameters = test::parameters_from(references(), network, name + "/");
    gradients = test::parameters_from(references(), network, name + "/grad/");
    engine = make_engine(network,
                         {.device = test::device(), .threads = threads, .batch_size = batch.labels.size()});
    engine->set_parameters(parameters);
    engine->set_buffers(test::buffers_from(references(), network, name + "/"));
  }

  nlohmann::json description;
  Network network;
  test::OwnedBatch batch;
  std::vector<float> logits, parameters, gradients;
  double loss = 0;
  std::unique_ptr<Engine> engine;
};

class LayerReference : public testing::TestWithParam<std::string> {};

void expect_pytorchs_running_statistics(const Case& c, const std::string& name) {
  const std::vector<float> expected = test::buffers_from(references(), c.network, name + "/after/");
  const std::vector<float> buffers = c.engine->buffers();
  ASSERT_EQ(buffers.size(), expected.size());
  for (std::size_t i = 0; i < buffers.size(); ++i)
    EXPECT_NEAR(buffers[i], expected[i], 2e-6) << "running value " << i;
}

void expect_pytorchs_values(const std::string& name) {
  Case c(name);
  // Sums of up to a few hundred float products of order 1 differ from PyTorch's doubles by some 1e-6.
  std::vector<float> outputs(c.logits.size());
  c.engine->predict(c.batch.view(), outputs);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    EXPECT_NEAR(outputs[i], c.logits[i], 5e-6) << "logit " << i;

  c.engine->train(c.batch.view(), 1e-3);
  const Totals totals = c.engine->take_totals();
  EXPECT_NEAR(totals.loss / static_cast<double>(totals.samples), c.loss, 5e-6);
  const std::vector<float> gradients = c.engine->gradients();
  for (const Parameter& parameter : c.network.parameters()) {
    double largest = 0;
    for (std::size_t i = 0; i < parameter.count; ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(c.gradients[parameter.offset + i])));
    }
    for (std::size_t i = 0; i < parameter.count; ++i) {
      EXPECT_NEAR(gradients[parameter.offset + i], c.gradients[parameter.offset + i], 2e-6 + 1e-5 * largest)
          << parameter.name << "[" << i << "]";
    }
  }
  expect_pytorchs_running_statistics(c, name);
}

TEST_P(LayerReference, ForwardAndBackwardMatchPyTorchOnEveryInstructionSet) {
  test::for_each_simd_target([](const std::string& target) {
    SCOPED_TRACE(target);
    expect_pytorchs_values(GetParam());
  });
}

INSTANTIATE_TEST_SUITE_P(All, LayerReference, testing::ValuesIn(case_names()),
                         [](const auto& instance) { return instance.param; });

// Every loss, on floats, with classes and with numbers as targets: short trainings against PyTorch's in
// double.

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
  const json& targets = reference.at("targets");
  const TensorDataset set{reference.at("input").get<Shape>(),
                          reference.at("samples").get<std::vector<float>>(),
                          reference.at("classes") > 0 ? TargetArray(targets.get<std::vector<std::int32_t>>())
                                                      : TargetArray(targets.get<std::vector<float>>())};
  return {std::make_shared<const TensorDataset>(set), 0, set.size()};
}

struct Training {
  explicit Training(const json& reference, int num_workers = 0)
      : network(test::network_from_json("net", reference.at("network")), reference.at("input").get<Shape>()),
        loader(samples_of(reference),
               {.batch_size = reference.at("batch_size"), .num_workers = num_workers}) {
    const json& loss = reference.at("loss");
    engine = make_engine(network,
                         {.device = test::device(),
                          .batch_size = reference.at("batch_size"),
                          .optimizer = SgdOptions{},
                          .loss = make_loss(loss.at("name").get<std::string>(), test::arguments_from(loss))});
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
  for (const json& reference : cases()) {
    for (const int num_workers : {0, 2}) expect_training_of(reference, num_workers);
  }
}

TEST(Loss, IsNotFiniteWhereAnOutputIsNot) {
  for (const json& reference : cases()) {
    SCOPED_TRACE(reference.at("name").get<std::string>());
    if (!reference.at("weights").contains("out.bias")) continue;
    for (const double value : {std::numeric_limits<double>::quiet_NaN(), 1e39}) {  // infinite as a float
      for (std::size_t output = 0; output < reference.at("weights").at("out.bias").size(); ++output) {
        json diverged = reference;
        diverged["weights"]["out.bias"][output] = value;
        Training training(diverged);
        training.loader.begin_epoch(0);
        training.engine->evaluate(*training.loader.next());
        EXPECT_FALSE(std::isfinite(training.engine->take_totals().loss)) << value << " as output " << output;
      }
    }
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
  EXPECT_EQ(test::message_of<ShapeError>([&] {
              numbers.engine->train({samples, targets, rows}, 0.1);
            }),
            "a batch with 4 targets for its 2 samples, want 6");
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

}  // namespace sweep::references_test

// Every layer, forward and backward, against PyTorch in double precision.

#include "core/engine/engine.h"
#include "tests/core/kernels/cpu/simd_targets.h"
#include "tests/support/reference_data.h"
#include "tests/support/test_device.h"

#include "tests/support/test.h"

namespace sweep::gradients_test {

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
    const auto tensor = [&](const std::string& suffix) { return references().find(name + "/" + suffix); };
    for (const float x : tensor("input")->values) batch.pixels.push_back(static_cast<std::uint8_t>(x));
    for (const float x : tensor("labels")->values) batch.labels.push_back(static_cast<std::int32_t>(x));
    for (std::uint32_t i = 0; i < batch.labels.size(); ++i) batch.indices.push_back(i);
    logits = tensor("logits")->values;
    loss = tensor("loss")->values.at(0);
    parameters = test::parameters_from(references(), network, name + "/");
    gradients = test::parameters_from(references(), network, name + "/grad/");
    EngineOptions options{.device = test::device()};
    options.threads = threads;
    options.batch_size = batch.labels.size();
    engine = make_engine(network, options);
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

}  // namespace sweep::gradients_test

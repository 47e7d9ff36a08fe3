// What an engine counts of its parameters and gradients, against their values.

#include "core/engine/engine.h"
#include "tests/support/batch.h"
#include "tests/support/test_device.h"
#include "tests/support/test_networks.h"

#include "tests/support/test.h"

namespace sweep::counts_test {

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
  const auto engine = make_engine(network, {.device = test::device(), .batch_size = 50});
  std::vector<float> parameters = initial_parameters(network, 3);
  parameters[5] = 0;
  parameters[6] = 1e-40f;
  engine->set_parameters(parameters);
  std::vector<double> limits;
  for (double limit = -0.2; limit < 0.2; limit += 0.001) limits.push_back(limit);
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

}  // namespace sweep::counts_test

// What an engine counts of its parameters and gradients, against their values.

#include "core/engine/engine.h"
#include "tests/support/batch.h"
#include "tests/support/test_device.h"
#include "tests/support/test_networks.h"

#include "tests/support/test.h"

namespace sweep::counts_test {

HistogramCounts counted(std::span<const float> values, const std::vector<double>& limits) {
  HistogramCounts counts{.number = static_cast<std::int64_t>(values.size())};
  counts.buckets.resize(limits.size() + 1);
  bool first = true;
  for (const float value : values) {
    const auto wide = static_cast<double>(value);
    counts.sum += wide;
    counts.sum_squares += wide * wide;
    if (!std::isfinite(value)) continue;
    ++counts.buckets[static_cast<std::size_t>(std::upper_bound(limits.begin(), limits.end(), wide) -
                                              limits.begin())];
    counts.min = first ? wide : std::min(counts.min, wide);
    counts.max = first ? wide : std::max(counts.max, wide);
    first = false;
  }
  return counts;
}

void expect_same_sum(double sum, double expected, double tolerance) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(sum)) << sum;
  } else {
    EXPECT_NEAR(sum, expected, tolerance);
  }
}

void expect_counts(const std::vector<HistogramCounts>& counts, const Network& network,
                   const std::vector<float>& values, const std::vector<double>& limits) {
  ASSERT_EQ(counts.size(), network.parameters().size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Parameter& parameter = network.parameters()[i];
    SCOPED_TRACE(parameter.name);
    const HistogramCounts expected =
        counted(std::span(values).subspan(parameter.offset, parameter.count), limits);
    EXPECT_EQ(counts[i].number, expected.number);
    EXPECT_EQ(counts[i].min, expected.min);
    EXPECT_EQ(counts[i].max, expected.max);
    EXPECT_EQ(counts[i].buckets, expected.buckets);
    const auto number = static_cast<double>(expected.number);
    expect_same_sum(counts[i].sum, expected.sum, 1e-12 * number);
    expect_same_sum(counts[i].sum_squares, expected.sum_squares, 1e-12 * number);
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
  expect_counts(counts->values, network, engine->parameters(), limits);
  expect_counts(counts->gradients, network, engine->gradients(), limits);
  for (std::size_t i = 0; i < counts->values.size(); ++i) {
    EXPECT_EQ(counts->values[i].sum, again->values[i].sum);
    EXPECT_EQ(counts->gradients[i].sum_squares, again->gradients[i].sum_squares);
  }

  parameters[7] = std::numeric_limits<float>::quiet_NaN();
  parameters[8] = -std::numeric_limits<float>::infinity();
  engine->set_parameters(parameters);
  limits = {0};  // other limits are no trouble
  expect_counts(engine->parameter_histograms(limits)->values, network, parameters, limits);
}

}  // namespace sweep::counts_test

#include "tests/support/test_networks.h"

#include "tests/support/test.h"

namespace sweep::parameters_test {

TEST(InitialParameters, AreUniformInPyTorchsInterval) {
  const Network network(test::deeplizard(), {1, 28, 28});
  const std::vector<float> values = initial_parameters(network, 1);
  for (const Parameter& parameter : network.parameters()) {
    SCOPED_TRACE(parameter.name);
    // torch.nn.Linear and Conv2d: uniform in ±1/sqrt(fan_in), whose standard deviation is that over sqrt(3).
    const double bound = 1 / std::sqrt(static_cast<double>(parameter.fan_in));
    double sum = 0, square = 0;
    for (std::size_t i = 0; i < parameter.count; ++i) {
      const double x = values[parameter.offset + i];
      EXPECT_LE(std::abs(x), bound * 1.0001);
      sum += x;
      square += x * x;
    }
    if (parameter.count < 1000) continue;  // too few values for statistics
    const auto n = static_cast<double>(parameter.count);
    EXPECT_NEAR(sum / n, 0, 4 * bound / std::sqrt(3 * n));
    EXPECT_NEAR(std::sqrt(square / n), bound / std::sqrt(3.0), 0.03 * bound);
  }
}

TEST(InitialParameters, DependOnTheSeedAlone) {
  const Network network(test::mlp(), {1, 28, 28});
  EXPECT_EQ(initial_parameters(network, 5), initial_parameters(network, 5));
  EXPECT_NE(initial_parameters(network, 5), initial_parameters(network, 6));
}

TEST(InitialParameters, OfTwoParametersAreNotTheSameValues) {
  const Network network({"n", {test::flatten("f"), test::linear("a", 16), test::linear("b", 16)}}, {1, 4, 4});
  const std::vector<float> values = initial_parameters(network, 1);
  const auto& p = network.parameters();
  EXPECT_FALSE(std::equal(values.begin() + static_cast<std::ptrdiff_t>(p[0].offset),
                          values.begin() + static_cast<std::ptrdiff_t>(p[0].offset + p[0].count),
                          values.begin() + static_cast<std::ptrdiff_t>(p[2].offset)));
}

}  // namespace sweep::parameters_test

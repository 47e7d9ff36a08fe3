#include "core/network/arguments.h"

#include "core/network/layers.h"
#include "tests/support/test.h"

namespace sweep::arguments_test {

using Pair = std::array<std::int64_t, 2>;

const NamedType& conv2d() { return *find_type(layer_types(), "conv2d"); }

TEST(CompleteArguments, FillsInPyTorchsDefaults) {
  const Arguments a = complete_arguments(
      conv2d(), {{"out_channels", std::int64_t{6}}, {"kernel_size", std::int64_t{5}}}, "layer");
  EXPECT_EQ(std::get<Pair>(a.at("kernel_size")), (Pair{5, 5}));
  EXPECT_EQ(std::get<Pair>(a.at("stride")), (Pair{1, 1}));
  EXPECT_EQ(std::get<Pair>(a.at("padding")), (Pair{0, 0}));
  EXPECT_TRUE(std::get<bool>(a.at("bias")));
}

TEST(CompleteArguments, NamesTheMissingTheUnknownAndTheImpossible) {
  const auto expect = [](const Arguments& given, const std::vector<std::string>& parts) {
    const std::string message =
        test::message_of<ConfigError>([&] { complete_arguments(conv2d(), given, "layer \"c\""); });
    for (const std::string& part : parts) EXPECT_THAT(message, HasSubstr(part));
  };
  const ArgumentValue five = std::int64_t{5};
  expect({{"out_channels", five}}, {"layer \"c\"", "needs \"kernel_size\""});
  expect({{"kernelsize", five}}, {"\"kernelsize\"", "did you mean \"kernel_size\"?"});
  expect({{"out_channels", std::int64_t{0}}, {"kernel_size", five}}, {"got 0", "an integer >= 1"});
  expect({{"out_channels", 1.5}, {"kernel_size", five}}, {"got 1.5"});
}

TEST(ArgumentText, IsTheShortestThatReadsBackTheSame) {
  EXPECT_EQ(to_string(ArgumentValue(0.1)), "0.1");
  EXPECT_EQ(to_string(ArgumentValue(Pair{2, 3})), "[2, 3]");
  EXPECT_EQ(to_string(ArgumentValue(true)), "true");
}

}  // namespace sweep::arguments_test

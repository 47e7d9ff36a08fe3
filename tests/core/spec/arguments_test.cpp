#include "core/spec/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/network/layer_spec.h"

namespace sweep {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
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
  EXPECT_THAT(
      [] {
        complete_arguments(conv2d(), {{"out_channels", std::int64_t{6}}}, "layer \"c\"");
      },
      ThrowsMessage<ConfigError>(AllOf(HasSubstr("layer \"c\""), HasSubstr("needs \"kernel_size\""))));
  EXPECT_THAT(
      [] {
        complete_arguments(conv2d(), {{"kernelsize", std::int64_t{5}}}, "layer");
      },
      ThrowsMessage<ConfigError>(
          AllOf(HasSubstr("\"kernelsize\""), HasSubstr("did you mean \"kernel_size\"?"))));
  EXPECT_THAT(
      [] {
        complete_arguments(conv2d(), {{"out_channels", std::int64_t{0}}, {"kernel_size", std::int64_t{5}}},
                           "layer");
      },
      ThrowsMessage<ConfigError>(AllOf(HasSubstr("got 0"), HasSubstr("an integer >= 1"))));
  EXPECT_THAT(
      [] {
        complete_arguments(conv2d(), {{"out_channels", 1.5}, {"kernel_size", std::int64_t{5}}}, "layer");
      },
      ThrowsMessage<ConfigError>(HasSubstr("got 1.5")));
}

TEST(ArgumentText, IsTheShortestThatReadsBackTheSame) {
  EXPECT_EQ(to_string(ArgumentValue(0.1)), "0.1");
  EXPECT_EQ(to_string(ArgumentValue(Pair{2, 3})), "[2, 3]");
  EXPECT_EQ(to_string(ArgumentValue(true)), "true");
}

}  // namespace
}  // namespace sweep

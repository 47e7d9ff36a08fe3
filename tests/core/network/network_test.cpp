#include "core/network/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/core/network/test_networks.h"

namespace sweep {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

Shape output_of(LayerSpec layer, Shape input) {
  const Network network({"n", {std::move(layer), test::flatten("f")}}, std::move(input));
  return network.layers()[0].output;
}

TEST(Network, InfersTheShapesOfTheDeeplizardNetwork) {
  const Network network(test::deeplizard(), {1, 28, 28});
  EXPECT_EQ(network.layers()[0].output, (Shape{6, 24, 24}));
  EXPECT_EQ(network.layers()[2].output, (Shape{6, 12, 12}));
  EXPECT_EQ(network.layers()[3].output, (Shape{12, 8, 8}));
  EXPECT_EQ(network.layers()[6].output, (Shape{192}));
  EXPECT_EQ(network.output(), (Shape{10}));
}

TEST(Network, CountsParametersAndOperationsAsKnownOfTheDeeplizardNetwork) {
  const Network network(test::deeplizard(), {1, 28, 28});
  EXPECT_EQ(network.parameter_count(), 32998u);  // 156 + 1812 + 23160 + 7260 + 610
  EXPECT_EQ(network.forward_flops(), 464880);
  EXPECT_EQ(network.training_flops(), 1221840);
}

TEST(Network, NamesAndShapesOfParametersArePyTorchs) {
  const Network network(test::deeplizard(), {1, 28, 28});
  EXPECT_EQ(network.parameters()[0].name, "conv1.weight");
  EXPECT_EQ(network.parameters()[0].shape, (Shape{6, 1, 5, 5}));
  EXPECT_EQ(network.parameters()[1].name, "conv1.bias");
  EXPECT_EQ(network.parameters()[4].name, "fc1.weight");
  EXPECT_EQ(network.parameters()[4].shape, (Shape{120, 192}));
  EXPECT_EQ(network.parameters()[4].offset, 156u + 1812u);
}

// Values of torch.nn.Conv2d and torch.nn.MaxPool2d.
TEST(Network, WindowsRoundDownAsPyTorchs) {
  using Pair = std::array<std::int64_t, 2>;
  EXPECT_EQ(output_of({"c",
                       "conv2d",
                       {{"out_channels", std::int64_t{4}},
                        {"kernel_size", std::int64_t{3}},
                        {"stride", std::int64_t{2}},
                        {"padding", std::int64_t{1}}}},
                      {2, 8, 7}),
            (Shape{4, 4, 4}));
  EXPECT_EQ(
      output_of({"c", "conv2d", {{"out_channels", std::int64_t{4}}, {"kernel_size", Pair{2, 3}}}}, {2, 8, 7}),
      (Shape{4, 7, 5}));
  EXPECT_EQ(output_of(test::pool("p", 2), {2, 5, 7}), (Shape{2, 2, 3}));
  EXPECT_EQ(
      output_of(
          {"p",
           "max_pool2d",
           {{"kernel_size", std::int64_t{3}}, {"stride", std::int64_t{1}}, {"padding", std::int64_t{1}}}},
          {2, 5, 7}),
      (Shape{2, 5, 7}));
}

TEST(Network, LayersThatDoNotFitAreNamedWithTheirShapes) {
  EXPECT_THAT(
      ([] {
        Network({"n", {test::linear("fc", 10)}}, {1, 28, 28});
      }),
      ThrowsMessage<ShapeError>(AllOf(HasSubstr("\"fc\""), HasSubstr("[1, 28, 28]"), HasSubstr("flatten"))));
  EXPECT_THAT(([] {
                Network({"n", {test::conv("big", 6, 29), test::flatten("f")}}, {1, 28, 28});
              }),
              ThrowsMessage<ShapeError>(
                  AllOf(HasSubstr("\"big\""), HasSubstr("[29, 29]"), HasSubstr("[1, 28, 28]"))));
  EXPECT_THAT(([] {
                Network({"n", {test::flatten("f"), test::conv("c", 6, 5)}}, {1, 28, 28});
              }),
              ThrowsMessage<ShapeError>(AllOf(HasSubstr("\"c\""), HasSubstr("[784]"))));
  EXPECT_THAT(([] {
                Network({"n", {test::conv("c", 6, 5)}}, {1, 28, 28});
              }),
              ThrowsMessage<ShapeError>(HasSubstr("[6, 24, 24]")));
}

TEST(Network, UnknownTypesRepeatedNamesAndNoLayersAreErrors) {
  EXPECT_THAT(([] {
                Network({"n", {{"c", "conv2", {}}}}, {1, 28, 28});
              }),
              ThrowsMessage<ConfigError>(HasSubstr("did you mean \"conv2d\"?")));
  EXPECT_THAT(([] {
                Network({"n", {test::flatten("a"), test::relu("a")}}, {1, 28, 28});
              }),
              ThrowsMessage<ConfigError>(HasSubstr("two layers called \"a\"")));
  EXPECT_THROW(Network({"n", {}}, {1, 28, 28}), ConfigError);
}

}  // namespace
}  // namespace sweep

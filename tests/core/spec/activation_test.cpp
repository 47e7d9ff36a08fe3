#include "core/spec/activation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sweep {
namespace {

TEST(ActivationOf, KnowsItsLayerTypesAndNoOthers) {
  for (const ActivationType& row : activation_types()) {
    EXPECT_EQ(activation_of(row.type.name), row.activation) << row.type.name;
    EXPECT_LE(row.type.arguments.size(), 1U) << row.type.name;
  }
  EXPECT_EQ(activation_of("leaky_relu"), Activation::kLeakyRelu);
  EXPECT_EQ(activation_of("linear"), std::nullopt);
  EXPECT_EQ(activation_of(""), std::nullopt);
}

TEST(ActivationCoefficient, IsTheOneArgumentOrZero) {
  EXPECT_EQ(activation_coefficient("leaky_relu", {{"negative_slope", 0.25}}), 0.25f);
  EXPECT_EQ(activation_coefficient("gelu", {}), 0);
}

}  // namespace
}  // namespace sweep

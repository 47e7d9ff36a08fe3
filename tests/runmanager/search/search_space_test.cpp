#include "runmanager/search/search_space.h"

#include "tests/runmanager/search/made_domains.h"
#include "tests/support/test.h"

namespace sweep::search_space_test {

using enum DimensionKind;

TEST(SearchSpace, RealNumbersAreRoundedToStepsOfThePowerOfTen) {
  const Dimension dimension{.kind = kUniform, .low = 0, .high = 1};
  EXPECT_EQ(rounded(dimension, 0.123456789), 0.1235);
  EXPECT_EQ(rounded(dimension, 0.3), 0.3);
  EXPECT_EQ(rounded(dimension, -0.2), 0);
  EXPECT_EQ(rounded(dimension, 1.2), 1);
  EXPECT_EQ(rounded({.kind = kUniform, .low = 1000, .high = 1001}, 1000.123456), 1000.1235);
  EXPECT_EQ(rounded({.kind = kUniform, .low = 0, .high = 5e7}, 12345678), 12346000);
}

TEST(SearchSpace, RealNumbersOnALogarithmicScaleHaveThreeDigits) {
  const Dimension dimension{.kind = kLogUniform, .low = 1e-5, .high = 0.1};
  EXPECT_EQ(rounded(dimension, 0.00123456), 0.00123);
  EXPECT_EQ(rounded(dimension, 0.000999999), 0.001);
  EXPECT_EQ(rounded(dimension, 1e-9), 1e-5);
  EXPECT_EQ(rounded({.kind = kLogUniform, .low = 1, .high = 1e6}, 123456), 123000);
}

TEST(SearchSpace, ANarrowLogarithmicScaleHasMoreDigits) {
  EXPECT_EQ(rounded({.kind = kLogUniform, .low = 0.1, .high = 0.2}, 0.123456), 0.1235);
  EXPECT_EQ(rounded({.kind = kLogUniform, .low = 1, .high = 1.001}, 1.000123456), 1.000123);
}

TEST(SearchSpace, TheEndsAreKeptWithAllTheirDigits) {
  const Dimension dimension{.kind = kUniform, .low = 0.123456789, .high = 7.987654321};
  EXPECT_EQ(rounded(dimension, 0), dimension.low);
  EXPECT_EQ(rounded(dimension, 0.12347), 0.1235);
  EXPECT_EQ(rounded(dimension, 9), dimension.high);
}

TEST(SearchSpace, ARoundedZeroHasNoSign) {
  EXPECT_FALSE(std::signbit(rounded({.kind = kUniform, .low = -1, .high = 1}, -1e-9)));
}

TEST(SearchSpace, WhatDependsOnWhatDoesNotExistDoesNotExist) {
  const SearchDomain domain = test::domain_of_all_kinds();
  const SearchPoint all{0.5, 0.01, 5.0, 64.0, 1.0, 2.0};
  EXPECT_EQ(without_inactive(domain, all), all);
  EXPECT_EQ(without_inactive(domain, {0.5, 0.01, -1.0, 64.0, 1.0, 2.0}),
            (SearchPoint{0.5, 0.01, -1.0, std::nullopt, 1.0, 2.0}));
  EXPECT_EQ(without_inactive(domain, {0.5, 0.01, 5.0, 64.0, 0.0, 2.0}),
            (SearchPoint{0.5, 0.01, std::nullopt, std::nullopt, 0.0, 2.0}));
}

TEST(SearchSpace, PointsAreCountedWithConditionsAndRules) {
  EXPECT_EQ(number_of_points(test::domain_of_five_points()), 5u);
  EXPECT_EQ(number_of_points({.dimensions = {{.kind = kLogInteger, .low = 1.5, .high = 8.5},
                                             {.kind = kChoice, .choices = 3}}}),
            7u * 3u);
  EXPECT_EQ(number_of_points({}), 1u);
}

TEST(SearchSpace, OfInfinitelyOrVeryManyPointsThereIsNoNumber) {
  EXPECT_FALSE(number_of_points({.dimensions = {{.kind = kUniform, .low = 0, .high = 1}}}));
  EXPECT_EQ(number_of_points({.dimensions = {{.kind = kUniform, .low = 1, .high = 1}}}), 1u);
  EXPECT_FALSE(number_of_points({.dimensions = {{.kind = kInteger, .low = 1, .high = 1'000'001}}}));
  EXPECT_FALSE(
      number_of_points({.dimensions = std::vector<Dimension>(40, {.kind = kChoice, .choices = 1000})}));
}

TEST(SearchSpace, DimensionsWithoutValuesAreErrorsThatNameThem) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Dimension& bad :
       {Dimension{.kind = kUniform, .low = 1, .high = 0},
        Dimension{.kind = kUniform, .low = 0, .high = infinity},
        Dimension{.kind = kUniform, .low = std::nan(""), .high = 1},
        Dimension{.kind = kUniform, .low = -1.5e308, .high = 1.5e308},
        Dimension{.kind = kLogUniform, .low = 0, .high = 1},
        Dimension{.kind = kLogInteger, .low = 0, .high = 1},
        Dimension{.kind = kInteger, .low = 0.2, .high = 0.8},
        Dimension{.kind = kInteger, .low = 0, .high = 1e17}, Dimension{.kind = kChoice}}) {
    const SearchDomain domain{.dimensions = {{.kind = kChoice, .choices = 1}, bad}};
    const std::string message = test::message_of<ConfigError>([&] { check_domain(domain); });
    EXPECT_NE(message.find("dimension 1"), std::string::npos) << message;
  }
  EXPECT_NO_THROW(check_domain(test::domain_of_all_kinds()));
}

}  // namespace sweep::search_space_test

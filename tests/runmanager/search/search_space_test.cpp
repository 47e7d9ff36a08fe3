#include "runmanager/search/search_space.h"

#include "tests/runmanager/search/made_domains.h"

namespace sweep::search_space_test {

using enum DimensionKind;

TEST(SearchSpace, RealNumbersAreRoundedAsTheirRangeAsks) {
  const Dimension unit{.kind = kUniform, .low = 0, .high = 1},
      logarithmic{.kind = kLogUniform, .low = 1e-5, .high = 0.1},
      digits{.kind = kUniform, .low = 0.123456789, .high = 7.987654321};
  const struct {
    Dimension dimension;
    double value, rounded;
    const char* claim;
  } cases[] = {
      {unit, 0.123456789, 0.1235, "to steps of a power of ten"},
      {unit, 0.3, 0.3, "one of them"},
      {unit, -0.2, 0, "below the ends"},
      {unit, 1.2, 1, "above the ends"},
      {{.kind = kUniform, .low = 1000, .high = 1001}, 1000.123456, 1000.1235, "by the width of the range"},
      {{.kind = kUniform, .low = 0, .high = 5e7}, 12345678, 12346000, "also of a large one"},
      {logarithmic, 0.00123456, 0.00123, "to three digits on a logarithmic scale"},
      {logarithmic, 0.000999999, 0.001, "to the next power"},
      {logarithmic, 1e-9, 1e-5, "below its ends"},
      {{.kind = kLogUniform, .low = 1, .high = 1e6}, 123456, 123000, "above 1"},
      {{.kind = kLogUniform, .low = 0.1, .high = 0.2}, 0.123456, 0.1235, "more digits on a narrow one"},
      {{.kind = kLogUniform, .low = 1, .high = 1.001}, 1.000123456, 1.000123, "yet more"},
      {digits, 0, digits.low, "the ends keep all their digits"},
      {digits, 0.12347, 0.1235, "not what is next to them"},
      {digits, 9, digits.high, "both ends"},
  };
  for (const auto& [dimension, value, expected, claim] : cases)
    EXPECT_EQ(rounded(dimension, value), expected) << claim;
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

TEST(SearchSpace, PointsAreListedWithConditionsAndRules) {
  EXPECT_EQ(all_points(test::domain_of_five_points()).size(), 5u);
  EXPECT_EQ(all_points({.dimensions = {{.kind = kLogInteger, .low = 1.5, .high = 8.5},
                                       {.kind = kChoice, .choices = 3}}})
                .size(),
            7u * 3u);
  EXPECT_EQ(all_points({}).size(), 1u);
}

TEST(SearchSpace, InfinitelyOrVeryManyPointsAreNotListed) {
  EXPECT_FALSE(is_enumerable({.dimensions = {{.kind = kUniform, .low = 0, .high = 1}}}));
  EXPECT_EQ(all_points({.dimensions = {{.kind = kUniform, .low = 1, .high = 1}}}).size(), 1u);
  EXPECT_FALSE(is_enumerable({.dimensions = {{.kind = kInteger, .low = 1, .high = 1'000'001}}}));
  EXPECT_FALSE(is_enumerable({.dimensions = std::vector<Dimension>(40, {.kind = kChoice, .choices = 1000})}));
}

TEST(UnitScale, TheEndsOfRealNumbersAreZeroAndOne) {
  for (const DimensionKind kind : {kUniform, kLogUniform}) {
    const UnitScale scale({.kind = kind, .low = 0.01, .high = 100});
    EXPECT_EQ(scale.unit(0.01), 0);
    EXPECT_EQ(scale.unit(100), 1);
    EXPECT_EQ(scale.value(0), 0.01);
    EXPECT_EQ(scale.value(1), 100);
  }
}

TEST(UnitScale, TheMiddleOfALogarithmicScaleIsTheGeometricMean) {
  const UnitScale scale({.kind = kLogUniform, .low = 0.01, .high = 100});
  EXPECT_EQ(scale.value(0.5), 1);
  EXPECT_DOUBLE_EQ(scale.unit(10), 0.75);
}

TEST(UnitScale, CellsOfFinitelyManyValuesFillTheUnit) {
  for (const Dimension& dimension :
       {Dimension{.kind = kInteger, .low = -2, .high = 5},
        Dimension{.kind = kLogInteger, .low = 1, .high = 50}, Dimension{.kind = kChoice, .choices = 4}}) {
    const UnitScale scale(dimension);
    double end = 0;
    for (std::size_t i = 0; i < scale.count(); ++i) {
      const double value = scale.value_at(i);
      EXPECT_EQ(scale.index_of(value), i);
      const UnitCell cell = scale.cell(value);
      EXPECT_EQ(cell.low, end);
      EXPECT_LT(cell.low, cell.high);
      end = cell.high;
      EXPECT_EQ(scale.value(scale.unit(value)), value);
      EXPECT_EQ(scale.value(cell.low + 1e-9), value);
      EXPECT_EQ(scale.value(cell.high - 1e-9), value);
    }
    EXPECT_EQ(end, 1);
  }
}

TEST(UnitScale, IntegersAreEquallyLikelyAndOnALogarithmicScaleSmallOnesMore) {
  const UnitScale even({.kind = kInteger, .low = 1, .high = 4});
  EXPECT_DOUBLE_EQ(even.cell(3).low, 0.5);
  const UnitScale logarithmic({.kind = kLogInteger, .low = 1, .high = 4});
  EXPECT_DOUBLE_EQ(logarithmic.cell(1).high, std::log(1.5 / 0.5) / std::log(4.5 / 0.5));
}

TEST(UnitScale, OneValueIsEverywhere) {
  for (const Dimension& dimension : {Dimension{.kind = kUniform, .low = 0.3, .high = 0.3},
                                     Dimension{.kind = kLogUniform, .low = 0.3, .high = 0.3},
                                     Dimension{.kind = kInteger, .low = 3, .high = 3}}) {
    const UnitScale scale(dimension);
    EXPECT_EQ(scale.count(), 1u);
    for (const double unit : {0.0, 0.4, 1.0}) EXPECT_EQ(scale.value(unit), dimension.low);
    EXPECT_EQ(scale.unit(dimension.low), 0.5);
  }
}

TEST(UnitScale, ValuesBeyondTheEndsCountAsTheEnds) {
  const UnitScale real({.kind = kLogUniform, .low = 1, .high = 10}),
      whole({.kind = kInteger, .low = 1, .high = 4});
  EXPECT_EQ(real.unit(-5), 0);
  EXPECT_EQ(real.unit(50), 1);
  EXPECT_EQ(whole.unit(-5), whole.unit(1));
  EXPECT_EQ(whole.unit(50), whole.unit(4));
}

TEST(UnitScale, OnlyChoicesHaveNoOrderUnlessTheySaySo) {
  EXPECT_FALSE(UnitScale({.kind = kChoice, .choices = 2}).has_order());
  EXPECT_TRUE(UnitScale({.kind = kChoice, .choices = 2, .ordered = true}).has_order());
  EXPECT_TRUE(UnitScale({.kind = kInteger, .low = 0, .high = 1}).has_order());
}

}  // namespace sweep::search_space_test

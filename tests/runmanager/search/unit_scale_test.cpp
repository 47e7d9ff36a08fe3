#include "runmanager/search/unit_scale.h"

#include "tests/support/test.h"

namespace sweep::unit_scale_test {

using enum DimensionKind;

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

}  // namespace sweep::unit_scale_test

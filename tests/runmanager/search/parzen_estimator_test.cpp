#include "runmanager/search/parzen_estimator.h"

#include "tests/support/test.h"

namespace sweep::parzen_estimator_test {

using enum DimensionKind;

std::vector<WeightedPoint> with_weight_one(const std::vector<SearchPoint>& points) {
  std::vector<WeightedPoint> weighted;
  weighted.reserve(points.size());
  for (const SearchPoint& point : points) weighted.push_back({.point = &point});
  return weighted;
}

// The sum over a fine grid of the unit interval.
double integral(const UnitScale& scale, const ParzenEstimator& estimator) {
  double sum = 0;
  constexpr int kSteps = 20'000;
  if (scale.count() == 0) {
    for (int i = 0; i < kSteps; ++i)
      sum += std::exp(estimator.log_density({scale.value((i + 0.5) / kSteps)})) / kSteps;
  } else {
    for (std::size_t i = 0; i < scale.count(); ++i) {
      const UnitCell cell = scale.cell(scale.value_at(i));
      sum += std::exp(estimator.log_density({scale.value_at(i)})) * (cell.high - cell.low);
    }
  }
  return sum;
}

TEST(ParzenEstimator, IsADensityInEveryKindOfDimension) {
  for (const Dimension& dimension :
       {Dimension{.kind = kUniform, .low = 0, .high = 5},
        Dimension{.kind = kLogUniform, .low = 0.25, .high = 5},
        Dimension{.kind = kInteger, .low = 0, .high = 5}, Dimension{.kind = kInteger, .low = 0, .high = 5000},
        Dimension{.kind = kLogInteger, .low = 1, .high = 300}, Dimension{.kind = kChoice, .choices = 6},
        Dimension{.kind = kChoice, .choices = 6, .ordered = true}}) {
    const std::vector<UnitScale> scales{UnitScale(dimension)};
    for (const std::vector<SearchPoint>& points :
         {std::vector<SearchPoint>{}, {{1.0}}, {{5.0}, {std::nullopt}}, {{1.0}, {2.0}, {2.0}, {5.0}}}) {
      const ParzenEstimator estimator(scales, with_weight_one(points));
      EXPECT_NEAR(integral(scales[0], estimator), 1, 1e-2)
          << "kind " << static_cast<int>(dimension.kind) << ", points " << points.size();
    }
  }
}

TEST(ParzenEstimator, WithoutPointsAllIsEquallyLikely) {
  const std::vector<UnitScale> scales{UnitScale({.kind = kUniform, .low = 0, .high = 5}),
                                      UnitScale({.kind = kChoice, .choices = 3})};
  EXPECT_NEAR(ParzenEstimator(scales, {}).log_density({2.0, 1.0}), 0, 1e-12);
}

TEST(ParzenEstimator, IsHigherNearPointsAndMoreSoNearThoseThatWeighMore) {
  const std::vector<UnitScale> scales{UnitScale({.kind = kUniform, .low = 0, .high = 1})};
  const SearchPoint light{0.2}, heavy{0.8};
  const std::vector<WeightedPoint> points{{.point = &light, .weight = 1}, {.point = &heavy, .weight = 3}};
  const ParzenEstimator estimator(scales, points);
  EXPECT_GT(estimator.log_density({0.8}), estimator.log_density({0.2}));
  EXPECT_GT(estimator.log_density({0.2}), estimator.log_density({0.0}));
}

TEST(ParzenEstimator, ChoicesWithoutAnOrderAreAlikeOrNot) {
  const std::vector<UnitScale> scales{UnitScale({.kind = kChoice, .choices = 4})};
  const std::vector<SearchPoint> points{{1.0}, {1.0}};
  const ParzenEstimator estimator(scales, with_weight_one(points));
  EXPECT_GT(estimator.log_density({1.0}), estimator.log_density({2.0}));
  EXPECT_DOUBLE_EQ(estimator.log_density({0.0}), estimator.log_density({3.0}));
}

TEST(ParzenEstimator, NeighboursOfAnIntegerStayLikelyWithManyPoints) {
  const std::vector<UnitScale> scales{UnitScale({.kind = kInteger, .low = 1, .high = 8})};
  const std::vector<SearchPoint> points(25, SearchPoint{4.0});
  const ParzenEstimator estimator(scales, with_weight_one(points));
  EXPECT_GT(std::exp(estimator.log_density({5.0}) - estimator.log_density({4.0})), 0.2);
  EXPECT_LT(std::exp(estimator.log_density({8.0}) - estimator.log_density({4.0})), 0.1);
}

TEST(ParzenEstimator, APointSaysNothingOfADimensionItDoesNotHave) {
  const std::vector<UnitScale> scales{UnitScale({.kind = kUniform, .low = 0, .high = 1}),
                                      UnitScale({.kind = kUniform, .low = 0, .high = 1})};
  const std::vector<SearchPoint> points{{0.5, std::nullopt}};
  const ParzenEstimator estimator(scales, with_weight_one(points));
  EXPECT_DOUBLE_EQ(estimator.log_density({0.5, 0.1}), estimator.log_density({0.5, 0.9}));
  EXPECT_DOUBLE_EQ(estimator.log_density({0.5, 0.1}), estimator.log_density({0.5, std::nullopt}));
}

TEST(ParzenEstimator, RemembersWhichValuesGoTogether) {
  const std::vector<UnitScale> scales(2, UnitScale({.kind = kUniform, .low = 0, .high = 1}));
  std::vector<SearchPoint> points;
  for (int i = 0; i < 10; ++i) points.insert(points.end(), {SearchPoint{0.1, 0.1}, SearchPoint{0.9, 0.9}});
  const ParzenEstimator estimator(scales, with_weight_one(points));
  EXPECT_GT(estimator.log_density({0.1, 0.1}), estimator.log_density({0.1, 0.9}) + 1);
}

TEST(ParzenEstimator, DrawsWhatItsDensitySays) {
  const std::vector<UnitScale> scales{UnitScale({.kind = kInteger, .low = 0, .high = 7}),
                                      UnitScale({.kind = kChoice, .choices = 3}),
                                      UnitScale({.kind = kChoice, .choices = 2})};
  const std::vector<SearchPoint> points{{2.0, 1.0, 0.0}, {2.0, 2.0, std::nullopt}, {7.0, 1.0, 1.0}};
  const ParzenEstimator estimator(scales, with_weight_one(points));
  UnitRandom random(1, 0, SearchDraw::kCandidate);
  std::map<SearchPoint, double> counts;
  constexpr int kDraws = 50'000;
  for (int i = 0; i < kDraws; ++i) {
    const std::vector<double> units = estimator.sample(random);
    ++counts[{scales[0].value(units[0]), scales[1].value(units[1]), scales[2].value(units[2])}];
  }
  double chi_square = 0;
  for (const auto& [point, count] : counts) {
    const double expected = kDraws * std::exp(estimator.log_density(point)) / (8 * 3 * 2);
    chi_square += (count - expected) * (count - expected) / expected;
  }
  EXPECT_EQ(counts.size(), 48u);
  EXPECT_LT(chi_square, 82.7);  // 47 degrees of freedom: 0.1 % are above
}

}  // namespace sweep::parzen_estimator_test

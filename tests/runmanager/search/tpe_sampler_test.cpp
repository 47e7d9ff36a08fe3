#include "runmanager/search/parzen_estimator.h"
#include "tests/runmanager/search/made_domains.h"

namespace sweep::tpe_sampler_test {

using enum DimensionKind;
using test::trials_of, test::unit_cube;

using Function = std::function<double(const SearchPoint&)>;

double best_of(const Sampler& sampler, const Function& function, std::size_t trials) {
  double best = INFINITY;
  trials_of(sampler, trials, [&](std::size_t, const SearchPoint& point) {
    best = std::min(best, function(point));
    return Observation{.point = point, .value = function(point)};
  });
  return best;
}

// The medians over nine seeds of what `measure` says of TPE and of random points.
std::pair<double, double> medians(const SearchDomain& domain,
                                  const std::function<double(const Sampler&)>& measure) {
  std::vector<double> tpe, random;
  for (std::uint64_t seed = 50; seed < 59; ++seed) {
    tpe.push_back(measure(Sampler(domain, {.seed = seed, .learns = true})));
    random.push_back(measure(Sampler(domain, {.seed = seed})));
  }
  std::ranges::sort(tpe);
  std::ranges::sort(random);
  return {tpe[4], random[4]};
}

double square(double x) { return x * x; }

TEST(TpeSampler, FindsAMinimumMuchBetterThanAtRandom) {
  const Function function = [](const SearchPoint& point) {
    double sum = 0;
    for (const auto& x : point) sum += square(*x - 0.3);
    return sum;
  };
  const auto [tpe, random] =
      medians(unit_cube(4), [&](const Sampler& sampler) { return best_of(sampler, function, 80); });
  EXPECT_LT(tpe, random / 4);
}

TEST(TpeSampler, FindsAMinimumOfMixedDimensionsWithConditions) {
  SearchDomain domain{.dimensions = {{.kind = kChoice, .choices = 3},
                                     {.kind = kLogUniform, .low = 1e-5, .high = 1},
                                     {.kind = kUniform, .low = 0, .high = 1},
                                     {.kind = kInteger, .low = 1, .high = 10}}};
  domain.is_active = [](const SearchPoint& point, std::size_t d) { return d != 2 || point[0] == 1.0; };
  const Function function = [](const SearchPoint& point) {
    return square(std::log10(*point[1]) + 3) + square(*point[3] - 6) / 10 +
           (point[2] ? square(*point[2] - 0.9) : 0.5);
  };
  const auto [tpe, random] =
      medians(domain, [&](const Sampler& sampler) { return best_of(sampler, function, 80); });
  EXPECT_LT(tpe, random / 4);
}

// The area below (1, 11) that no trial's values are better than, of the goals x and (1 + 9 y) (1 - sqrt(x /
// …)).
double front_area(const Sampler& sampler, std::size_t trials) {
  std::vector<std::pair<double, double>> values;
  trials_of(sampler, trials, [&](std::size_t, const SearchPoint& point) {
    double sum = 0;
    for (std::size_t d = 1; d < point.size(); ++d) sum += *point[d];
    const double x = *point[0], g = 1 + 9 * sum / static_cast<double>(point.size() - 1);
    values.emplace_back(x, g * (1 - std::sqrt(x / g)));
    return Observation{.point = point, .value = x, .others = {values.back().second}};
  });
  std::ranges::sort(values);
  double area = 0, low = 11;
  for (const auto& [x, y] : values) {
    if (y >= low) continue;
    area += (1 - x) * (low - y);
    low = y;
  }
  return area;
}

TEST(TpeSampler, FindsAFrontOfTwoGoalsMuchBetterThanAtRandom) {
  const auto missing = [](const Sampler& sampler) {
    const double area = 10 + 2.0 / 3 - front_area(sampler, 80);  // less than the true front
    EXPECT_GT(area, 0);
    return area;
  };
  const auto [tpe, random] = medians(unit_cube(6), missing);
  EXPECT_LT(tpe, random / 3);
}

TEST(TpeSampler, ForgetsTheOldestOfMoreThanAThousandOthers) {
  const auto sampler = Sampler(unit_cube(1), {.seed = 7, .learns = true});
  std::vector<Observation> seen;
  for (int i = 0; i < 1200; ++i) {
    const double x = i / 1200.0;
    seen.push_back({.point = {x}, .value = square(x - 0.7)});
  }
  const auto point = sampler.suggest(seen.size(), seen);
  for (int i = 0; i < 100; ++i) seen[static_cast<std::size_t>(i)].point = {0.7};
  EXPECT_EQ(sampler.suggest(seen.size(), seen), point);
  for (int i = 300; i < 600; ++i) seen[static_cast<std::size_t>(i)].point = {0.71};
  EXPECT_NE(sampler.suggest(seen.size(), seen), point);
}

TEST(TpeSampler, TheFirstTrialsAreSpreadOverEveryDimension) {
  const auto sampler = Sampler({.dimensions = {{.kind = kUniform, .low = 0, .high = 1},
                                               {.kind = kInteger, .low = 1, .high = 10},
                                               {.kind = kChoice, .choices = 5}}},
                               {.seed = 8, .learns = true});
  std::set<double> tenths, integers;
  std::multiset<double> choices;
  for (std::size_t trial = 0; trial < kTpeStartTrials; ++trial) {
    const auto point = sampler.suggest(trial, {});
    tenths.insert(std::floor(*point->at(0) * 10));
    integers.insert(*point->at(1));
    choices.insert(*point->at(2));
  }
  EXPECT_EQ(tenths.size(), 10u);
  EXPECT_EQ(integers.size(), 10u);
  for (const double choice : {0., 1., 2., 3., 4.}) EXPECT_EQ(choices.count(choice), 2u);
}

// Twenty trials at 0.0 .. 0.95, the best at 0.5.
std::vector<Observation> valley() {
  std::vector<Observation> trials(20);
  for (int i = 0; i < 20; ++i) trials.at(i) = {.point = {i / 20.0}, .value = square(i / 20.0 - 0.5)};
  return trials;
}

// The mean distance from 0.5 of what is proposed next.
double distance_of_next(const std::vector<Observation>& trials) {
  double sum = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto sampler = Sampler(unit_cube(1), {.seed = seed, .learns = true});
    sum += std::abs(*sampler.suggest(trials.size(), trials)->at(0) - 0.5) / 50;
  }
  return sum;
}

TEST(TpeSampler, ProposesWhatIsNearTheBest) { EXPECT_LT(distance_of_next(valley()), 0.1); }

TEST(TpeSampler, StaysAwayFromTrialsThatFailedOrHaveNoValueYet) {
  const double before = distance_of_next(valley());
  for (const bool failed : {false, true}) {
    std::vector<Observation> trials = valley();
    for (int i = 0; i < 6; ++i) trials.push_back({.point = {0.47 + i / 100.0}, .failed = failed});
    EXPECT_GT(distance_of_next(trials), 1.3 * before) << failed;
  }
}

TEST(TpeSampler, AValueThatIsNotFiniteCountsAsAFailure) {
  std::vector<Observation> failed = valley(), infinite = valley(), nan = valley();
  failed.push_back({.point = {0.51}, .failed = true});
  infinite.push_back({.point = {0.51}, .value = -INFINITY});
  nan.push_back({.point = {0.51}, .value = NAN});
  const auto sampler = Sampler(unit_cube(1), {.seed = 5, .learns = true});
  EXPECT_EQ(sampler.suggest(21, failed), sampler.suggest(21, infinite));
  EXPECT_EQ(sampler.suggest(21, failed), sampler.suggest(21, nan));
}

TEST(TpeSampler, OnlyTheOrderOfTheValuesCounts) {
  std::vector<Observation> trials = valley(), scaled = valley();
  for (Observation& trial : scaled) trial.value = std::exp(*trial.value) * 1000 - 7;
  const auto sampler = Sampler(unit_cube(1), {.seed = 5, .learns = true});
  EXPECT_EQ(sampler.suggest(20, trials), sampler.suggest(20, scaled));
}

TEST(TpeSampler, GoesOnIfEveryTrialFails) {
  const auto sampler = Sampler(unit_cube(1), {.seed = 5, .learns = true});
  const auto fail = [](std::size_t, const SearchPoint& point) {
    return Observation{.point = point, .failed = true};
  };
  EXPECT_EQ(trials_of(sampler, 30, fail).size(), 30u);
}

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

}  // namespace sweep::tpe_sampler_test

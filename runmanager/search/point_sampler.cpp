#include <algorithm>
#include <utility>

#include "runmanager/search/point_source.h"
#include "runmanager/search/sampler.h"

namespace sweep {
namespace {

constexpr int kDrawsOfGivenPoint = 100;  // of what it leaves open, before another point is drawn

class RandomSampler final : public Sampler {
 public:
  RandomSampler(SearchDomain domain, std::uint64_t seed) : points_(std::move(domain)), seed_(seed) {}

  std::optional<SearchPoint> suggest(std::size_t trial, std::span<const Observation> earlier) const override {
    UnitRandom random(seed_, trial, SearchDraw::kPoint);
    return points_.random_point(random, earlier);
  }

 private:
  PointSource points_;
  std::uint64_t seed_;
};

class PointSampler final : public Sampler {
 public:
  PointSampler(SearchDomain domain, std::uint64_t seed, std::vector<SearchPoint> points,
               std::unique_ptr<Sampler> rest)
      : source_(std::move(domain)), seed_(seed), points_(std::move(points)), rest_(std::move(rest)) {}

  std::optional<SearchPoint> suggest(std::size_t trial, std::span<const Observation> earlier) const override {
    if (trial < points_.size()) {
      UnitRandom random(seed_, trial, SearchDraw::kPoint);
      for (int draw = 0; draw < kDrawsOfGivenPoint; ++draw) {
        SearchPoint point = completed(points_[trial], random);
        if (source_.is_new(point, earlier)) return point;
      }
    }
    return rest_->suggest(trial, earlier);
  }

 private:
  SearchPoint completed(SearchPoint point, UnitRandom& random) const {
    for (std::size_t d = 0; d < point.size(); ++d) {
      const double unit = random.unit();
      if (!point[d]) point[d] = source_.scales()[d].value(unit);
    }
    return without_inactive(source_.domain(), std::move(point));
  }

  PointSource source_;
  std::uint64_t seed_;
  std::vector<SearchPoint> points_;
  std::unique_ptr<Sampler> rest_;
};

}  // namespace

std::unique_ptr<Sampler> make_random_sampler(SearchDomain domain, std::uint64_t seed) {
  return std::make_unique<RandomSampler>(std::move(domain), seed);
}

std::unique_ptr<Sampler> make_point_sampler(SearchDomain domain, std::uint64_t seed,
                                            std::vector<SearchPoint> points, std::unique_ptr<Sampler> rest) {
  return std::make_unique<PointSampler>(std::move(domain), seed, std::move(points), std::move(rest));
}

}  // namespace sweep

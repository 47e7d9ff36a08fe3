#include <utility>

#include "runmanager/search/point_source.h"
#include "runmanager/search/sampler.h"

namespace sweep {
namespace {

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

}  // namespace

std::unique_ptr<Sampler> make_random_sampler(SearchDomain domain, std::uint64_t seed) {
  return std::make_unique<RandomSampler>(std::move(domain), seed);
}

}  // namespace sweep

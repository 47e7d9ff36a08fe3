// The density of points: a mixture of a kernel around each of them and a uniform prior.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runmanager/search/search_space.h"

namespace sweep {

/// A point with its weight in the mixture, compared with 1 of the prior. `point` has to outlive the
/// constructor.
struct WeightedPoint {
  const SearchPoint* point = nullptr;
  double weight = 1;  // > 0
};

/// A multivariate Parzen estimator on the unit cube, see UnitScale. Each kernel is a product over the
/// dimensions: a normal distribution cut off at 0 and 1; for finitely many values, its integrals over their
/// cells; for choices without an order, smoothed choices. If a point lacks a dimension, its kernel is uniform
/// there, so points of all branches of a conditional space count. Immutable, thread-safe.
class ParzenEstimator {
 public:
  /// `scales`: of all dimensions, has to outlive this. Without points it is the prior alone.
  ParzenEstimator(std::span<const UnitScale> scales, std::span<const WeightedPoint> points);

  /// Draws a place of the unit cube: one number per dimension.
  std::vector<double> sample(UnitRandom& random) const;

  /// The logarithm of the density at a point, over the dimensions that it has.
  double log_density(const SearchPoint& point) const;

 private:
  /// The different kernels of one dimension. Number 0 is uniform.
  struct Kernels {
    std::vector<std::size_t> of_point{};  // which one each point has, and after them the prior
    std::vector<double> mean;             // in [0, 1]; of choices without an order the index
    std::vector<double> precision;        // 1 / standard deviation; of choices without an order unused
    std::vector<double> log_precision;    // its logarithm
    std::vector<double> log_scale;        // added to the logarithm, so that the integral over [0, 1] is 1
    double log_same = 0, log_other = 0;   // of choices without an order: density at the point's and at others
  };

  Kernels fitted(std::size_t d, std::span<const WeightedPoint> points) const;
  static void smooth_choices(Kernels& kernels, const UnitScale& scale, std::size_t having);
  void fit_normals(Kernels& kernels, const UnitScale& scale, std::span<const double> means) const;
  /// The logarithms of the densities of each different kernel at a value.
  static std::vector<double> log_densities(const Kernels& kernels, const UnitScale& scale, double value);

  std::span<const UnitScale> scales_;
  std::vector<Kernels> kernels_;
  std::vector<double> log_weights_, cumulative_weights_;  // of the kernels, 1 in all
};

}  // namespace sweep

#include <algorithm>
#include <cmath>
#include <string>

#include "tbwriter/encoding.h"
#include "tbwriter/error.h"

namespace sweep::tbwriter {
namespace {

// As in TensorBoard's and PyTorch's writers: avoids division by zero and is too small to change real counts.
constexpr double kMinimumCount = 1e-7;

void check(std::span<const std::uint8_t> labels, std::span<const float> scores,
           std::span<const float> weights, int thresholds) {
  if (thresholds < 2 || thresholds > 127) {
    throw UsageError("a PR curve has " + std::to_string(thresholds) + " thresholds, but needs 2 to 127");
  }
  if (labels.size() != scores.size() || (!weights.empty() && weights.size() != labels.size())) {
    throw UsageError("a PR curve has " + std::to_string(labels.size()) + " labels, " +
                     std::to_string(scores.size()) + " scores and " + std::to_string(weights.size()) +
                     " weights, but needs as many of each");
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] > 1) {
      throw UsageError("a PR curve's label " + std::to_string(i) + " is " + std::to_string(labels[i]) +
                       ", but must be 0 or 1");
    }
    if (!(scores[i] >= 0.0f && scores[i] <= 1.0f)) {
      throw UsageError("a PR curve's score " + std::to_string(i) + " is " + std::to_string(scores[i]) +
                       ", but must be from 0 to 1");
    }
    if (!weights.empty() && !(weights[i] >= 0.0f && std::isfinite(weights[i]))) {
      throw UsageError("a PR curve's weight " + std::to_string(i) + " is " + std::to_string(weights[i]) +
                       ", but must be a finite number of at least 0");
    }
  }
}

}  // namespace

std::vector<float> make_pr_curve(std::span<const std::uint8_t> labels, std::span<const float> scores,
                                 std::span<const float> weights, int thresholds) {
  check(labels, scores, weights, thresholds);
  const auto n = static_cast<std::size_t>(thresholds);
  std::vector<double> positive(n), negative(n);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto bucket = static_cast<std::size_t>(scores[i] * static_cast<float>(thresholds - 1));
    (labels[i] == 1 ? positive : negative)[bucket] += weights.empty() ? 1.0 : static_cast<double>(weights[i]);
  }
  // Each score is counted once, in the bucket below it; suffix sums give the
  // counts at or above each threshold.
  for (std::size_t i = n - 1; i-- > 0;) {
    positive[i] += positive[i + 1];
    negative[i] += negative[i + 1];
  }
  std::vector<float> curve(6 * n);
  for (std::size_t i = 0; i < n; ++i) {
    const double tp = positive[i], fp = negative[i], tn = negative[0] - fp, fn = positive[0] - tp;
    const double row[6] = {
        tp, fp, tn, fn, tp / std::max(kMinimumCount, tp + fp), tp / std::max(kMinimumCount, tp + fn)};
    for (std::size_t k = 0; k < 6; ++k) curve[k * n + i] = static_cast<float>(row[k]);
  }
  return curve;
}

}  // namespace sweep::tbwriter

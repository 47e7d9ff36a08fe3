// Precision and recall at evenly spaced thresholds. Not part of the installed interface.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sweep::tbwriter {

/// Returns [6, thresholds]: true positives, false positives, true negatives, false negatives, precision,
/// recall at the thresholds i / (thresholds − 1). A score is positive if it is not below the threshold.
/// `weights` is empty or has one value per label. Throws UsageError for a label other than 0 and 1, a score
/// outside [0, 1], fewer than 2 or more than 127 thresholds, and numbers that do not match. Thread-safe.
std::vector<float> make_pr_curve(std::span<const std::uint8_t> labels, std::span<const float> scores,
                                 std::span<const float> weights, int thresholds);

}  // namespace sweep::tbwriter

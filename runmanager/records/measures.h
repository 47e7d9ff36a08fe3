// What tells how good a network is, beside its loss and, for classes, its accuracy.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/data/sample_set.h"
#include "core/engine/engine.h"

namespace sweep {

/// One way to measure, with its names. In files the values of the validation and test sets have "validation_"
/// and "test_" in front.
struct Measure {
  std::string_view key;                                  // in run.json and results: "mae"
  std::string_view title;                                // in tables: "MAE"
  std::string_view train_tag, validation_tag, test_tag;  // in TensorBoard: "MAE/train"
  bool is_share;                                         // shown in percent
};

/// Accuracy within the five largest outputs, for more than ten classes; and, for targets that are numbers,
/// over all of them together: the mean absolute error, the root of the mean squared error, and the
/// coefficient of determination, 1 − Σ (prediction − target)² / Σ (target − mean of its column)².
inline constexpr std::array<Measure, 4> kMeasures = {
    {{"top5_accuracy", "top-5", "Top-5 Accuracy/train", "Top-5 Accuracy/validation", "Top-5 Accuracy/test",
      true},
     {"mae", "MAE", "MAE/train", "MAE/validation", "MAE/test", false},
     {"rmse", "RMSE", "RMSE/train", "RMSE/validation", "RMSE/test", false},
     {"r2", "R2", "R2/train", "R2/validation", "R2/test", false}}};
inline constexpr std::size_t kMae = 1, kRmse = 2, kR2 = 3;  // their places

/// A value per measure; none where it makes no sense for the targets.
using Measures = std::array<std::optional<double>, kMeasures.size()>;

/// The measures of `totals`. `variation`: of the same samples' targets; 0: not known, or there is none.
Measures measures_of(const Totals& totals, double variation);

/// Σ (target − mean of its column)² over the samples; 0 for classes.
double target_variation(const Samples& samples);

/// "0.1234", or "12.34%" for a share; "" for nothing.
std::string measure_text(const Measure& measure, const std::optional<double>& value);

}  // namespace sweep

// Scores of predictions: confusion matrix, precision, recall and F1 of classes; errors of numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runmanager/inference/predictor.h"
#include "runmanager/records/run_metric.h"

namespace sweep {

/// One class against the rest. A ratio with the divisor 0 is 0, as in scikit-learn.
struct ClassScores {
  std::int64_t samples = 0;    // of this class
  std::int64_t predicted = 0;  // as this class
  std::int64_t right = 0;      // both
  double precision = 0;        // right / predicted
  double recall = 0;           // right / samples
  double f1 = 0;               // 2 precision recall / (precision + recall)
};

/// Errors of one target.
struct TargetScores {
  double mae = 0, rmse = 0;
  std::optional<double> r2;  // none if all targets are the same
};

/// `counts`: the confusion matrix, [label, predicted], `classes` each way.
std::vector<ClassScores> class_scores(std::span<const std::int64_t> counts, std::size_t classes);

/// The unweighted mean over the classes that samples have or that were predicted; its integers are sums.
ClassScores mean_scores(std::span<const ClassScores> classes);

/// A pair of classes that were taken for each other.
struct Confusion {
  std::size_t label = 0, predicted = 0;
  std::int64_t count = 0;
};

/// The most frequent mistakes first; at most `limit`.
std::vector<Confusion> most_frequent_mistakes(std::span<const std::int64_t> counts, std::size_t classes,
                                              std::size_t limit);

/// The scores of `predictions` against `targets`, both [samples, targets].
std::vector<TargetScores> target_scores(std::span<const float> predictions, std::span<const float> targets,
                                        std::size_t columns);

/// A part of the data, evaluated.
struct RunScores {
  std::string part;  // "train", "validation" or "test"
  std::int64_t samples = 0;
  /// How good the network is on these samples, as metrics of training: loss, accuracy, MAE and so on.
  std::vector<std::pair<const Metric*, double>> metrics;
  std::vector<std::string> names;       // of the classes, or of the targets
  std::vector<std::int64_t> confusion;  // [label, predicted]; empty for numbers
  std::vector<ClassScores> classes;     // likewise
  std::vector<TargetScores> targets;    // empty for classes
};

/// Evaluates a part in one pass, in evaluation mode, with the loss that the run was trained with.
RunScores score_samples(const LoadedRun& run, Predictor& predictor, const Subset& samples,
                        std::string_view part);

/// The part called `part`. Empty: test, if there is one, else validation, else train, whose name `part`
/// becomes. Throws ConfigError if it has no samples, or for another word.
Subset part_of(const Dataset& data, std::string& part);

}  // namespace sweep

// Outputs of a trained network, as people read them, and their scores: confusion matrix, precision, recall
// and F1 of classes; errors of numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/data/tensor_dataset.h"
#include "core/engine/engine.h"
#include "runmanager/config/metrics.h"
#include "runmanager/inference/trained_run.h"

namespace sweep {

/// What the values of a prediction are.
enum class PredictionKind {
  kProbabilities,  // of classes, by softmax: they add up to 1
  kSigmoids,       // of classes, each by itself: a network of several outputs with bce_with_logits
  kScores,         // of classes: the outputs themselves, for a loss that compares them with 0 and 1
  kNumbers         // the targets' values; of bce_with_logits the sigmoid
};

/// The kind of values that the run's network gives, by its targets and its loss.
PredictionKind prediction_kind(const LoadedRun& run);

/// Makes a batch of samples; nothing reads its targets.
std::shared_ptr<const TensorDataset> unlabelled_set(const Shape& shape, SampleArray values);

/// Predicts by one run's network. Not thread-safe.
class Predictor {
 public:
  /// `device`: as in a sweep file; empty: the one that trained the run if it can be used here, else the CPU.
  /// `threads`: of the CPU; 0: all. Throws ConfigError if the device that is asked for cannot be used. Keeps
  /// a reference to `run`.
  Predictor(const LoadedRun& run, const std::string& device = "", int threads = 0);

  PredictionKind kind() const { return kind_; }
  /// What the columns of predict() are: classes, or targets. Outputs beyond the data's classes are "output
  /// N".
  const std::vector<std::string>& names() const { return names_; }

  /// A row of names().size() values per sample.
  std::vector<float> predict(const Subset& samples);
  /// The same from outputs of the network as it gives them, a row of `network.output()` values per sample.
  std::vector<float> from_outputs(std::vector<float> outputs) const;

  Engine& engine() { return *engine_; }

 private:
  const LoadedRun& run_;
  PredictionKind kind_;
  std::vector<std::string> names_;
  std::unique_ptr<Engine> engine_;
};

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

// Outputs of a trained network, as people read them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/data/tensor_dataset.h"
#include "core/engine/engine.h"
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

}  // namespace sweep

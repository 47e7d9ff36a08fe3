// What a run measures without training: the validation set after every epoch, the test set and the
// predictions at its end; and whether it has diverged: once a loss or a weight is infinite or NaN, nothing
// that follows is of any use.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "runmanager/records/checkpoint.h"
#include "runmanager/records/run_event.h"
#include "runmanager/training/prepared_run.h"
#include "runmanager/training/run_recorder.h"

namespace sweep {

class DivergedError : public TrainingError {
 public:
  using TrainingError::TrainingError;
};

/// The position in a training, for messages.
struct TrainingPlace {
  int epoch = 1;                    // from 1
  std::int64_t begin = 0, end = 0;  // batches of the epoch, from 0, that the totals are of: begin … end − 1
  double lr = 0;
};

/// Throws DivergedError unless the loss of these training batches is finite.
void check_training_loss(const Totals& totals, const TrainingPlace& place);
/// The same for the weights. The loss of a batch is that before its update, so only the weights tell what an
/// epoch's last update has done.
void check_weights(const Weights& weights, const TrainingPlace& place);

/// Evaluates one run and hands the results to its recorder. Keeps references to all arguments of the
/// constructor. Throws DivergedError where a loss is not finite. Not thread-safe.
class RunEvaluation {
 public:
  /// `after_batch` is called after each batch of a pass and ends the pass by throwing.
  RunEvaluation(const PreparedRun& run, RunRecorder& recorder, const ReportEvent& report,
                std::function<void()> after_batch)
      : run_(run), recorder_(recorder), report_(report), after_batch_(std::move(after_batch)) {}

  /// The validation set before the first epoch, which makes epoch 0. Returns its record.
  const EpochRecord& validate_untrained(Engine& engine, double lr);

  /// The validation set after an epoch; nothing without one. `keeps_outputs`: predictions() follows without
  /// training in between, so that this pass is its pass, too.
  void validate(Engine& engine, const TrainingPlace& place, bool keeps_outputs);

  /// Batches of the validation set while an epoch trains, as `log` asks for them; `step`: batches that the
  /// run has trained before. To be called right after Engine::take_totals(): the totals of training must not
  /// mix with these. Returns nothing without a validation set, else the sums.
  std::optional<Totals> validation_batches(Engine& engine, const TrainingPlace& place,
                                           std::int64_t step) const;

  /// Time and memory of the layers in one step; leaves the state of the training alone.
  void profile(Engine& engine) const;

  /// The test set, into the metrics of the run; nothing without one. `keeps_outputs`: as for validate().
  void test(Engine& engine, const TrainingPlace& place, bool keeps_outputs);

  /// PR curves, confusion matrix and misclassified samples, as `log` asks for them. Uses the outputs of a
  /// pass that has kept them.
  void predictions(Engine& engine);

 private:
  bool has_classes() const { return run_.data->target_names.empty(); }
  // Whether predictions() shows the samples of this part.
  bool is_shown(const Subset& part) const;
  Totals evaluate(Engine& engine, const Subset& samples, std::string_view part, const TrainingPlace& place,
                  bool keeps_outputs);

  const PreparedRun& run_;
  RunRecorder& recorder_;
  const ReportEvent& report_;
  const std::function<void()> after_batch_;
  std::optional<std::vector<float>> outputs_;  // of the shown samples, from a pass that kept them
};

}  // namespace sweep

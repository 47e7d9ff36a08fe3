// Finds a run's best epoch, and when it has waited long enough for a better one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "runmanager/config/run_config.h"
#include "runmanager/records/results.h"
#include "runmanager/records/run_files.h"

namespace sweep {

/// Watches one metric of a run's epochs. What it says depends on the epochs alone, so that a resumed run,
/// which shows it the earlier ones again, ends with the same epoch. Not thread-safe.
class EpochWatch {
 public:
  /// `patience` 0: never ends a run. Epochs are better by more than stop.min_delta.
  explicit EpochWatch(StopSpec stop) : stop_(std::move(stop)) {}

  /// The next epoch, from 1 on. Returns whether it is the best so far. One with NaN is not; one without the
  /// metric does not count.
  bool add(const EpochRecord& epoch);

  /// Whether the run ends now.
  bool has_ended() const { return stop_.patience > 0 && without_improvement_ >= stop_.patience; }
  /// Whether the run ends with the next epoch unless that one is better.
  bool may_end() const { return stop_.patience > 0 && without_improvement_ + 1 >= stop_.patience; }
  /// "Loss/validation has not improved for 3 epochs; it was best in epoch 2: 0.3432".
  std::string reason() const;

 private:
  StopSpec stop_;
  std::optional<double> best_;
  int best_epoch_ = 0, without_improvement_ = 0;
};

/// The watch of a run; nothing if its best epoch is not needed. Without "stop" it never ends the run, and
/// the best epoch is that of the smallest loss: of validation, if there is a validation set.
std::optional<EpochWatch> make_epoch_watch(const RunConfig& config, bool has_validation);

/// Brings the best epoch's checkpoint of a run that goes on after `last_epoch` in line with
/// its checkpoint, which says that it is of `best_epoch`; nothing: there is none yet, because the run was
/// begun without keeps_best(). Returns whether the file is there. Throws IoError.
bool resume_best_file(const RunConfig& config, const std::filesystem::path& run_directory,
                      std::optional<int> best_epoch, int last_epoch);

}  // namespace sweep

// The files of one run while it is trained: TensorBoard events and run.json. Not part of the installed
// interface, which is RunManager.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "core/network/network.h"
#include "runmanager/records/results.h"
#include "runmanager/records/run_builder.h"
#include "runmanager/tensorboard/run_log.h"
#include "runmanager/training/run_tracker.h"

namespace sweep {

struct RecorderOptions {
  std::filesystem::path directory;         // of the sweep; the run has a directory below it
  std::function<double()> clock;           // seconds, monotonic
  nlohmann::ordered_json provenance = {};  // of program, machine and data, for run.json
  /// What the final run.json survives. Survives::kKill leaves syncing to the caller (see DiskSync).
  Survives survives = Survives::kKill;
  /// Whether several processes share the sweep, so that one that was cut off from the others may still write.
  bool shared = false;
  /// Called before anything is written that others would take for the run's; may throw. Empty: nothing to
  /// check.
  std::function<void()> check_owner = {};
  /// The learning rate of an epoch, counted from 0, for events that are written again. Empty: not known.
  std::function<std::optional<double>(int)> learning_rate = {};
};

/// What a run trains, if it is this project's. Both or neither.
struct TrainedNetwork {
  const Network* network = nullptr;
  const DataLoader* loader = nullptr;
};

/// What was measured of an epoch until its record is complete.
struct OpenEpoch {
  double begin = 0;               // later by what does not count as training
  std::optional<double> seconds;  // of training, once it has ended
  double wait_seconds = 0;        // of these: for data
  Totals training;
  bool has_classes = true;      // no target so far was a number
  bool counts_correct = false;  // of any sample
  std::vector<std::pair<const Metric*, double>> validation;
  std::optional<double> device_seconds, communication_seconds;
  std::map<std::string, double> own_metrics;
  std::vector<std::pair<std::string, tbwriter::Histogram>> histograms;  // of all parameters

  /// The record of epoch `number`, from 1, after the end of training. `training_variation`:
  /// target_variation() of the training samples.
  EpochRecord record(int number, double training_variation) const;
};

/// Writes the files of one run, from its first event to its final run.json. Keeps references to what
/// `trained` names and to `record`, which hold until end() has returned. `record` is updated with every call,
/// so that its owner always has the current state. It is the RunTracker of the program's own training loop.
///
/// Every call may throw IoError. Not thread-safe, except flush(). The destructor closes the events file and
/// leaves run.json as it is: the run then counts as interrupted, as after the end of its process.
class RunRecorder final : public RunTracker {
 public:
  /// Starts the run: removes the files of an earlier run of this name, opens the events file, and writes
  /// configuration, hparams, and the graph and the images of the first batch if `trained` has them. Starts
  /// the run's clock. Throws ConfigError if the run has no name.
  RunRecorder(RecorderOptions options, const Run& run, const TrainedNetwork& trained, RunRecord& record);

  /// Resumes the run where `progress` was made: cuts off the events that came later and continues the record
  /// and its clock. A power cut may have left fewer events than `progress` was made with: the points of those
  /// epochs are written again, or if even the first of them is lost, the events from the beginning.
  /// Histograms, points per batch and the profile of lost epochs stay lost. Throws DataError if the events
  /// cannot be read.
  RunRecorder(RecorderOptions options, const Run& run, const TrainedNetwork& trained,
              const RunProgress& progress, RunRecord& record);

  /// Between epochs: how far events and training have got, which a checkpoint keeps so that the run can be
  /// resumed. The events are in their file once flush() has returned. `batches`: trained so far in the run.
  RunPosition position(std::int64_t batches) const;
  /// Returns when all events so far are in their file, and also on disk for Survives::kPowerCut. Thread-safe.
  void flush(Survives survives);

  /// How many epochs of a resumed run were lost, and written again.
  std::size_t restored_epochs() const { return restored_epochs_; }

  /// Before the first epoch of a run that continues another: takes over what that one has recorded, and
  /// writes the points of its epochs.
  void inherit(const RunRecord& parent);

  /// Before the first epoch: sums over the validation set, which make epoch 0, and target_variation() of its
  /// samples. Writes its scalars and returns its record.
  const EpochRecord& record_untrained(const Totals& totals, double variation);

  /// Writes one point of the charts per batch, of batches of the validation set. `seconds`, which they took,
  /// do not count as training.
  void record_validation_batch(const Totals& totals, std::int64_t batch, double seconds);

  /// Writes the end of the session and the final run.json, and closes the events file. No other call may
  /// follow, not even if this one throws.
  void end(RunStatus status, std::string_view reason);

 private:
  friend class RunTracker;

  double now() const { return options_.clock(); }
  /// Throws std::logic_error, naming the call, if the run has no network of this project.
  const Network& network(const char* call) const;
  /// Throws DeviceError, naming both, if the engine is on another device than the record says.
  void check_device(const Engine& engine) const;
  void stop_clock();
  const EpochRecord& close_epoch();
  void save_record(Survives survives);
  void sync_events() const;
  void check_owner() const {
    if (options_.check_owner) options_.check_owner();
  }
  /// The run's events files, with their sizes.
  std::map<std::string, std::uint64_t> own_event_files() const;
  /// What the events begin with: hparams, configuration, layout, graph and images.
  void begin_events(const Run& run);
  /// Goes on with the events after those that are there, with the steps `recorded`, from `next_step` on; or
  /// begins them anew.
  void restore_events(const Run& run, std::set<std::int64_t> recorded, std::int64_t next_step);
  /// The points of an epoch that was recorded before; of all of them.
  void write_epoch(const EpochRecord& epoch);
  void write_epochs() {
    for_each_epoch(record_, [this](const EpochRecord& epoch) { write_epoch(epoch); });
  }
  /// The last finished epoch, or 0; and the one that is open or comes next. Steps in TensorBoard are epochs.
  int last_epoch() const { return static_cast<int>(record_.epochs.size()); }
  int next_epoch() const { return last_epoch() + 1; }

  const RecorderOptions options_;
  const std::filesystem::path directory_;
  RunRecord& record_;
  const TrainedNetwork trained_;
  double run_begin_ = 0;  // of the first start, moved by the time in which the run was not trained
  double last_save_ = 0;
  std::vector<std::string> earlier_files_;  // RunPosition::earlier_files
  std::optional<double> learning_rate_;
  std::optional<OpenEpoch> epoch_;
  std::size_t restored_epochs_ = 0;
  std::optional<RunLog> log_;  // set by both constructors, once the run's directory is prepared
};

/// Records a run that cannot be trained here. `status` is kSkipped, or kFailed if that counts as a failure:
/// only then it has events, with hparams, the status and the reason. Throws IoError.
void record_skipped_run(const RecorderOptions& options, const Run& run, RunStatus status,
                        std::string_view reason, RunRecord& record);

/// Ends a run as `record` says: one that was pruned, or whose process ended before it did. Without epochs, it
/// gets those that run.json has of the same run. Writes the end of
/// the session, with the reason, after its events, in the place of an end that they have, and `record` to
/// run.json, if it was pruned with the sizes of its events. Nothing else may write to the run's files. Throws
/// IoError, and DataError if the events cannot be read.
void record_end(const RecorderOptions& options, const Run& run, RunRecord& record);

}  // namespace sweep

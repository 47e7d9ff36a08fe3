// Records one run while it is trained: TensorBoard events, run.json and times. Not part of the installed
// interface, which is RunManager.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
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
#include "runmanager/training/epoch_accumulator.h"

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
};

/// What a run trains, if it is this project's. Both or neither.
struct TrainedNetwork {
  const Network* network = nullptr;
  const DataLoader* loader = nullptr;
};

/// Writes the files of one run, from its first event to its final run.json. Keeps references to what
/// `trained` names and to `record`, which hold until end() has returned. `record` is updated with every call,
/// so that its owner always has the current state.
///
/// Calls follow the training loop: begin_epoch, track_*, end_epoch, …, end. Every call may throw IoError. Not
/// thread-safe, except flush(). The destructor closes the events file and leaves run.json as it is: the run
/// then counts as interrupted, as after the end of its process.
class RunRecorder {
 public:
  /// Starts the run: removes the files of an earlier run of this name, opens the events file, and writes
  /// configuration, hparams, and the graph and the images of the first batch if `trained` has them. Encoded
  /// images are kept in `grids`, for the next runs. Starts the run's clock. Throws ConfigError if the run has
  /// no name.
  RunRecorder(RecorderOptions options, const Run& run, const TrainedNetwork& trained, ImageGridCache& grids,
              RunRecord& record);

  /// Resumes the run where `progress` was made: cuts off the events that came later and continues the record
  /// and its clock. A power cut may have left fewer events than `progress` was made with. restore_events()
  /// then has to be called next. Throws DataError if the events cannot be read.
  RunRecorder(RecorderOptions options, const Run& run, const TrainedNetwork& trained,
              const RunProgress& progress, RunRecord& record);

  RunRecorder(const RunRecorder&) = delete;
  RunRecorder& operator=(const RunRecorder&) = delete;

  const RunRecord& record() const { return record_; }
  /// The run's directory. A caller may put files of its own there.
  const std::filesystem::path& directory() const { return directory_; }
  bool in_epoch() const { return epoch_.has_value(); }

  /// Between epochs: how far events and training have got, which a checkpoint keeps so that the run can be
  /// resumed. The events are in their file once flush() has returned. `batches`: trained so far in the run.
  RunPosition position(std::int64_t batches) const;
  /// Returns when all events so far are in their file, and also on disk for Survives::kPowerCut. Thread-safe.
  void flush(Survives survives);

  /// Writes the points of those epochs that are in the resumed record, but no longer in the events. If even
  /// the first of them is lost, the events are written again from the beginning. Histograms, points per batch
  /// and the profile of lost epochs stay lost. `learning_rate`: of an epoch, counted from 0. Returns how many
  /// epochs were written. Does nothing for a run that was not resumed.
  std::size_t restore_events(const std::function<std::optional<double>(int)>& learning_rate);

  /// Before the first epoch of a run that continues another: takes over what that one has recorded, and
  /// writes the points of its epochs. `learning_rate`: as of restore_events(). Returns how many epochs these
  /// are.
  int inherit(const RunRecord& parent, const std::function<std::optional<double>(int)>& learning_rate);

  /// Counts time that the caller spent on the run's files as logging.
  void add_logging_seconds(double seconds) { record_.logging_seconds += seconds; }

  /// Before the first epoch: seconds of the setup that all epochs share, and where Engine::prepare() put the
  /// samples. A resumed run keeps the setup time of its first start.
  void track_setup(double seconds, std::optional<Placement> placement = {});

  /// Before the first epoch: Engine::kernels().
  void track_kernels(std::string kernels) { record_.kernels = std::move(kernels); }

  /// Before the first epoch: sums over the validation set, which make epoch 0, and target_variation() of its
  /// samples. Writes its scalars and returns its record.
  const EpochRecord& track_untrained(const Totals& totals, double variation);

  /// Starts the next epoch and its clock.
  void begin_epoch();
  /// Adds the sums of one or more batches to the epoch.
  void track(const Totals& totals);
  /// Adds engine.take_totals(). Throws DeviceError if the engine trains on another device than the record
  /// says.
  void track(Engine& engine);
  /// Adds a batch's mean loss, weighted with its size.
  void track_loss(double mean_loss, const Batch& batch);
  /// Adds the rows of `outputs`, [batch.size(), classes] row-major, whose largest value is at the label.
  void track_num_correct(std::span<const float> outputs, const Batch& batch);
  /// The same of samples that are in no Batch.
  void track_loss(double mean_loss, std::int64_t samples) { epoch().add_loss(mean_loss, samples); }
  void track_num_correct(std::int64_t count) { epoch().add_correct(count); }
  /// A metric of this epoch, a histogram and a picture of a loop's own; see RunManager.
  void track_epoch_metric(std::string_view name, double value) { epoch().set_metric(name, value); }
  void track_histogram(std::string_view tag, std::span<const float> values);
  void track_image(std::string_view tag, std::span<const std::uint8_t> pixels, const Shape& shape);
  /// Writes one point of Loss/batch and Accuracy/batch. `batch` counts over the whole run.
  void track_batch(const Totals& totals, std::int64_t batch);
  /// The same of batches of the validation set. `seconds`, which they took, do not count as training.
  void track_validation_batch(const Totals& totals, std::int64_t batch, double seconds);
  /// The epoch's point of Optimizer/lr.
  void track_learning_rate(double learning_rate) { learning_rate_ = learning_rate; }
  /// For the epoch's histograms, in the layout of Network::parameters(); `gradients` may be empty.
  void track_parameters(std::span<const float> values, std::span<const float> gradients);
  /// The same from an engine, which counts on its device where that saves copying the values.
  void track_parameters(const Engine& engine);
  /// Writes what Engine::profile() measured in a step over `samples` samples to the Graphs tab.
  void track_profile(std::span<const LayerProfile> layers, std::int64_t samples);
  /// Stops the epoch's training clock. The calls below, and track_parameters() and track_profile(), imply it.
  void end_training();
  /// The epoch's point of Time/device_seconds.
  void track_device_seconds(double seconds);
  /// The epoch's point of Time/communication_seconds.
  void track_communication_seconds(double seconds) {
    end_training();
    epoch().set_communication_seconds(seconds);
  }
  /// Sums over the validation set. `variation`: target_variation() of its samples, for R²; 0: not known.
  void track_validation(const Totals& totals, double variation = 0);
  /// Writes the epoch's scalars and histograms. Returns its record.
  const EpochRecord& end_epoch();

  /// Outputs for `samples`, [samples.count, classes] row-major, before softmax. `part` names the samples:
  /// "validation".
  void track_predictions(const Subset& samples, std::span<const float> outputs,
                         std::span<const std::string> class_names, std::string_view part);
  /// The epoch whose weights kBestFile has, or is about to have.
  void track_best_epoch(int epoch) { record_.best_epoch = epoch; }
  /// Why the run ends before its last epoch.
  void track_stop(std::string_view reason) { record_.stop_reason = reason; }
  /// A number about the whole run, such as "test_accuracy".
  void track_metric(std::string_view name, double value) { record_.metrics[std::string(name)] = value; }

  /// Writes the end of the session and the final run.json, and closes the events file. No other call may
  /// follow, not even if this one throws.
  void end(RunStatus status, std::string_view reason);

 private:
  double now() const { return options_.clock(); }
  /// Throws std::logic_error, naming the call, if the run has no network of this project.
  const Network& network(const char* call) const;
  /// Throws DeviceError, naming both, if the engine is on another device than the record says.
  void check_device(const Engine& engine) const;
  void save_record(Survives survives);
  void sync_events() const;
  void check_owner() const {
    if (options_.check_owner) options_.check_owner();
  }
  /// The run's events files, with their sizes.
  std::map<std::string, std::uint64_t> own_event_files() const;
  /// What the events begin with: hparams, configuration, layout, graph and images.
  void begin_events(const Run& run, ImageGridCache& grids);
  /// The number of the epoch that is open or comes next, from 1.
  int next_epoch() const;
  /// The step in TensorBoard of the epoch with this number.
  std::int64_t step_of(int epoch) const;
  std::int64_t last_step() const;  // of the last finished epoch, or 0
  /// The open epoch. Throws std::logic_error if there is none.
  EpochAccumulator& epoch();

  const RecorderOptions options_;
  const std::filesystem::path directory_;
  RunRecord& record_;
  const TrainedNetwork trained_;
  double run_begin_ = 0;  // of the first start, moved by the time in which the run was not trained
  double last_save_ = 0;
  std::int64_t first_step_ = RunPosition().first_step;
  std::vector<std::string> earlier_files_;  // RunPosition::earlier_files
  std::optional<double> learning_rate_;
  std::optional<double> training_variation_;  // target_variation() of the training samples, once it is needed
  std::optional<EpochAccumulator> epoch_;
  std::vector<std::size_t> lost_epochs_;  // of record_.epochs: they are not in the events
  bool lost_beginning_ = false;           // nor is epoch 0
  std::optional<RunLog> log_;             // set by both constructors, once the run's directory is prepared
};

/// Records a run that cannot be trained here. `status` is kSkipped, or kFailed if that counts as a failure:
/// only then it has events, with hparams, the status and the reason.
void record_skipped_run(const RecorderOptions& options, const Run& run, RunStatus status,
                        std::string_view reason, RunRecord& record);

}  // namespace sweep

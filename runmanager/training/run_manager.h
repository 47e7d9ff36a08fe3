// The book of a sweep: times, counts and metrics of each run, to TensorBoard, run.json and the results table.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/file.h"
#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "core/network/network.h"
#include "runmanager/records/results.h"
#include "runmanager/records/run_builder.h"

namespace sweep {

struct RunManagerOptions {
  std::filesystem::path directory = "runs";  // every run gets a directory below it
  std::string name = {};                     // of the sweep, for results.json; empty: the directory's name
  std::vector<std::string> keys = {};  // columns of results.csv, in order; others follow as runs bring them
  nlohmann::ordered_json provenance = {};  // of the program and machine, kept in every run.json
  std::function<double()> clock = {};      // seconds, never going back; empty: std::chrono::steady_clock
  /// The run that gets the layout of the Custom Scalars tab, which TensorBoard wants once; empty: the first.
  std::string layout_run = {};
  /// What run.json and the results survive once they are written; Survives::kKill leaves syncing to the
  /// caller.
  Survives survives = Survives::kPowerCut;
};

/// Follows the training loop of the caller:
///
///   for (const Run& run : RunBuilder::get_runs(params)) {
///     manager.begin_run(run, network, loader);
///     for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
///       manager.begin_epoch();
///       loader.begin_epoch(epoch);
///       while (const Batch* batch = loader.next()) { …; manager.track_loss(loss, *batch);
///       manager.track_num_correct(outputs, *batch); } manager.end_epoch();
///     }
///     manager.end_run();
///   }
///   manager.save("results");
///
/// Calls out of this order throw std::logic_error. Every call may throw IoError if a file cannot be written.
/// Not thread-safe. An open run is closed as interrupted by the destructor.
class RunManager {
 public:
  explicit RunManager(RunManagerOptions options = {});
  ~RunManager();
  RunManager(const RunManager&) = delete;
  RunManager& operator=(const RunManager&) = delete;

  /// Lists runs that are still to come, or were done before, so that the results show them in their order.
  void expect(std::vector<RunRecord> runs);

  /// Opens the run's directory and events file: configuration, hparams, graph, and the images of the first
  /// batch that `loader` will give. Files of an earlier run of this name are removed. Keeps references to
  /// `network` and `loader` until end_run(). Starts the run's clock.
  void begin_run(const Run& run, const Network& network, const DataLoader& loader);

  /// Goes on with a run where position() stood: what came later is cut off its events, and the record, its
  /// clock included, continues. Throws DataError if the events are not those that `progress` was made with;
  /// then nothing is changed.
  void resume_run(const Run& run, const Network& network, const DataLoader& loader,
                  const RunProgress& progress);

  /// Between epochs: what a checkpoint needs, beside the open run's record, so that the run can be resumed,
  /// once flush() has returned. `batches` counts those trained so far in the run.
  RunPosition position(std::int64_t batches) const;

  /// Returns when all events of the open run are in their file. Thread-safe while that run is open.
  void flush();

  /// Counts time that the caller spent on files of the run as logging.
  void add_logging_seconds(double seconds);

  /// Before the first epoch: what was done once for all of them took so long, and the samples are where
  /// Engine::prepare() said. A resumed run keeps the time of its first start. In run.json, the results and,
  /// with the first epoch, Time/setup_seconds.
  void track_setup(double seconds, std::optional<Placement> placement = {});

  /// Starts the next epoch, from 0, and its clock.
  void begin_epoch();

  /// Adds a batch's mean loss, weighted with its size.
  void track_loss(double mean_loss, const Batch& batch);
  /// Counts the rows of `outputs`, [batch.size(), classes] row-major, whose largest value is at the label.
  void track_num_correct(std::span<const float> outputs, const Batch& batch);
  /// Both at once, from an engine.
  void track(const Totals& totals);
  /// The same with engine.take_totals(). Throws DeviceError, naming both, if the run says that it trains on
  /// another device than the engine does: its records would be wrong.
  void track(Engine& engine);
  /// One point of Loss/batch and Accuracy/batch; counts batches over the whole run.
  void track_batch(const Totals& totals, std::int64_t batch);
  /// The epoch's point of Optimizer/lr; the trainer gives that of the epoch's first step.
  void track_learning_rate(double learning_rate);
  /// Weights and gradients for this epoch's histograms, in the layout of Network::parameters().
  void track_parameters(std::span<const float> values, std::span<const float> gradients);
  /// The same of an engine that trains this network: counted on its device where that saves copying them.
  void track_parameters(const Engine& engine);

  /// Time and memory of each layer in one step over `samples` samples, from Engine::profile(), for the Graphs
  /// tab. Once per run; ends the training part of the epoch. Nothing happens if `layers` is empty.
  void track_profile(std::span<const LayerProfile> layers, std::int64_t samples);

  /// Stops the epoch's clock: what follows until end_epoch() is not training. Implied by the next ones.
  void end_training();
  /// The epoch's point of Time/device_seconds, from Engine::take_device_seconds(); implies end_training().
  void track_device_seconds(double seconds);
  /// Sums over the validation set.
  void track_validation(const Totals& totals);

  /// Writes the epoch's scalars and histograms. Returns what it wrote.
  const EpochRecord& end_epoch();

  /// Outputs of the network after training, for PR curves, confusion matrix and misclassified samples:
  /// outputs are [samples.count, classes] row-major, before softmax. `part` says which samples: "validation".
  void track_predictions(const Samples& samples, std::span<const float> outputs,
                         std::span<const std::string> class_names, std::string_view part);
  /// A number about the whole run, such as "test_accuracy"; in run.json and the Text tab.
  void track_metric(std::string_view name, double value);

  /// Writes the end of the session and run.json, and closes the events file. A failed or interrupted run says
  /// why.
  void end_run(RunStatus status = RunStatus::kCompleted, std::string_view reason = {});

  /// Records a run that cannot train here: its hparams with an unknown status, a text that says why, and
  /// run.json. With kFailed instead of kSkipped it is a failure.
  void skip_run(const Run& run, std::string_view reason, RunStatus status = RunStatus::kSkipped);

  /// Ends a run whose process ended before the run did: writes the end of the session, with the reason,
  /// behind what that process has written, and run.json. `record` is what is known of it, with its status.
  void conclude_run(const Run& run, RunRecord record);

  /// That holds every run's.
  const std::filesystem::path& directory() const;
  /// Directory of the open run. A caller may put files of its own there.
  const std::filesystem::path& run_directory() const;
  /// Of the open run, as far as it has got.
  const RunRecord& record() const;
  /// Every run so far, and those expected, in order.
  const std::vector<RunRecord>& records() const;
  /// Replaces the record of the run of that name, or adds it: one that was trained elsewhere.
  void update(RunRecord record);
  /// Forgets all records, so that a process that trains many runs does not grow. Not inside a run.
  void forget();

  /// Replaces `file`.csv and `file`.json with the results so far. A relative path is below the sweep's
  /// directory.
  void save(const std::filesystem::path& file) const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace sweep

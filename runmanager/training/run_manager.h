// Follows a training loop of your own and keeps its times, counts and metrics: in TensorBoard, run.json and
// the results table.
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
  std::function<double()> clock = {};      // seconds, monotonic; empty: std::chrono::steady_clock
};

/// Records the runs of a training loop:
///
///   for (const Run& run : RunBuilder::get_runs(params)) {
///     manager.begin_run(run, network, loader);
///     for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
///       manager.begin_epoch();
///       loader.begin_epoch(epoch);
///       while (const Batch* batch = loader.next()) {
///         …
///         manager.track_loss(loss, *batch);
///         manager.track_num_correct(outputs, *batch);
///       }
///       manager.end_epoch();
///     }
///     manager.end_run();
///   }
///   manager.save("results");
///
/// Calls out of this order throw std::logic_error. Every call may throw IoError if a file cannot be written.
/// Not thread-safe. The destructor ends an open run as interrupted.
class RunManager {
 public:
  explicit RunManager(RunManagerOptions options = {});
  ~RunManager();
  RunManager(const RunManager&) = delete;
  RunManager& operator=(const RunManager&) = delete;

  /// Opens the run's directory and events file and writes configuration, hparams, graph, and the images of
  /// the first batch that `loader` will give. Removes the files of an earlier run of this name. Keeps
  /// references to `network` and `loader` until end_run(). Starts the run's clock. Throws ConfigError if the
  /// run has no name.
  void begin_run(const Run& run, const Network& network, const DataLoader& loader);

  /// The same for a loop whose network and data are not this project's: without graph, images and layout.
  void begin_run(const Run& run);

  /// Between epochs: how far the run has got, for the loop's own checkpoint. All events until here are on
  /// disk when it returns.
  std::string progress();
  /// In place of begin_run(): goes on where progress() returned `progress`. Removes what the run wrote after
  /// that; keeps its epochs and its clock. Throws DataError if `progress` is damaged or the run's events
  /// cannot be read.
  void resume_run(const Run& run, std::string_view progress);
  /// Returns whether the directory has this run, completed with equal params and config. Then it is among
  /// records() and results, and needs no training. Throws DataError if its run.json is damaged, and IoError
  /// if it cannot be read.
  bool keep_completed(const Run& run);

  /// Before the first epoch: `seconds` that the setup for all epochs took, and where Engine::prepare() put
  /// the samples. In run.json, the results and the Text tab.
  void track_setup(double seconds, std::optional<Placement> placement = {});

  /// Starts the next epoch and its clock. The first one is epoch 1 in all records.
  void begin_epoch();

  /// Adds a batch's mean loss, weighted with its size.
  void track_loss(double mean_loss, const Batch& batch);
  /// Counts the rows of `outputs`, [batch.size(), classes] row-major, whose largest value is at the label.
  /// Throws ShapeError if `outputs` has no whole rows.
  void track_num_correct(std::span<const float> outputs, const Batch& batch);
  /// The same of `samples` that are in no Batch, and of the `count` of them that were predicted rightly. An
  /// epoch has an accuracy only if they are counted.
  void track_loss(double mean_loss, std::int64_t samples);
  void track_num_correct(std::int64_t count);
  /// A metric of the epoch, of any name: a chart, and a column of tables and results. The last value counts.
  void track_epoch_metric(std::string_view name, double value);
  /// A histogram and a picture at the epoch's step. `pixels`: [channels, height, width], 1 or 3 channels.
  /// Throws ShapeError for another `shape`.
  void track_histogram(std::string_view tag, std::span<const float> values);
  void track_image(std::string_view tag, std::span<const std::uint8_t> pixels, const Shape& shape);
  /// Adds the sums of one or more batches: loss and correct predictions.
  void track(const Totals& totals);
  /// Adds engine.take_totals(). Throws DeviceError, "expected device cuda:0 but got device cpu", if the
  /// engine trains on another device than Run::device says: the records would be wrong.
  void track(Engine& engine);
  /// Writes one point of Loss/batch and Accuracy/batch. `batch` counts over the whole run, from 0.
  void track_batch(const Totals& totals, std::int64_t batch);
  /// The point of Optimizer/lr for this and later epochs; the sweep writes the rate of the epoch's first
  /// step.
  void track_learning_rate(double learning_rate);
  /// Weights and gradients for this epoch's histograms, in the layout of Network::parameters(). `gradients`
  /// may be empty. Throws ShapeError if there are more or fewer values than parameters.
  void track_parameters(std::span<const float> values, std::span<const float> gradients);
  /// The same from an engine that trains this network. It counts on its device where that saves copying.
  /// Throws DeviceError as track() does.
  void track_parameters(const Engine& engine);

  /// Time and memory of each layer in one step over `samples` samples, from Engine::profile(), for the Graphs
  /// tab. Once per run; ends the training part of the epoch. Does nothing if `layers` is empty.
  void track_profile(std::span<const LayerProfile> layers, std::int64_t samples);

  /// Stops the epoch's clock: what follows until end_epoch() is not training. The calls below imply it.
  void end_training();
  /// The epoch's point of Time/device_seconds, from Engine::take_device_seconds().
  void track_device_seconds(double seconds);
  /// The epoch's point of Time/communication_seconds, from Engine::take_communication_seconds().
  void track_communication_seconds(double seconds);
  /// Sums over the validation set. `variation`: target_variation() of its samples, for R²; 0: not known.
  void track_validation(const Totals& totals, double variation = 0);

  /// Writes the epoch's scalars and histograms. Returns its record, valid until the next call.
  const EpochRecord& end_epoch();

  /// Outputs of the trained network, for PR curves, confusion matrix and misclassified samples:
  /// [samples.count, classes] row-major, before softmax. `part` names the samples: "validation". Throws
  /// ShapeError if `outputs` has no whole row for each sample, or one with fewer outputs than classes.
  void track_predictions(const Subset& samples, std::span<const float> outputs,
                         std::span<const std::string> class_names, std::string_view part);
  /// A number about the whole run, such as "test_accuracy"; in run.json and the Text tab.
  void track_metric(std::string_view name, double value);

  /// Writes the end of the session and run.json, and closes the events file. `reason` tells why a run failed
  /// or was interrupted. The run counts as ended even if this throws.
  void end_run(RunStatus status = RunStatus::kCompleted, std::string_view reason = {});

  /// The directory that holds every run's.
  const std::filesystem::path& directory() const;
  /// The open run's directory. A caller may put files of its own there.
  const std::filesystem::path& run_directory() const;
  /// The open run as far as it has got.
  const RunRecord& record() const;
  /// Every run so far, in order.
  const std::vector<RunRecord>& records() const;

  /// Replaces `file`.csv and `file`.json with the results so far. A relative path is below directory().
  void save(const std::filesystem::path& file) const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace sweep

// What a training loop says of its run, epoch by epoch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "runmanager/records/results.h"

namespace sweep {

class RunRecorder;
struct OpenEpoch;

/// The calls of a loop whose run is open; see RunManager for their order. Calls out of order throw
/// std::logic_error. Every call may throw IoError if a file cannot be written. Not thread-safe.
///
/// The names of metrics, histograms and pictures are tags of TensorBoard, each for one kind of data in a run:
/// a metric must not have the name of a histogram, nor that of a tag which the run itself writes, such as
/// "images" and "configuration". The call that would write the second kind throws ConfigError.
class RunTracker {
 public:
  RunTracker(const RunTracker&) = delete;
  RunTracker& operator=(const RunTracker&) = delete;

  /// Before the first epoch: `seconds` that the setup for all epochs took, and where Engine::prepare() put
  /// the samples. In run.json, the results and the Text tab. A resumed run keeps the time of its first start.
  void track_setup(double seconds, std::optional<Placement> placement = {});

  /// Starts the next epoch and its clock. The first one is epoch 1 in all records.
  void begin_epoch();

  /// Adds a batch's mean loss, weighted with its size.
  void track_loss(double mean_loss, const Batch& batch);
  /// Counts the rows of `outputs`, [batch.size(), classes] row-major, whose largest value is at the label; of
  /// equal ones the first. Rows of one output, the logit of two classes, count if it is above 0 for label 1
  /// alone. Throws ShapeError if `outputs` has no whole rows.
  void track_num_correct(std::span<const float> outputs, const Batch& batch);
  /// The same of `samples` that are in no Batch, and of the `count` of them that were predicted rightly. An
  /// epoch has an accuracy only if they are counted. Throw ConfigError for a number below 0.
  void track_loss(double mean_loss, std::int64_t samples);
  void track_num_correct(std::int64_t count);
  /// A metric of the epoch, of any name except "", "epoch", "metrics" and "status" (ConfigError): a chart,
  /// and a column of tables and results. The last value counts.
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

  /// Writes the epoch's scalars and histograms. Returns its record, valid until the next call. Without
  /// samples, the training loss and accuracy are NaN. If a metric's name is refused, the epoch is not
  /// recorded and stays open; if a histogram's is, the epoch is recorded and has ended.
  const EpochRecord& end_epoch();

  /// Outputs of the trained network, for PR curves, confusion matrix and misclassified samples:
  /// [samples.count, classes] row-major, before softmax, or `by_sigmoid` before the sigmoid of each. `part`
  /// names the samples: "validation". Throws ShapeError if `outputs` has no whole row for each sample, or one
  /// with fewer outputs than classes, or if a label is not one of the outputs'.
  void track_predictions(const Subset& samples, std::span<const float> outputs,
                         std::span<const std::string> class_names, std::string_view part,
                         bool by_sigmoid = false);
  /// A number about the whole run, such as "test_accuracy"; in run.json and the Text tab.
  void track_metric(std::string_view name, double value);

  /// The open run's directory. A caller may put files of its own there.
  const std::filesystem::path& run_directory() const;
  /// The open run as far as it has got.
  const RunRecord& record() const;

 protected:
  explicit RunTracker(RunRecorder* recorder = nullptr) : recorder_(recorder) {}
  ~RunTracker() = default;
  /// The open run, and its open epoch. Throw std::logic_error, naming `call`, if there is none.
  RunRecorder& run(const char* call) const;
  OpenEpoch& epoch(const char* call) const;
  /// The same, and ends the part of the epoch that trains.
  OpenEpoch& trained_epoch(const char* call) const;

  RunRecorder* recorder_;  // of the open run; null: none is
};

}  // namespace sweep

// The events of one run for TensorBoard: scalars, histograms, images, graph, text and the session of the
// HParams tab.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/data/data_loader.h"
#include "core/engine/engine.h"
#include "core/network/network.h"
#include "runmanager/records/results.h"
#include "runmanager/records/run_builder.h"
#include "tbwriter/histogram.h"
#include "tbwriter/plugin_data.h"
#include "tbwriter/summary_writer.h"

namespace sweep {

/// The grid of the first batch that `loader` will give: up to run.log.images samples, 8 a row, with 2 pixels
/// between them, or with run.log.image_labels larger and each with its class or numbers below it. Nothing if
/// the samples are not images of 1 or 3 channels. Does not change the state of the loader.
std::optional<tbwriter::EncodedImage> first_batch_grid(const DataLoader& loader, const Run& run);

/// The hyperparameters of an HParams session. `not_swept`: values in force of keys that only other runs have,
/// so that TensorBoard's parallel coordinates, which leave out runs without a value, show this one.
tbwriter::HParams to_hparams(const Params& params, const Params& not_swept = {});

/// What RunLog::layout() writes. Every run has it: TensorBoard drops equal charts when it merges the
/// layouts of several runs, and any run may be the only one that is looked at.
tbwriter::CustomScalarsLayout scalars_layout(bool numbers, bool has_validation);

/// Bucket limits for Engine::parameter_histograms(), the same as those of histograms made from values.
std::span<const double> parameter_limits();

/// The points of an epoch: everything that has a tag and was measured. TensorBoard's page of hyperparameters
/// ticks the first five metrics by name, and can colour by these only: accuracies, Duration/epoch_seconds
/// and a loss. Names between them have to sort after those.
std::vector<tbwriter::ScalarPoint> epoch_points(const EpochRecord& epoch);

/// A Markdown table of dataset_balance(): a row per class with its samples in each part and their share, or a
/// row per target with its mean and deviation. "" if `balance` is not one.
std::string data_table(const nlohmann::ordered_json& balance);

/// Markdown: a row per layer with name, type, arguments other than defaults, shape of one sample's output,
/// number of parameters, and floating-point operations of one sample's forward pass; then the sums.
std::string network_table(const Network& network);

/// The tags of the texts that a run writes at its end: how it has ended, and its metrics.
inline constexpr std::string_view kStatusTag = "status", kMetricsTag = "metrics";

/// Writes the events of one run. Run::log switches parts of them off. Not thread-safe, except
/// flush(). Any call may throw IoError.
class RunLog {
 public:
  /// Opens an events file. A run that goes on has older files: then `purge_step` is above the steps of all
  /// points in them.
  RunLog(const std::filesystem::path& directory, Run run, tbwriter::WriterOptions options = {});

  /// In the first file of a run: the start of the session (hparams), configuration and provenance.
  void begin(const nlohmann::ordered_json& provenance);
  /// The layout of the Custom Scalars tab for targets that are `numbers`, or else classes; with charts of the
  /// validation set, or without.
  void layout(bool numbers, bool has_validation);
  /// The graph of the network, and as text the table of its layers.
  void network(const Network& network);
  /// first_batch_grid().
  void images(const DataLoader& loader);
  /// Time and memory of the graph's nodes in one step over `samples` samples.
  void profile(const Network& network, std::span<const LayerProfile> layers, std::int64_t samples,
               std::int64_t step);

  /// One point of every per-epoch chart; in a run of a population also Parameters/<key> for each parameter
  /// that is a number. `step`: of the epoch, here and below.
  void epoch(const EpochRecord& record, std::optional<double> learning_rate, std::int64_t step);
  /// Throws ConfigError, as epoch(), image(), batch() and predictions(), for a tag of another kind of data
  /// and for sizes that do not match.
  void histogram(std::string_view tag, const tbwriter::Histogram& histogram, std::int64_t step);
  /// Those of the network's parameters, with their tags.
  void histograms(std::span<const std::pair<std::string, tbwriter::Histogram>> named, std::int64_t step);
  /// `pixels`: [channels, height, width], 1 or 3 channels.
  void image(std::string_view tag, std::span<const std::uint8_t> pixels, const Shape& shape,
             std::int64_t step);
  /// One point of the charts per batch, Loss/<name> and Accuracy/<name>.
  void batch(const Totals& totals, std::int64_t batch, std::string_view name);
  void predictions(const Subset& samples, std::span<const float> outputs,
                   std::span<const std::string> class_names, std::string_view part, std::int64_t step,
                   bool by_sigmoid);
  /// Writes what is known at the end of the run: the points of the metrics on the test set at `step`, and as
  /// text all metrics and the seconds of the setup.
  void results(const RunRecord& record, std::int64_t step);

  /// Returns when all events so far are in the file. Throws IoError if writing any of them failed.
  /// Thread-safe.
  void flush();
  /// How far the events reach once flush() has returned.
  tbwriter::FilePosition position() const;

  /// Writes the reason and the end of the session, and closes the file. The session of an interrupted run
  /// stays open, because the run may be resumed.
  void close(RunStatus status, std::string_view reason);

 private:
  bool has_session() const { return run_.log.hparams && !run_.params.empty(); }

  const Run run_;
  tbwriter::SummaryWriter writer_;
};

}  // namespace sweep

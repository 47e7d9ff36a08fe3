#include "runmanager/training/run_tracker.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/base/error.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/training/run_recorder.h"

namespace sweep {
namespace {

void check_count(const char* call, std::int64_t samples) {
  if (samples < 0) throw ConfigError(fmt::format("{}: got {} samples, want 0 or more", call, samples));
}

// Another kind of data of that tag would keep the run from ending well.
void check_own_tag(const char* call, std::string_view tag, bool is_scalar) {
  const bool is_of_text = tag == kStatusTag || tag == kMetricsTag;
  const Metric* const metric = is_scalar ? nullptr : metric_tagged(tag);
  if (!is_of_text && (metric == nullptr || metric->part != MetricPart::kTest)) return;
  throw ConfigError(
      fmt::format("{}: \"{}\" is what a {} is called that the run writes at its end; use another name", call,
                  tag, is_of_text ? "text" : "scalar"));
}

void check_labels(std::span<const std::int32_t> labels, std::size_t columns) {
  for (const std::int32_t label : labels) {
    if (label >= 0 && static_cast<std::size_t>(label) < columns) continue;
    throw ShapeError(fmt::format(
        "track_predictions: got the label {} with {} outputs per sample, want one from 0 to {}; give an "
        "output for each class",
        label, columns, columns - 1));
  }
}

// The class that a sample's outputs predict. A single output is the logit of class 1 against class 0.
std::ptrdiff_t predicted_class(std::span<const float> row) {
  if (row.size() == 1) return row[0] > 0 ? 1 : 0;
  return std::max_element(row.begin(), row.end()) - row.begin();
}

tbwriter::Histogram histogram_of(const HistogramCounts& counted) {
  return {.min = counted.min,
          .max = counted.max,
          .number = static_cast<double>(counted.number),
          .sum = counted.sum,
          .sum_squares = counted.sum_squares,
          .limits = tbwriter::histogram_limits(counted.max),
          .counts = {counted.buckets.begin(), counted.buckets.end()}};
}

}  // namespace

RunRecorder& RunTracker::run(const char* call) const {
  if (!recorder_) throw std::logic_error(fmt::format("RunManager::{}() outside of a run", call));
  return *recorder_;
}

OpenEpoch& RunTracker::epoch(const char* call) const {
  if (!recorder_ || !recorder_->epoch_)
    throw std::logic_error(fmt::format("RunManager::{}() outside of an epoch", call));
  return *recorder_->epoch_;
}

OpenEpoch& RunTracker::trained_epoch(const char* call) const {
  OpenEpoch& epoch = this->epoch(call);
  recorder_->stop_clock();
  return epoch;
}

void RunTracker::track_setup(double seconds, std::optional<Placement> placement) {
  RunRecord& record = run("track_setup").record_;
  if (!record.setup_seconds) record.setup_seconds = seconds;
  record.placement = placement ? placement_names().of(*placement) : "";
}

void RunTracker::begin_epoch() {
  RunRecorder& recorder = run("begin_epoch");
  if (recorder.epoch_) throw std::logic_error("RunManager::begin_epoch() before end_epoch() of the last one");
  recorder.epoch_.emplace();
  recorder.epoch_->begin = recorder.now();
}

void RunTracker::track(const Totals& totals) {
  OpenEpoch& epoch = this->epoch("track");
  epoch.training += totals;
  epoch.counts_correct = true;
  epoch.has_classes &= totals.numbers == 0;
}

void RunTracker::track(Engine& engine) {
  epoch("track");
  recorder_->check_device(engine);
  track(engine.take_totals());
}

void RunTracker::track_loss(double mean_loss, const Batch& batch) {
  track_loss(mean_loss, static_cast<std::int64_t>(batch.size()));
  recorder_->epoch_->has_classes &= !is_regression(batch.targets);
}

void RunTracker::track_loss(double mean_loss, std::int64_t samples) {
  OpenEpoch& epoch = this->epoch("track_loss");
  check_count("track_loss", samples);
  epoch.training.loss += mean_loss * static_cast<double>(samples);
  epoch.training.samples += samples;
}

void RunTracker::track_num_correct(std::int64_t count) {
  OpenEpoch& epoch = this->epoch("track_num_correct");
  check_count("track_num_correct", count);
  epoch.training.correct += count;
  epoch.counts_correct = true;
}

void RunTracker::track_num_correct(std::span<const float> outputs, const Batch& batch) {
  OpenEpoch& epoch = this->epoch("track_num_correct");
  if (batch.size() == 0) return;
  if (outputs.empty() || outputs.size() % batch.size() != 0) {
    throw ShapeError(
        fmt::format("track_num_correct: {} outputs for a batch of {}", outputs.size(), batch.size()));
  }
  if (is_regression(batch.targets))
    throw ShapeError("track_num_correct: the targets of the batch are no classes");
  const std::span<const std::int32_t> labels = batch.labels();
  const std::size_t classes = outputs.size() / batch.size();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    epoch.training.correct +=
        predicted_class(outputs.subspan(i * classes, classes)) == labels[batch.indices[i]];
  }
  epoch.counts_correct = true;
}

void RunTracker::track_epoch_metric(std::string_view name, double value) {
  if (name.empty()) throw ConfigError("track_epoch_metric: a metric needs a name");
  if (name == "epoch") throw ConfigError("track_epoch_metric: \"epoch\" is the number of each epoch");
  check_own_tag("track_epoch_metric", name, true);
  epoch("track_epoch_metric").own_metrics.insert_or_assign(std::string(name), value);
}

void RunTracker::track_batch(const Totals& totals, std::int64_t batch) {
  epoch("track_batch");
  recorder_->log_->batch(totals, batch, "batch");
}

void RunTracker::track_learning_rate(double learning_rate) {
  run("track_learning_rate").learning_rate_ = learning_rate;
}

void RunTracker::track_parameters(std::span<const float> values, std::span<const float> gradients) {
  OpenEpoch& epoch = trained_epoch("track_parameters");
  const Network& network = recorder_->network("track_parameters");
  const std::size_t count = network.parameter_count();
  if (values.size() != count || (!gradients.empty() && gradients.size() != count)) {
    throw ShapeError(
        fmt::format("track_parameters: {} values and {} gradients, but the network has {} parameters",
                    values.size(), gradients.size(), count));
  }
  const double begin = recorder_->now();
  epoch.histograms.clear();
  for (const Parameter& parameter : network.parameters()) {
    for (const auto& [folder, all] : {std::pair("weights/", values), std::pair("gradients/", gradients)}) {
      if (!all.empty())
        epoch.histograms.emplace_back(folder + parameter.name, tbwriter::make_histogram(all.subspan(
                                                                   parameter.offset, parameter.count)));
    }
  }
  recorder_->record_.logging_seconds += recorder_->now() - begin;
}

void RunTracker::track_parameters(const Engine& engine) {
  epoch("track_parameters");
  recorder_->check_device(engine);
  OpenEpoch& epoch = trained_epoch("track_parameters");
  const auto counts = engine.parameter_histograms(parameter_limits());
  if (!counts) return track_parameters(engine.parameters(), engine.gradients());
  const auto parameters = recorder_->network("track_parameters").parameters();
  if (counts->values.size() != parameters.size() || counts->gradients.size() != parameters.size()) {
    throw ShapeError(fmt::format("track_parameters: the engine's network has {} parameters, the run's {}",
                                 counts->values.size(), parameters.size()));
  }
  epoch.histograms.clear();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    epoch.histograms.emplace_back("weights/" + parameters[i].name, histogram_of(counts->values[i]));
    epoch.histograms.emplace_back("gradients/" + parameters[i].name, histogram_of(counts->gradients[i]));
  }
}

void RunTracker::track_profile(std::span<const LayerProfile> layers, std::int64_t samples) {
  trained_epoch("track_profile");
  recorder_->log_->profile(recorder_->network("track_profile"), layers, samples, recorder_->next_epoch());
}

void RunTracker::track_histogram(std::string_view tag, std::span<const float> values) {
  trained_epoch("track_histogram");
  check_own_tag("track_histogram", tag, false);
  recorder_->log_->histogram(tag, tbwriter::make_histogram(values), recorder_->next_epoch());
}

void RunTracker::track_image(std::string_view tag, std::span<const std::uint8_t> pixels, const Shape& shape) {
  trained_epoch("track_image");
  check_own_tag("track_image", tag, false);
  recorder_->log_->image(tag, pixels, shape, recorder_->next_epoch());
}

void RunTracker::end_training() { trained_epoch("end_training"); }

void RunTracker::track_device_seconds(double seconds) {
  trained_epoch("track_device_seconds").device_seconds = seconds;
}

void RunTracker::track_communication_seconds(double seconds) {
  trained_epoch("track_communication_seconds").communication_seconds = seconds;
}

void RunTracker::track_validation(const Totals& totals, double variation) {
  OpenEpoch& epoch = trained_epoch("track_validation");
  if (totals.samples > 0) epoch.validation = measured_metrics(totals, variation, MetricPart::kValidation);
}

const EpochRecord& RunTracker::end_epoch() {
  epoch("end_epoch");
  return recorder_->close_epoch();
}

void RunTracker::track_predictions(const Subset& samples, std::span<const float> outputs,
                                   std::span<const std::string> class_names, std::string_view part,
                                   bool by_sigmoid) {
  RunRecorder& recorder = run("track_predictions");
  if (samples.count == 0 || outputs.size() % samples.count != 0) {
    throw ShapeError(
        fmt::format("track_predictions: {} outputs for {} samples", outputs.size(), samples.count));
  }
  const std::size_t columns = outputs.size() / samples.count;
  if (is_regression(samples.set->targets) || columns < class_names.size()) {
    throw ShapeError(fmt::format("track_predictions: {} outputs per sample for {} classes", columns,
                                 is_regression(samples.set->targets) ? 0 : class_names.size()));
  }
  check_labels(samples.labels(), columns);
  const double begin = recorder.now();
  recorder.log_->predictions(samples, outputs, class_names, part, recorder.last_epoch(), by_sigmoid);
  recorder.record_.logging_seconds += recorder.now() - begin;
}

void RunTracker::track_metric(std::string_view name, double value) {
  run("track_metric").record_.metrics[std::string(name)] = value;
}

const std::filesystem::path& RunTracker::run_directory() const { return run("run_directory").directory_; }
const RunRecord& RunTracker::record() const { return run("record").record_; }

}  // namespace sweep

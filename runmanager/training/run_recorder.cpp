#include "runmanager/training/run_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "core/base/error.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/run_files.h"
#include "tbwriter/resume.h"

namespace sweep {
namespace {

// run.json of a running run only tells how far it is, and runs are resumed from their checkpoints: there is
// no need to write it after each of many short epochs.
constexpr double kSecondsBetweenSaves = 1.0;

std::filesystem::path run_directory(const RecorderOptions& options, const Run& run) {
  if (run.name.empty()) throw ConfigError("a run needs a name; RunBuilder::get_runs() gives one");
  return options.directory / run.name;
}

// Empty if `name` is no device: programs with their own training loop may write anything there.
std::optional<Device> parse_known_device(const std::string& name) {
  try {
    return parse_device(name);
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

// "cuda:0", where Device::name() would say "cuda".
std::string numbered_name(const Device& device) {
  return device.type == DeviceType::kCuda ? fmt::format("cuda:{}", device.index) : device.name();
}

RunRecord new_record(const Run& run, const nlohmann::ordered_json& provenance) {
  RunRecord record;
  record.name = run.name;
  record.params = run.params;
  record.device = run.device;
  record.config = run.config;
  record.jobs = run.jobs;
  record.started = utc_time();
  record.provenance = provenance;
  return record;
}

// A start drops, in one of TensorBoard's readers, all older points from its step on. Points per batch count
// in batches, so where they are written, the step has to be above theirs as well.
std::int64_t first_step(const Run& run, const RunProgress& progress) {
  const auto epochs = static_cast<std::int64_t>(progress.record.epochs.size());
  return run.log.batches > 0 ? std::max(epochs, progress.position.batches) : epochs;
}

}  // namespace

RunRecorder::RunRecorder(RecorderOptions options, const Run& run, const Network& network,
                         const DataLoader& loader, ImageGridCache& grids, RunRecord& record)
    : options_(std::move(options)),
      directory_(run_directory(options_, run)),
      record_(record),
      network_(network),
      loader_(loader),
      run_begin_(now()) {
  prepare_run_directory(directory_);
  record_ = new_record(run, options_.provenance);
  record_.status = RunStatus::kRunning;
  log_.emplace(directory_, run, record_.provenance);
  if (options_.writes_layout) log_->layout();
  log_->graph(network);
  if (run.log.images > 0) {
    if (const auto* grid = grids.first_batch(loader, static_cast<std::size_t>(run.log.images)))
      log_->images(*grid);
  }
  save_record(Survives::kKill);
  record_.logging_seconds = now() - run_begin_;
}

RunRecorder::RunRecorder(RecorderOptions options, const Run& run, const Network& network,
                         const DataLoader& loader, const RunProgress& progress, RunRecord& record)
    : options_(std::move(options)),
      directory_(run_directory(options_, run)),
      record_(record),
      network_(network),
      loader_(loader) {
  const double begin = now();
  remove_temporaries(directory_);
  // Before anything else: it throws if the events are not those of the checkpoint, and the run then starts
  // from the beginning.
  tbwriter::cut_back(directory_, {progress.position.events_file, progress.position.events_bytes});
  record_ = new_record(run, options_.provenance);
  record_.epochs = progress.record.epochs;
  record_.status = RunStatus::kRunning;
  record_.setup_seconds = progress.record.setup_seconds;
  record_.logging_seconds = progress.record.logging_seconds;
  record_.jobs = std::max(run.jobs, progress.record.jobs);
  record_.started = progress.record.started;
  run_begin_ = begin - (record_.epochs.empty() ? 0 : record_.epochs.back().run_seconds);
  log_.emplace(directory_, run, first_step(run, progress));
  save_record(Survives::kKill);
  record_.logging_seconds += now() - begin;
}

RunPosition RunRecorder::position(std::int64_t batches) const {
  if (epoch_) throw std::logic_error("RunRecorder::position() inside an epoch");
  const tbwriter::FilePosition position = log_->position();
  return {position.file, position.bytes, batches};
}

void RunRecorder::flush() { log_->flush(); }

void RunRecorder::add_logging_seconds(double seconds) { record_.logging_seconds += seconds; }

void RunRecorder::track_setup(double seconds, std::optional<Placement> placement) {
  if (!record_.setup_seconds) record_.setup_seconds = seconds;
  record_.placement = placement ? placement_name(*placement) : "";
}

void RunRecorder::begin_epoch() { epoch_.emplace(now()); }

void RunRecorder::track(const Totals& totals) { epoch().add(totals); }

void RunRecorder::track(Engine& engine) {
  const std::optional<Device> expected = parse_known_device(record_.device);
  if (expected && *expected != engine.device()) {
    throw DeviceError(fmt::format("{}: expected device {} but got device {}", record_.name,
                                  numbered_name(*expected), numbered_name(engine.device())));
  }
  track(engine.take_totals());
}

void RunRecorder::track_loss(double mean_loss, const Batch& batch) { epoch().add_loss(mean_loss, batch); }

void RunRecorder::track_num_correct(std::span<const float> outputs, const Batch& batch) {
  epoch().add_correct(outputs, batch);
}

void RunRecorder::track_batch(const Totals& totals, std::int64_t batch) { log_->batch(totals, batch); }

void RunRecorder::track_parameters(std::span<const float> values, std::span<const float> gradients) {
  end_training();
  const std::size_t count = network_.parameter_count();
  if (values.size() != count || (!gradients.empty() && gradients.size() != count)) {
    throw ShapeError(
        fmt::format("track_parameters: {} values and {} gradients, but the network has {} parameters",
                    values.size(), gradients.size(), count));
  }
  epoch().set_parameters(values, gradients);
}

void RunRecorder::track_parameters(const Engine& engine) {
  end_training();
  auto counts = engine.count_parameters(parameter_limits());
  if (!counts) return track_parameters(engine.parameters(), engine.gradients());
  const std::size_t parameters = network_.parameters().size();
  if (counts->values.size() != parameters || counts->gradients.size() != parameters) {
    throw ShapeError(fmt::format("track_parameters: the engine's network has {} parameters, the run's {}",
                                 counts->values.size(), parameters));
  }
  epoch().set_parameters(std::move(*counts));
}

void RunRecorder::track_profile(std::span<const LayerProfile> layers, std::int64_t samples) {
  end_training();
  log_->profile(network_, layers, samples, static_cast<int>(record_.epochs.size()));
}

void RunRecorder::end_training() { epoch().end_training(now(), loader_.wait_seconds()); }

void RunRecorder::track_device_seconds(double seconds) {
  end_training();
  epoch().set_device_seconds(seconds);
}

void RunRecorder::track_validation(const Totals& totals) {
  end_training();
  epoch().set_validation(totals);
}

const EpochRecord& RunRecorder::end_epoch() {
  end_training();
  const double begin = now();
  const auto number = static_cast<int>(record_.epochs.size());
  EpochRecord& epoch = record_.epochs.emplace_back(epoch_->record(number));
  if (epoch.epoch == 0 && record_.setup_seconds) log_->setup(*record_.setup_seconds);
  log_->epoch(epoch, learning_rate_);
  if (epoch_->counts()) {
    log_->histograms(network_, *epoch_->counts(), epoch.epoch);
  } else {
    log_->histograms(network_, epoch_->values(), epoch_->gradients(), epoch.epoch);
  }
  epoch_.reset();
  epoch.run_seconds = now() - run_begin_;
  if (now() - last_save_ >= kSecondsBetweenSaves) save_record(Survives::kKill);
  record_.logging_seconds += now() - begin;
  return epoch;
}

void RunRecorder::track_predictions(const Samples& samples, std::span<const float> outputs,
                                    std::span<const std::string> class_names, std::string_view part) {
  if (samples.count == 0 || outputs.size() % samples.count != 0) {
    throw ShapeError(
        fmt::format("track_predictions: {} outputs for {} samples", outputs.size(), samples.count));
  }
  const double begin = now();
  log_->predictions(samples, outputs, class_names, part,
                    std::max(0, static_cast<int>(record_.epochs.size()) - 1));
  record_.logging_seconds += now() - begin;
}

void RunRecorder::track_metric(std::string_view name, double value) {
  record_.metrics[std::string(name)] = value;
}

void RunRecorder::end(RunStatus status, std::string_view reason) {
  const double begin = now();
  epoch_.reset();
  record_.status = status;
  if (!reason.empty()) record_.error = reason;
  log_->metrics(record_.metrics);
  // The events first: a run.json that says "completed" promises that they are complete.
  log_->close(status, reason);
  record_.logging_seconds += now() - begin;
  record_.run_seconds = now() - run_begin_;
  record_.ended = utc_time();
  save_record(options_.survives);
}

void RunRecorder::save_record(Survives survives) {
  write_file_atomically(directory_ / kRunRecordFile, json_text(to_json(record_)), survives);
  last_save_ = now();
}

EpochAccumulator& RunRecorder::epoch() {
  if (!epoch_) throw std::logic_error("RunRecorder: a call that belongs inside an epoch");
  return *epoch_;
}

void record_skipped_run(const RecorderOptions& options, const Run& run, RunStatus status,
                        std::string_view reason, RunRecord& record) {
  const std::filesystem::path directory = run_directory(options, run);
  prepare_run_directory(directory);
  record = new_record(run, options.provenance);
  record.status = status;
  record.error = reason;
  RunLog log(directory, run, record.provenance);
  if (options.writes_layout) log.layout();
  log.close(status, reason);
  write_file_atomically(directory / kRunRecordFile, json_text(to_json(record)), options.survives);
}

void record_lost_run(const RecorderOptions& options, const Run& run, const RunRecord& record) {
  const std::filesystem::path directory = run_directory(options, run);
  std::error_code error;
  // Its process may have ended before it made the directory, or the directory was removed.
  std::filesystem::create_directory(directory, error);
  if (error)
    throw IoError(fmt::format("{}: cannot make this directory: {}", directory.string(), error.message()));
  // How many steps the lost process has written is not known. A start above every possible step makes
  // TensorBoard drop none of them.
  constexpr std::int64_t kAfterAllSteps = std::int64_t{1} << 31;
  RunLog log = has_events(directory) ? RunLog(directory, run, kAfterAllSteps)
                                     : RunLog(directory, run, record.provenance);
  log.close(record.status, record.error.value_or(""));
  write_file_atomically(directory / kRunRecordFile, json_text(to_json(record)), options.survives);
}

}  // namespace sweep

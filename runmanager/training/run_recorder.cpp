#include "runmanager/training/run_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

#include "core/base/error.h"
#include "core/engine/numbered_name.h"
#include "runmanager/records/measured_metrics.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/tensorboard/recorded_epochs.h"
#include "tbwriter/event_files.h"

namespace sweep {
namespace {

// Runs are resumed from their checkpoints: run.json need not be written after each of many short epochs.
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

RunRecord new_record(const Run& run, const nlohmann::ordered_json& provenance) {
  RunRecord record;
  record.name = run.name;
  record.params = run.params;
  record.not_swept = run.not_swept;
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
  const std::int64_t next = progress.position.first_step + epochs;
  return run.log.batches > 0 ? std::max(next, progress.position.batches) : next;
}

}  // namespace

RunRecorder::RunRecorder(RecorderOptions options, const Run& run, const TrainedNetwork& trained,
                         ImageGridCache& grids, RunRecord& record)
    : options_(std::move(options)),
      directory_(run_directory(options_, run)),
      record_(record),
      trained_(trained),
      run_begin_(now()) {
  prepare_run_directory(directory_, options_.check_owner);
  record_ = new_record(run, options_.provenance);
  record_.status = RunStatus::kRunning;
  begin_events(run, grids);
  save_record(Survives::kKill);
  record_.logging_seconds = now() - run_begin_;
}

RunRecorder::RunRecorder(RecorderOptions options, const Run& run, const TrainedNetwork& trained,
                         const RunProgress& progress, RunRecord& record)
    : options_(std::move(options)),
      directory_(run_directory(options_, run)),
      record_(record),
      trained_(trained) {
  const double begin = now();
  remove_temporaries(directory_);
  // Before anything else: it throws if the events cannot be read, and the run then starts from the beginning.
  // Where the sweep is shared they are a copy already, see take_over_run().
  if (!options_.shared)
    tbwriter::truncate_to(directory_, {progress.position.events_file, progress.position.events_bytes});
  // What truncate_to() returns is not asked: an earlier file that is missing is found only by looking for
  // epochs.
  const std::vector<EpochRecord>& epochs = progress.record.epochs;
  first_step_ = progress.position.first_step;
  if (options_.shared) {
    earlier_files_ = progress.position.earlier_files;
    if (!progress.position.events_file.empty()) earlier_files_.push_back(progress.position.events_file);
  }
  std::set<std::int64_t> recorded = recorded_epochs(directory_);
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    if (recorded.erase(step_of(epochs[i].epoch)) == 0) lost_epochs_.push_back(i);
  }
  // Without the first epoch, the beginning of the events is lost as well. Epochs that are not in the record
  // are of events that this checkpoint does not know.
  const bool begins_anew = !recorded.empty() || (!lost_epochs_.empty() && lost_epochs_.front() == 0);
  record_ = new_record(run, options_.provenance);
  record_.untrained = progress.record.untrained;
  record_.epochs = progress.record.epochs;
  record_.status = RunStatus::kRunning;
  record_.setup_seconds = progress.record.setup_seconds;
  record_.logging_seconds = progress.record.logging_seconds;
  record_.jobs = std::max(run.jobs, progress.record.jobs);
  record_.started = progress.record.started;
  run_begin_ = begin - (record_.epochs.empty() ? 0 : record_.epochs.back()["run_seconds"].value_or(0));
  lost_beginning_ = begins_anew;
  if (begins_anew) {
    check_owner();
    remove_events(directory_);
    earlier_files_.clear();
    first_step_ = RunPosition().first_step;
    lost_epochs_.resize(epochs.size());
    std::iota(lost_epochs_.begin(), lost_epochs_.end(), std::size_t{0});
    ImageGridCache grids;
    begin_events(run, grids);
  } else {
    log_.emplace(directory_, run, first_step(run, progress), !options_.shared);
  }
  save_record(Survives::kKill);
  record_.logging_seconds += now() - begin;
}

void RunRecorder::begin_events(const Run& run, ImageGridCache& grids) {
  log_.emplace(directory_, run, record_.provenance, !options_.shared);
  if (trained_.network == nullptr) return;
  log_->layout(is_regression(trained_.loader->samples().set->targets), run.has_validation);
  log_->network(*trained_.network);
  if (run.log.images > 0) {
    if (const auto* grid = grids.first_batch(*trained_.loader, run)) log_->images(*grid);
  }
}

std::size_t RunRecorder::restore_events(const std::function<std::optional<double>(int)>& learning_rate) {
  if (std::exchange(lost_beginning_, false) && record_.untrained)
    log_->epoch(*record_.untrained, std::nullopt, step_of(0));
  const std::vector<std::size_t> lost = std::exchange(lost_epochs_, {});
  for (const std::size_t epoch : lost)
    log_->epoch(record_.epochs[epoch], learning_rate(static_cast<int>(epoch)),
                step_of(record_.epochs[epoch].epoch));
  return lost.size();
}

int RunRecorder::inherit(const RunRecord& parent,
                         const std::function<std::optional<double>(int)>& learning_rate) {
  record_.untrained = parent.untrained;
  record_.epochs = parent.epochs;
  record_.setup_seconds = parent.setup_seconds;
  if (!parent.epochs.empty()) run_begin_ -= parent.epochs.back()["run_seconds"].value_or(0);
  lost_beginning_ = true;
  lost_epochs_.resize(parent.epochs.size());
  std::iota(lost_epochs_.begin(), lost_epochs_.end(), std::size_t{0});
  return static_cast<int>(restore_events(learning_rate));
}

RunPosition RunRecorder::position(std::int64_t batches) const {
  if (epoch_) throw std::logic_error("RunRecorder::position() inside an epoch");
  const tbwriter::FilePosition position = log_->position();
  return {position.file, position.bytes, batches, first_step_, earlier_files_};
}

void RunRecorder::flush(Survives survives) {
  check_owner();
  log_->flush();
  if (survives == Survives::kPowerCut) sync_events();
}

// Not with SummaryWriter::sync(): it would stop writing, and a disk that is slow to sync would fail the run.
void RunRecorder::sync_events() const {
  std::vector<std::filesystem::path> files;
  for (const auto& [name, bytes] : own_event_files()) files.push_back(directory_ / name);
  sync_files(files);
}

void RunRecorder::track_setup(double seconds, std::optional<Placement> placement) {
  if (!record_.setup_seconds) record_.setup_seconds = seconds;
  record_.placement = placement ? placement_names().of(*placement) : "";
}

const EpochRecord& RunRecorder::track_untrained(const Totals& totals, double variation) {
  const double begin = now();
  EpochAccumulator untrained(begin);
  untrained.end_training(begin, 0);
  untrained.set_validation(totals, variation);
  EpochRecord& epoch = record_.untrained.emplace(untrained.record(0, 0));
  std::erase_if(epoch.values, [](const auto& value) { return value.first->part != MetricPart::kValidation; });
  epoch.set("run_seconds", begin - run_begin_);
  log_->epoch(epoch, std::nullopt, step_of(0));
  record_.logging_seconds += now() - begin;
  return epoch;
}

void RunRecorder::begin_epoch() { epoch_.emplace(now()); }

void RunRecorder::track(const Totals& totals) { epoch().add(totals); }

void RunRecorder::check_device(const Engine& engine) const {
  const std::optional<Device> expected = parse_known_device(record_.device);
  if (expected && *expected != engine.device()) {
    throw DeviceError(fmt::format("{}: expected device {} but got device {}", record_.name,
                                  numbered_name(*expected), numbered_name(engine.device())));
  }
}

void RunRecorder::track(Engine& engine) {
  check_device(engine);
  track(engine.take_totals());
}

void RunRecorder::track_loss(double mean_loss, const Batch& batch) { epoch().add_loss(mean_loss, batch); }

void RunRecorder::track_num_correct(std::span<const float> outputs, const Batch& batch) {
  epoch().add_correct(outputs, batch);
}

void RunRecorder::track_batch(const Totals& totals, std::int64_t batch) { log_->batch(totals, batch); }

void RunRecorder::track_validation_batch(const Totals& totals, std::int64_t batch, double seconds) {
  log_->validation_batch(totals, batch);
  epoch().exclude(seconds);
}

void RunRecorder::track_parameters(std::span<const float> values, std::span<const float> gradients) {
  end_training();
  const std::size_t count = network("track_parameters").parameter_count();
  if (values.size() != count || (!gradients.empty() && gradients.size() != count)) {
    throw ShapeError(
        fmt::format("track_parameters: {} values and {} gradients, but the network has {} parameters",
                    values.size(), gradients.size(), count));
  }
  epoch().set_parameters(values, gradients);
}

void RunRecorder::track_parameters(const Engine& engine) {
  check_device(engine);
  end_training();
  auto counts = engine.parameter_histograms(parameter_limits());
  if (!counts) return track_parameters(engine.parameters(), engine.gradients());
  const std::size_t parameters = network("track_parameters").parameters().size();
  if (counts->values.size() != parameters || counts->gradients.size() != parameters) {
    throw ShapeError(fmt::format("track_parameters: the engine's network has {} parameters, the run's {}",
                                 counts->values.size(), parameters));
  }
  epoch().set_parameters(std::move(*counts));
}

void RunRecorder::track_profile(std::span<const LayerProfile> layers, std::int64_t samples) {
  end_training();
  log_->profile(network("track_profile"), layers, samples, step_of(next_epoch()));
}

void RunRecorder::track_histogram(std::string_view tag, std::span<const float> values) {
  end_training();
  log_->histogram(tag, values, step_of(next_epoch()));
}

void RunRecorder::track_image(std::string_view tag, std::span<const std::uint8_t> pixels,
                              const Shape& shape) {
  end_training();
  log_->image(tag, pixels, shape, step_of(next_epoch()));
}

void RunRecorder::end_training() {
  epoch().end_training(now(), trained_.loader != nullptr ? trained_.loader->wait_seconds() : 0);
}

const Network& RunRecorder::network(const char* call) const {
  if (trained_.network == nullptr)
    throw std::logic_error(fmt::format("RunManager::{}() of a run that was begun without a network", call));
  return *trained_.network;
}

void RunRecorder::track_device_seconds(double seconds) {
  end_training();
  epoch().set_device_seconds(seconds);
}

void RunRecorder::track_validation(const Totals& totals, double variation) {
  end_training();
  epoch().set_validation(totals, variation);
}

const EpochRecord& RunRecorder::end_epoch() {
  end_training();
  const double begin = now();
  if (!training_variation_)
    training_variation_ = trained_.loader != nullptr ? target_variation(trained_.loader->samples()) : 0;
  EpochRecord& epoch = record_.epochs.emplace_back(epoch_->record(next_epoch(), *training_variation_));
  const std::int64_t step = step_of(epoch.epoch);
  log_->epoch(epoch, learning_rate_, step);
  if (epoch_->counts()) {
    log_->histograms(*trained_.network, *epoch_->counts(), step);
  } else if (trained_.network != nullptr) {
    log_->histograms(*trained_.network, epoch_->values(), epoch_->gradients(), step);
  }
  epoch_.reset();
  epoch.set("run_seconds", now() - run_begin_);
  if (now() - last_save_ >= kSecondsBetweenSaves) save_record(Survives::kKill);
  record_.logging_seconds += now() - begin;
  return epoch;
}

void RunRecorder::track_predictions(const Subset& samples, std::span<const float> outputs,
                                    std::span<const std::string> class_names, std::string_view part) {
  if (samples.count == 0 || outputs.size() % samples.count != 0) {
    throw ShapeError(
        fmt::format("track_predictions: {} outputs for {} samples", outputs.size(), samples.count));
  }
  const std::size_t columns = outputs.size() / samples.count;
  if (is_regression(samples.set->targets) || columns < class_names.size()) {
    throw ShapeError(fmt::format("track_predictions: {} outputs per sample for {} classes", columns,
                                 is_regression(samples.set->targets) ? 0 : class_names.size()));
  }
  const double begin = now();
  log_->predictions(samples, outputs, class_names, part, last_step());
  record_.logging_seconds += now() - begin;
}

void RunRecorder::end(RunStatus status, std::string_view reason) {
  const double begin = now();
  check_owner();
  epoch_.reset();
  record_.status = status;
  if (!reason.empty()) record_.error = reason;
  // A run that goes on later would have them twice.
  if (status != RunStatus::kInterrupted) log_->results(record_, last_step());
  // The events first, since run.json says how long they are. Whether that much is on the disk as well, the
  // next start finds out by comparing.
  log_->close(status, reason);
  record_.event_files = own_event_files();
  if (options_.survives == Survives::kPowerCut) sync_events();
  record_.logging_seconds += now() - begin;
  record_.run_seconds = now() - run_begin_;
  record_.ended = utc_time();
  save_record(options_.survives);
}

std::map<std::string, std::uint64_t> RunRecorder::own_event_files() const {
  std::map<std::string, std::uint64_t> sizes = event_file_sizes(directory_);
  if (!options_.shared) return sizes;
  // There may be one of a process that was cut off.
  const std::string newest = log_->position().file;
  std::erase_if(sizes, [&](const auto& file) {
    return file.first != newest && std::ranges::find(earlier_files_, file.first) == earlier_files_.end();
  });
  return sizes;
}

int RunRecorder::next_epoch() const { return static_cast<int>(record_.epochs.size()) + 1; }

std::int64_t RunRecorder::step_of(int epoch) const { return first_step_ + epoch - 1; }

std::int64_t RunRecorder::last_step() const {
  return record_.epochs.empty() ? 0 : step_of(record_.epochs.back().epoch);
}

void RunRecorder::save_record(Survives survives) {
  check_owner();
  write_file_atomically(directory_ / kRunRecordFile, run_record_text(record_), survives);
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
  // A skipped run would take a place among the runs and a row of the hparams table, and have nothing to show.
  if (status != RunStatus::kSkipped) RunLog(directory, run, record.provenance).close(status, reason);
  write_file_atomically(directory / kRunRecordFile, run_record_text(record), options.survives);
}

}  // namespace sweep

#include "runmanager/training/run_recorder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <stdexcept>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/engine/device.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_identity.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/training/resume_point.h"
#include "tbwriter/event_files.h"
#include "tbwriter/event_reader.h"

namespace sweep {
namespace {

// Runs are resumed from their checkpoints: run.json need not be written after each of many short epochs.
constexpr double kSecondsBetweenSaves = 1.0;

RunRecord new_record(const Run& run, const nlohmann::ordered_json& provenance, RunStatus status) {
  RunRecord record;
  record.name = run.name;
  record.status = status;
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
std::int64_t step_of_start(const Run& run, const RunProgress& progress) {
  const auto epochs = static_cast<std::int64_t>(progress.record.epochs.size());
  return run.log.batches > 0 ? std::max(epochs + 1, progress.position.batches) : epochs + 1;
}

}  // namespace

RunRecorder::RunRecorder(RecorderOptions options, const Run& run, const TrainedNetwork& trained,
                         RunRecord& record)
    : RunTracker(this),
      options_(std::move(options)),
      directory_(options_.directory / run.name),
      record_(record),
      trained_(trained),
      run_begin_(now()) {
  prepare_run_directory(directory_, options_.check_owner);
  record_ = new_record(run, options_.provenance, RunStatus::kRunning);
  begin_events(run);
  save_record(Survives::kKill);
  record_.logging_seconds = now() - run_begin_;
}

RunRecorder::RunRecorder(RecorderOptions options, const Run& run, const TrainedNetwork& trained,
                         const RunProgress& progress, RunRecord& record)
    : RunTracker(this),
      options_(std::move(options)),
      directory_(options_.directory / run.name),
      record_(record),
      trained_(trained) {
  const double begin = now();
  // Where the sweep is shared, the events are a copy already: see take_over_run().
  if (options_.shared) {
    earlier_files_ = progress.position.earlier_files.value();
    if (!progress.position.events_file.empty()) earlier_files_.push_back(progress.position.events_file);
  } else {
    std::error_code error;
    std::filesystem::create_directories(directory_, error);  // may have been removed with its events
    tbwriter::lock_directory(directory_);  // throws if it is not there, or if another writer has it
  }
  remove_temporaries(directory_);
  record_ = new_record(run, options_.provenance, RunStatus::kRunning);
  record_.untrained = progress.record.untrained;
  record_.epochs = progress.record.epochs;
  record_.best_epoch = progress.record.best_epoch;
  record_.setup_seconds = progress.record.setup_seconds;
  record_.placement = progress.record.placement;
  record_.metrics = progress.record.metrics;
  record_.logging_seconds = progress.record.logging_seconds;
  record_.jobs = std::max(run.jobs, progress.record.jobs);
  record_.started = progress.record.started;
  run_begin_ = begin - (record_.epochs.empty() ? 0 : record_.epochs.back()["run_seconds"].value_or(0));
  // Before the events are cut, whose size is in the record of a run that had ended.
  save_record(Survives::kKill);
  // Throws if the events cannot be read, and the run then starts from the beginning.
  if (!options_.shared) {
    remove_other_events(directory_, progress.position);
    tbwriter::truncate_to(directory_, {progress.position.events_file, progress.position.events_bytes});
  }
  restore_events(run, recorded_epochs(directory_), step_of_start(run, progress));
  record_.logging_seconds += now() - begin;
}

// What truncate_to() returned is not asked: an earlier file that is missing is found only by looking for
// epochs.
void RunRecorder::restore_events(const Run& run, std::set<std::int64_t> recorded, std::int64_t next_step) {
  std::vector<const EpochRecord*> lost;
  for (const EpochRecord& epoch : record_.epochs) {
    if (recorded.erase(epoch.epoch) == 0) lost.push_back(&epoch);
  }
  // Without the first epoch, the beginning of the events is lost as well. Epochs that are not in the record
  // are of events that this checkpoint does not know.
  if (!recorded.empty() || sweep::own_event_files(directory_).empty() ||
      (!lost.empty() && lost.front() == &record_.epochs.front())) {
    check_owner();
    remove_events(directory_);
    earlier_files_.clear();
    begin_events(run);
    write_epochs();
    restored_epochs_ = record_.epochs.size();
  } else {
    log_.emplace(directory_, run,
                 tbwriter::WriterOptions{.purge_step = next_step, .locks_directory = !options_.shared});
    for (const EpochRecord* epoch : lost) write_epoch(*epoch);
    restored_epochs_ = lost.size();
  }
}

void RunRecorder::write_epoch(const EpochRecord& epoch) {
  const bool has_rate = options_.learning_rate && epoch.epoch > 0;
  log_->epoch(epoch, has_rate ? options_.learning_rate(epoch.epoch - 1) : std::nullopt, epoch.epoch);
}

void RunRecorder::begin_events(const Run& run) {
  log_.emplace(directory_, run, tbwriter::WriterOptions{.locks_directory = !options_.shared});
  log_->begin(record_.provenance);
  if (trained_.network == nullptr) return;
  log_->layout(is_regression(trained_.loader->samples().set->targets), run.has_validation);
  log_->network(*trained_.network);
  log_->images(*trained_.loader);
}

void RunRecorder::inherit(const RunRecord& parent) {
  record_.untrained = parent.untrained;
  record_.epochs = parent.epochs;
  record_.setup_seconds = parent.setup_seconds;
  if (!parent.epochs.empty()) run_begin_ -= parent.epochs.back()["run_seconds"].value_or(0);
  write_epochs();
}

RunPosition RunRecorder::position(std::int64_t batches) const {
  if (epoch_) throw std::logic_error("RunManager::progress() inside an epoch");
  const tbwriter::FilePosition position = log_->position();
  RunPosition reached{position.file, position.bytes, batches};
  if (options_.shared) reached.earlier_files = earlier_files_;
  return reached;
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

const EpochRecord& RunRecorder::record_untrained(const Totals& totals, double variation) {
  const double begin = now();
  EpochRecord& epoch = record_.untrained.emplace(0);
  if (totals.samples > 0) epoch.values = measured_metrics(totals, variation, MetricPart::kValidation);
  epoch.set("run_seconds", begin - run_begin_);
  log_->epoch(epoch, std::nullopt, epoch.epoch);
  record_.logging_seconds += now() - begin;
  return epoch;
}

void RunRecorder::record_validation_batch(const Totals& totals, std::int64_t batch, double seconds) {
  log_->batch(totals, batch, "validation_batch");
  epoch_->begin += seconds;
}

void RunRecorder::check_device(const Engine& engine) const {
  const std::optional<Device> expected = known_device(record_.device);
  if (expected && *expected != engine.device()) {
    throw DeviceError(fmt::format("{}: expected device {} but got device {}", record_.name,
                                  numbered_name(*expected), numbered_name(engine.device())));
  }
}

const Network& RunRecorder::network(const char* call) const {
  if (trained_.network == nullptr)
    throw std::logic_error(fmt::format("RunManager::{}() of a run that was begun without a network", call));
  return *trained_.network;
}

void RunRecorder::stop_clock() {
  if (epoch_->seconds) return;
  epoch_->seconds = now() - epoch_->begin;
  epoch_->wait_seconds = trained_.loader != nullptr ? trained_.loader->wait_seconds() : 0;
}

EpochRecord OpenEpoch::record(int number, double training_variation) const {
  EpochRecord epoch(number);
  epoch.values = measured_metrics(training, training_variation, MetricPart::kTraining);
  if (!has_classes || (training.samples > 0 && !counts_correct)) {
    for (const char* key : {"accuracy", "number_correct"}) epoch.set(key, std::nullopt);
  }
  epoch.values.insert(epoch.values.end(), validation.begin(), validation.end());
  epoch.set("epoch_seconds", *seconds);
  epoch.set("images_per_second", *seconds > 0 ? static_cast<double>(training.samples) / *seconds : 0);
  epoch.set("data_wait_seconds", wait_seconds);
  epoch.set("device_seconds", device_seconds);
  epoch.set("communication_seconds", communication_seconds);
  for (const auto& [name, value] : own_metrics) epoch.set(metric_called(name), value);
  return epoch;
}

const EpochRecord& RunRecorder::close_epoch() {
  stop_clock();
  const double begin = now();
  const double variation = trained_.loader != nullptr ? target_variation(trained_.loader->samples()) : 0;
  const int step = next_epoch();
  EpochRecord measured = epoch_->record(step, variation);
  log_->epoch(measured, learning_rate_, step);
  // Only now: an epoch whose scalars the log refuses is none. One that has them is never written again, even
  // if its histograms are refused.
  EpochRecord& epoch = record_.epochs.emplace_back(std::move(measured));
  const OpenEpoch ended = *std::exchange(epoch_, std::nullopt);
  epoch.set("run_seconds", now() - run_begin_);
  log_->histograms(ended.histograms, step);
  if (now() - last_save_ >= kSecondsBetweenSaves) save_record(Survives::kKill);
  record_.logging_seconds += now() - begin;
  return epoch;
}

void RunRecorder::end(RunStatus status, std::string_view reason) {
  const double begin = now();
  check_owner();
  epoch_.reset();
  record_.status = status;
  if (!reason.empty()) record_.error = reason;
  // A run that goes on later would have them twice.
  if (status != RunStatus::kInterrupted) log_->results(record_, last_epoch());
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

void RunRecorder::save_record(Survives survives) {
  check_owner();
  write_file_atomically(directory_ / kRunRecordFile, run_record_text(record_), survives);
  last_save_ = now();
}

namespace {

// What the process that wrote the events may have said last: that the run has ended, or that it waits.
bool is_end(std::string_view payload) {
  return std::ranges::any_of(tbwriter::decode_event(payload).values, [](const tbwriter::DecodedValue& value) {
    return value.tag == kStatusTag || value.tag == "_hparams_/session_end_info";
  });
}

void remove_end(const std::filesystem::path& directory) {
  const std::vector<std::string> files = own_event_files(directory);
  if (files.empty()) return;
  const std::filesystem::path newest = directory / files.back();
  tbwriter::EventReader reader(newest);
  std::uint64_t begin = 0;
  for (auto payload = reader.next(); payload && !is_end(*payload); payload = reader.next())
    begin = reader.position();
  if (begin == reader.position()) return;
  if (retry_interrupted([&] { return ::truncate(newest.c_str(), static_cast<off_t>(begin)); }) != 0)
    throw IoError(fmt::format("{}: cannot be cut: {}", newest.string(), std::strerror(errno)));
}

// Replaces the end of the session, with the reason, in what others have written.
void append_end(const std::filesystem::path& directory, const Run& run, const RunRecord& record, bool locks) {
  // How many steps those have written is not known. A start above every possible step makes TensorBoard drop
  // none of them.
  constexpr std::int64_t kAfterAllSteps = std::int64_t{1} << 31;
  remove_end(directory);
  const bool is_first = tbwriter::list_event_files(directory).empty();
  RunLog log(directory, run, {.purge_step = is_first ? 0 : kAfterAllSteps, .locks_directory = locks});
  if (is_first) log.begin(record.provenance);
  log.close(record.status, record.error.value_or(""));
}

// A process that was lost before it told how far the run is leaves the run as it was.
void keep_epochs(const std::filesystem::path& directory, RunRecord& record) {
  try {
    const RunRecord known = read_run_record(directory / kRunRecordFile);
    if (!differences(identity_of(known), identity_of(record)).empty()) return;
    record.epochs = known.epochs;
    record.untrained = known.untrained;
    record.started = known.started;
  } catch (const DataError&) {
    // There is none, or nothing can be read of it.
  }
}

// The sweep is told of epochs, but not which of them is the best.
void keep_best_epoch(const std::filesystem::path& directory, RunRecord& record) {
  const std::optional<int> best = whole_checkpoint_epoch(directory / kBestFile);
  if (best && *best <= static_cast<int>(record.epochs.size())) record.best_epoch = best;
}

}  // namespace

void record_skipped_run(const RecorderOptions& options, const Run& run, RunStatus status,
                        std::string_view reason, RunRecord& record) {
  prepare_run_directory(options.directory / run.name);
  record = new_record(run, options.provenance, status);
  record.error = reason;
  record_end(options, run, record);
}

void record_end(const RecorderOptions& options, const Run& run, RunRecord& record) {
  const std::filesystem::path directory = options.directory / run.name;
  check_is_own_directory(directory);
  std::error_code error;
  // Its process may have ended before it made the directory, or the directory was removed.
  std::filesystem::create_directory(directory, error);
  if (error)
    throw IoError(fmt::format("{}: cannot make this directory: {}", directory.string(), error.message()));
  remove_temporaries(directory);
  if (record.epochs.empty()) keep_epochs(directory, record);
  keep_best_epoch(directory, record);
  try {
    // A skipped run would take a place among the runs and a row of the hparams table, and have nothing to
    // show.
    if (record.status != RunStatus::kSkipped) append_end(directory, run, record, !options.shared);
  } catch (const tbwriter::DirectoryError&) {
    // What is in the way of its events is why it ended, or will be when it goes on.
  }
  if (record.status == RunStatus::kPruned) record.event_files = event_file_sizes(directory);
  write_file_atomically(directory / kRunRecordFile, run_record_text(record), options.survives);
}

}  // namespace sweep

#include "runmanager/training/run_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_records.h"
#include "runmanager/tensorboard/run_log.h"
#include "runmanager/training/open_epoch.h"
#include "tbwriter/resume.h"

namespace sweep {
namespace {

// A record says how far a running one is; what it is resumed from is in its checkpoint.
constexpr double kSecondsBetweenSaves = 1.0;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Nothing for a name of the caller's own, which says nothing about engines.
std::optional<Device> device_of(const std::string& name) {
  try {
    return parse_device(name);
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

// With the number of a GPU, also if it is the first.
std::string numbered_name(const Device& device) {
  return device.type == DeviceType::kCuda ? fmt::format("cuda:{}", device.index) : device.name();
}

}  // namespace

class RunManager::Implementation {
 public:
  explicit Implementation(RunManagerOptions options) : options_(std::move(options)) {
    if (!options_.clock) options_.clock = steady_seconds;
    if (options_.name.empty())
      options_.name = std::filesystem::absolute(options_.directory).filename().string();
  }

  ~Implementation() {
    if (!log_) return;
    try {
      end_run(RunStatus::kInterrupted, "the program ended before the run did");
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", error.what());
    }
  }

  void expect(std::vector<RunRecord> runs) {
    if (log_) throw std::logic_error("RunManager::expect() inside a run");
    for (RunRecord& run : runs) records_.put(std::move(run));
  }

  void begin_run(const Run& run, const Network& network, const DataLoader& loader) {
    if (log_) throw std::logic_error("RunManager::begin_run() before end_run() of the last run");
    const double begin = now();
    prepare_run_directory(options_.directory / run.name);
    open_record(run);
    network_ = &network;
    loader_ = &loader;
    run_begin_ = begin;
    record_->status = RunStatus::kRunning;
    log_.emplace(directory_, run, record_->provenance);
    if (is_first()) log_->layout();
    log_->graph(network);
    if (run.log.images > 0) {
      if (const auto* grid = grids_.first_batch(loader, static_cast<std::size_t>(run.log.images)))
        log_->images(*grid);
    }
    save_record(Survives::kKill);
    record_->logging_seconds = now() - begin;
  }

  void resume_run(const Run& run, const Network& network, const DataLoader& loader,
                  const RunProgress& progress) {
    if (log_) throw std::logic_error("RunManager::resume_run() before end_run() of the last run");
    const double begin = now();
    const std::filesystem::path directory = options_.directory / run.name;
    remove_temporaries(directory);
    tbwriter::cut_back(directory, {progress.position.events_file, progress.position.events_bytes});
    open_record(run);
    record_->epochs = progress.record.epochs;
    record_->status = RunStatus::kRunning;
    record_->setup_seconds = progress.record.setup_seconds;
    record_->logging_seconds = progress.record.logging_seconds;
    record_->jobs = std::max(run.jobs, progress.record.jobs);
    record_->started = progress.record.started;
    network_ = &network;
    loader_ = &loader;
    run_begin_ = begin - (record_->epochs.empty() ? 0 : record_->epochs.back().run_seconds);
    // A start drops, in one of TensorBoard's readers, all older points from its step on. Points of batches
    // count in batches, so with them the step has to be higher than is needed for those of epochs.
    const auto epochs = static_cast<std::int64_t>(record_->epochs.size());
    log_.emplace(directory_, run, run.log.batches > 0 ? std::max(epochs, progress.position.batches) : epochs);
    save_record(Survives::kKill);
    record_->logging_seconds += now() - begin;
  }

  RunPosition position(std::int64_t batches) const {
    require_run("position");
    if (epoch_) throw std::logic_error("RunManager::position() inside an epoch");
    const tbwriter::FilePosition position = log_->position();
    return {position.file, position.bytes, batches};
  }

  void flush() {
    require_run("flush");
    log_->flush();
  }

  void add_logging_seconds(double seconds) {
    require_run("add_logging_seconds");
    record_->logging_seconds += seconds;
  }

  void track_setup(double seconds, std::optional<Placement> placement) {
    require_run("track_setup");
    if (!record_->setup_seconds) record_->setup_seconds = seconds;
    record_->placement = placement ? placement_name(*placement) : "";
  }

  void begin_epoch() {
    require_run("begin_epoch");
    if (epoch_) throw std::logic_error("RunManager::begin_epoch() before end_epoch() of the last one");
    epoch_.emplace(now());
  }

  void track(const Totals& totals) {
    require_epoch("track");
    epoch_->add(totals);
  }

  void track(Engine& engine) {
    require_epoch("track");
    const std::optional<Device> expected = device_of(record_->device);
    if (expected && *expected != engine.device()) {
      throw DeviceError(fmt::format("{}: expected device {} but got device {}", record_->name,
                                    numbered_name(*expected), numbered_name(engine.device())));
    }
    track(engine.take_totals());
  }

  void track_loss(double mean_loss, const Batch& batch) {
    require_epoch("track_loss");
    epoch_->add_loss(mean_loss, batch);
  }

  void track_num_correct(std::span<const float> outputs, const Batch& batch) {
    require_epoch("track_num_correct");
    epoch_->add_correct(outputs, batch);
  }

  void track_batch(const Totals& totals, std::int64_t batch) {
    require_epoch("track_batch");
    log_->batch(totals, batch);
  }

  void track_learning_rate(double learning_rate) { learning_rate_ = learning_rate; }

  void track_parameters(std::span<const float> values, std::span<const float> gradients) {
    require_epoch("track_parameters");
    end_training();
    const std::size_t count = network_->parameter_count();
    if (values.size() != count || (!gradients.empty() && gradients.size() != count)) {
      throw ShapeError(
          fmt::format("track_parameters: {} values and {} gradients, but the network has {} parameters",
                      values.size(), gradients.size(), count));
    }
    epoch_->set_parameters(values, gradients);
  }

  void track_parameters(const Engine& engine) {
    require_epoch("track_parameters");
    end_training();
    auto counts = engine.count_parameters(parameter_limits());
    if (!counts) return track_parameters(engine.parameters(), engine.gradients());
    const std::size_t parameters = network_->parameters().size();
    if (counts->values.size() != parameters || counts->gradients.size() != parameters) {
      throw ShapeError(fmt::format("track_parameters: the engine's network has {} parameters, the run's {}",
                                   counts->values.size(), parameters));
    }
    epoch_->set_parameters(std::move(*counts));
  }

  void track_profile(std::span<const LayerProfile> layers, std::int64_t samples) {
    require_epoch("track_profile");
    end_training();
    log_->profile(*network_, layers, samples, static_cast<int>(record_->epochs.size()));
  }

  void end_training() {
    require_epoch("end_training");
    epoch_->end_training(now(), loader_->wait_seconds());
  }

  void track_device_seconds(double seconds) {
    end_training();
    epoch_->set_device_seconds(seconds);
  }

  void track_validation(const Totals& totals) {
    end_training();
    epoch_->set_validation(totals);
  }

  const EpochRecord& end_epoch() {
    end_training();
    const double begin = now();
    const auto number = static_cast<int>(record_->epochs.size());
    EpochRecord& epoch = record_->epochs.emplace_back(epoch_->record(number));
    if (epoch.epoch == 0 && record_->setup_seconds) log_->setup(*record_->setup_seconds);
    log_->epoch(epoch, learning_rate_);
    if (epoch_->counts()) {
      log_->histograms(*network_, *epoch_->counts(), epoch.epoch);
    } else {
      log_->histograms(*network_, epoch_->values(), epoch_->gradients(), epoch.epoch);
    }
    epoch_.reset();
    epoch.run_seconds = now() - run_begin_;
    if (now() - last_save_ >= kSecondsBetweenSaves) save_record(Survives::kKill);
    record_->logging_seconds += now() - begin;
    return epoch;
  }

  void track_predictions(const Samples& samples, std::span<const float> outputs,
                         std::span<const std::string> class_names, std::string_view part) {
    require_run("track_predictions");
    if (samples.count == 0 || outputs.size() % samples.count != 0) {
      throw ShapeError(
          fmt::format("track_predictions: {} outputs for {} samples", outputs.size(), samples.count));
    }
    const double begin = now();
    log_->predictions(samples, outputs, class_names, part,
                      std::max(0, static_cast<int>(record_->epochs.size()) - 1));
    record_->logging_seconds += now() - begin;
  }

  void track_metric(std::string_view name, double value) {
    require_run("track_metric");
    record_->metrics[std::string(name)] = value;
  }

  void end_run(RunStatus status, std::string_view reason) {
    require_run("end_run");
    const double begin = now();
    epoch_.reset();
    record_->status = status;
    if (!reason.empty()) record_->error = reason;
    // Moved out, so that the run counts as ended even if its files cannot be written.
    const std::optional<Closer> closer(*this);
    log_->metrics(record_->metrics);
    log_->close(status, reason);
    record_->logging_seconds += now() - begin;
    record_->run_seconds = now() - run_begin_;
    record_->ended = utc_time();
    save_record(options_.survives);
  }

  void skip_run(const Run& run, std::string_view reason, RunStatus status) {
    if (log_) throw std::logic_error("RunManager::skip_run() inside a run");
    prepare_run_directory(options_.directory / run.name);
    open_record(run);
    record_->status = status;
    record_->error = reason;
    RunLog log(directory_, run, record_->provenance);
    if (is_first()) log.layout();
    log.close(status, reason);
    save_record(options_.survives);
  }

  void conclude_run(const Run& run, RunRecord record) {
    const std::filesystem::path directory = options_.directory / run.name;
    std::error_code error;
    std::filesystem::create_directory(directory, error);
    if (error)
      throw IoError(fmt::format("{}: cannot make this directory: {}", directory.string(), error.message()));
    // Above every step of the run: in TensorBoard nothing of it goes away.
    constexpr std::int64_t kAfterAllSteps = std::int64_t{1} << 31;
    RunLog log = has_events(directory) ? RunLog(directory, run, kAfterAllSteps)
                                       : RunLog(directory, run, record.provenance);
    log.close(record.status, record.error.value_or(""));
    write_file_atomically(directory / kRunRecordFile, json_text(to_json(record)), options_.survives);
    update(std::move(record));
  }

  const std::filesystem::path& directory() const { return options_.directory; }

  const std::filesystem::path& run_directory() const {
    require_run("run_directory");
    return directory_;
  }

  const RunRecord& record() const {
    require_run("record");
    return *record_;
  }

  const std::vector<RunRecord>& records() const { return records_.all(); }

  void update(RunRecord record) {
    if (log_) throw std::logic_error("RunManager::update() inside a run");
    records_.put(std::move(record));
  }

  void forget() {
    if (log_) throw std::logic_error("RunManager::forget() inside a run");
    records_.clear();
  }

  void save(const std::filesystem::path& file) const {
    records_.save(options_.directory / file, options_.name, options_.keys, options_.survives);
  }

 private:
  struct Closer {
    Implementation& manager;
    explicit Closer(Implementation& m) : manager(m) {}
    ~Closer() { manager.log_.reset(); }
  };

  double now() const { return options_.clock(); }

  void require_run(const char* call) const {
    if (!log_) throw std::logic_error(fmt::format("RunManager::{}() outside of a run", call));
  }

  void require_epoch(const char* call) const {
    if (!epoch_) throw std::logic_error(fmt::format("RunManager::{}() outside of an epoch", call));
  }

  // Starts an empty record of the run.
  void open_record(const Run& run) {
    if (run.name.empty()) throw ConfigError("a run needs a name; RunBuilder::get_runs() gives one");
    directory_ = options_.directory / run.name;
    record_ = &records_.at(run.name);
    nlohmann::ordered_json provenance = std::move(record_->provenance);
    if (provenance.is_null()) provenance = options_.provenance;
    *record_ = RunRecord();
    record_->name = run.name;
    record_->params = run.params;
    record_->device = run.device;
    record_->config = run.config;
    record_->jobs = run.jobs;
    record_->started = utc_time();
    record_->provenance = std::move(provenance);
    learning_rate_.reset();
  }

  bool is_first() const {
    return options_.layout_run.empty() ? records_.is_first(*record_) : record_->name == options_.layout_run;
  }

  void save_record(Survives survives) {
    write_file_atomically(directory_ / kRunRecordFile, json_text(to_json(*record_)), survives);
    last_save_ = now();
  }

  RunManagerOptions options_;
  RunRecords records_;
  ImageGridCache grids_;

  // The open run.
  std::optional<RunLog> log_;
  std::filesystem::path directory_;
  RunRecord* record_ = nullptr;
  const Network* network_ = nullptr;
  const DataLoader* loader_ = nullptr;
  double run_begin_ = 0;
  double last_save_ = 0;
  std::optional<double> learning_rate_;
  std::optional<OpenEpoch> epoch_;
};

RunManager::RunManager(RunManagerOptions options)
    : implementation_(std::make_unique<Implementation>(std::move(options))) {}
RunManager::~RunManager() = default;

void RunManager::expect(std::vector<RunRecord> runs) { implementation_->expect(std::move(runs)); }
void RunManager::begin_run(const Run& run, const Network& network, const DataLoader& loader) {
  implementation_->begin_run(run, network, loader);
}
void RunManager::resume_run(const Run& run, const Network& network, const DataLoader& loader,
                            const RunProgress& progress) {
  implementation_->resume_run(run, network, loader, progress);
}
RunPosition RunManager::position(std::int64_t batches) const { return implementation_->position(batches); }
void RunManager::flush() { implementation_->flush(); }
void RunManager::add_logging_seconds(double seconds) { implementation_->add_logging_seconds(seconds); }
void RunManager::track_setup(double seconds, std::optional<Placement> placement) {
  implementation_->track_setup(seconds, placement);
}
void RunManager::begin_epoch() { implementation_->begin_epoch(); }
void RunManager::track_loss(double mean_loss, const Batch& batch) {
  implementation_->track_loss(mean_loss, batch);
}
void RunManager::track_num_correct(std::span<const float> outputs, const Batch& batch) {
  implementation_->track_num_correct(outputs, batch);
}
void RunManager::track(const Totals& totals) { implementation_->track(totals); }
void RunManager::track(Engine& engine) { implementation_->track(engine); }
void RunManager::track_batch(const Totals& totals, std::int64_t batch) {
  implementation_->track_batch(totals, batch);
}
void RunManager::track_learning_rate(double learning_rate) {
  implementation_->track_learning_rate(learning_rate);
}
void RunManager::track_parameters(std::span<const float> values, std::span<const float> gradients) {
  implementation_->track_parameters(values, gradients);
}
void RunManager::track_parameters(const Engine& engine) { implementation_->track_parameters(engine); }
void RunManager::track_profile(std::span<const LayerProfile> layers, std::int64_t samples) {
  implementation_->track_profile(layers, samples);
}
void RunManager::end_training() { implementation_->end_training(); }
void RunManager::track_device_seconds(double seconds) { implementation_->track_device_seconds(seconds); }
void RunManager::track_validation(const Totals& totals) { implementation_->track_validation(totals); }
const EpochRecord& RunManager::end_epoch() { return implementation_->end_epoch(); }
void RunManager::track_predictions(const Samples& samples, std::span<const float> outputs,
                                   std::span<const std::string> class_names, std::string_view part) {
  implementation_->track_predictions(samples, outputs, class_names, part);
}
void RunManager::track_metric(std::string_view name, double value) {
  implementation_->track_metric(name, value);
}
void RunManager::end_run(RunStatus status, std::string_view reason) {
  implementation_->end_run(status, reason);
}
void RunManager::skip_run(const Run& run, std::string_view reason, RunStatus status) {
  implementation_->skip_run(run, reason, status);
}
void RunManager::conclude_run(const Run& run, RunRecord record) {
  implementation_->conclude_run(run, std::move(record));
}
const std::filesystem::path& RunManager::directory() const { return implementation_->directory(); }
const std::filesystem::path& RunManager::run_directory() const { return implementation_->run_directory(); }
const RunRecord& RunManager::record() const { return implementation_->record(); }
const std::vector<RunRecord>& RunManager::records() const { return implementation_->records(); }
void RunManager::update(RunRecord record) { implementation_->update(std::move(record)); }
void RunManager::forget() { implementation_->forget(); }
void RunManager::save(const std::filesystem::path& file) const { implementation_->save(file); }

}  // namespace sweep

#include "runmanager/sweep/sweep_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iostream>
#include <map>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/data/readers/content_reader.h"
#include "runmanager/config/sweep_file.h"
#include "runmanager/records/checkpoint.h"
#include "runmanager/records/identity.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/sweep_changes.h"
#include "runmanager/records/sweep_directory.h"
#include "runmanager/sweep/run_scheduler.h"
#include "runmanager/sweep/shared_dataset.h"
#include "runmanager/sweep/sweep_book.h"
#include "runmanager/terminal/table.h"
#include "runmanager/training/run_trainer.h"
#include "runmanager/training/stop_signals.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

// Loads each data set of a sweep once.
class DatasetCache {
 public:
  explicit DatasetCache(std::function<Dataset(const DatasetSpec&)> load) : load_(std::move(load)) {}

  std::shared_ptr<const Dataset> get(const DatasetSpec& spec) {
    for (const auto& [known, data] : loaded_) {
      if (known == spec) return data;
    }
    loaded_.emplace_back(spec, std::make_shared<const Dataset>(load_(spec)));
    return loaded_.back().second;
  }

  std::size_t position(const DatasetSpec& spec) const {
    const auto found = std::find_if(loaded_.begin(), loaded_.end(),
                                    [&spec](const auto& entry) { return entry.first == spec; });
    return static_cast<std::size_t>(found - loaded_.begin());
  }

  // All of them, in memory for other processes; here they are forgotten.
  std::vector<SharedDataset> take_shared() {
    std::vector<SharedDataset> shared;
    for (auto& [spec, data] : loaded_) {
      shared.emplace_back(*data);
      data.reset();
    }
    loaded_.clear();
    return shared;
  }

 private:
  std::function<Dataset(const DatasetSpec&)> load_;
  std::vector<std::pair<DatasetSpec, std::shared_ptr<const Dataset>>> loaded_;
};

std::string file_sha256(const std::filesystem::path& path) {
  const std::string content = read_file(path);
  Sha256 digest;
  digest.update({reinterpret_cast<const std::uint8_t*>(content.data()), content.size()});
  return digest.finish();
}

class SweepRunner {
 public:
  SweepRunner(const Sweep& sweep, const RunnerOptions& options, SweepEnvironment environment)
      : sweep_(sweep), options_(options), world_(std::move(environment)), data_(world_.load_dataset) {
    if (!world_.clock) {
      world_.clock = [] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
      };
    }
    if (!world_.stop_requested) {
      signals_.emplace();
      world_.stop_requested = StopSignals::requested;
    }
    if (options_.max_time > 0) {
      const double end = world_.clock() + options_.max_time;
      world_.stop_requested = [asked = world_.stop_requested, clock = world_.clock, end] {
        const int signal = asked();
        return signal != 0 ? signal : clock() >= end ? kTimeIsUp : 0;
      };
    }
    if (world_.out == nullptr) world_.out = &std::cout;
  }

  SweepOutcome run() {
    check_options();
    SweepDirectory::check(options_.logdir, sweep_.name, options_.fresh);
    // A directory that is there is locked before it is read; a new one is made only when the sweep can start.
    if (!options_.fresh && std::filesystem::exists(options_.logdir / sweep_.name)) open_directory();
    find_finished();
    prepare();
    if (!directory_) open_directory();
    provenance_ = program_provenance(options_.command);
    changes_ = changes_since(directory_->path(), sweep_.runs, outdated_);
    write_sweep_file();
    train_all();
    return conclude();
  }

 private:
  // What a process that trains its runs itself cannot do.
  void check_options() const {
    if (!world_.worker_command.empty()) return;
    if (options_.jobs > 1) throw ConfigError("several runs at once need worker processes");
    if (options_.timeout > 0) throw ConfigError("ending a run that takes too long needs worker processes");
  }

  void open_directory() {
    directory_.emplace(SweepDirectory::open(options_.logdir, sweep_.name, options_.fresh));
    remove_temporaries(directory_->path());
  }

  // Which runs an earlier start has finished, with the same identity.
  void find_finished() {
    records_.resize(sweep_.runs.size());
    kept_.resize(sweep_.runs.size());
    for (std::size_t i = 0; i < sweep_.runs.size(); ++i) {
      const RunConfig& config = sweep_.runs[i];
      records_[i].name = config.name;
      records_[i].params = config.params;
      records_[i].config = config.resolved;
      if (!directory_) continue;
      const std::filesystem::path run_directory = directory_->path() / config.name;
      if (!std::filesystem::exists(run_directory / kRunRecordFile)) continue;
      std::optional<RunRecord> old = read_ended(run_directory);
      if (!old) continue;
      if (same_identity(*old, config)) {
        records_[i] = std::move(*old);
        kept_[i] = true;
      } else {
        outdated_.push_back(config.name);
      }
    }
  }

  // A run that is not to be trained again.
  std::optional<RunRecord> read_ended(const std::filesystem::path& run_directory) const {
    try {
      RunRecord record = read_run_record(run_directory / kRunRecordFile);
      if (record.status == RunStatus::kFailed && !options_.retry_failed) return record;
      if (record.status != RunStatus::kCompleted || !has_events(run_directory)) return std::nullopt;
      return record;
    } catch (const DataError&) {
      return std::nullopt;  // Damaged, or of another version: trained again.
    }
  }

  bool same_identity(const RunRecord& old, const RunConfig& config) {
    Json provenance = {{"numerics", kNumericsVersion}};
    if (!config.init.empty()) provenance["init_sha256"] = init_digest(config.init);
    return sweep::same_identity(old, config, provenance);
  }

  const std::string& init_digest(const std::filesystem::path& file) {
    std::string& digest = digests_[file.string()];
    if (digest.empty() && !file.empty()) digest = file_sha256(file);
    return digest;
  }

  // Loads and checks everything that the runs to be trained need; throws before anything is written.
  void prepare() {
    prepared_.resize(sweep_.runs.size());
    const bool all_kept = std::all_of(kept_.begin(), kept_.end(), [](bool kept) { return kept; });
    if (all_kept) return;
    check_against_data(sweep_, [this](const DatasetSpec& spec) {
      const auto data = data_.get(spec);
      return DataSizes{.shape = data->shape, .classes = data->class_names.size(), .train = data->train.count};
    });
    for (std::size_t i = 0; i < sweep_.runs.size(); ++i) {
      if (kept_[i]) continue;
      const RunConfig& config = sweep_.runs[i];
      PreparedRun& run = prepared_[i];
      run.config = &config;
      run.device = world_.parse_device(config.device);
      run.unavailable = world_.unavailable_reason(run.device, config.precision);
      run.data = data_.get(config.dataset);
      run.network = std::make_shared<const Network>(config.network, run.data->shape);
      if (!config.init.empty()) run.weights = load_weights(config.init, *run.network);
      records_[i].device = run.device.name();
    }
  }

  void write_sweep_file() {
    Json file = sweep_.resolved.is_object() ? sweep_.resolved : Json::object();
    Json runs = Json::array(), excluded = Json::array();
    for (const RunConfig& run : sweep_.runs) runs.push_back(run.name);
    for (const ExcludedRun& run : sweep_.excluded) {
      excluded.push_back({{"params", to_json(run.params)}, {"reason", run.reason}});
    }
    file["runs"] = std::move(runs);
    file["excluded"] = std::move(excluded);
    file["file"] = sweep_.file.string();
    file["provenance"] = provenance_;
    write_file_atomically(directory_->path() / kSweepFile, json_text(file));
  }

  Json run_provenance(const PreparedRun& run) {
    Json provenance = provenance_;
    provenance["dataset"] = dataset_provenance(*run.data);
    if (!run.config->init.empty()) {
      provenance["init"] = run.config->init.string();
      provenance["init_sha256"] = init_digest(run.config->init);
    }
    return provenance;
  }

  double work_of(const PreparedRun& run) const {
    if (run.config == nullptr || run.unavailable) return 0;
    return static_cast<double>(run.data->train.count) * run.config->epochs;
  }

  void train_all() {
    double work = 0;
    for (const PreparedRun& run : prepared_) work += work_of(run);
    for (std::size_t i = 0; i < prepared_.size(); ++i) {
      if (prepared_[i].config == nullptr) continue;
      records_[i].provenance = prepared_[i].provenance = run_provenance(prepared_[i]);
    }
    SweepBook book({.directory = directory_->path(),
                    .name = directory_->name(),
                    .keys = sweep_.keys,
                    .clock = world_.clock,
                    .terminal = world_.terminal,
                    .quiet = options_.quiet,
                    .work = work},
                   sweep_.runs, std::move(records_));
    for (const std::string& change : changes_) book.progress().message(change);
    book.progress().keep_runs(static_cast<std::size_t>(std::count(kept_.begin(), kept_.end(), true)));
    try {
      skip_unavailable(book);
      world_.worker_command.empty() ? train_here(book) : train_elsewhere(book);
      book.finish();
      check_directory();
    } catch (const IoError&) {
      check_directory();
      book.save_what_can_be();
      throw;
    }
    cost_ = book.cost();
    records_ = book.manager().records();
  }

  void check_directory() const {
    if (directory_->exists()) return;
    throw IoError(
        fmt::format("{}: was removed or renamed while the sweep was running; the same command starts anew",
                    directory_->path().string()));
  }

  void skip_unavailable(SweepBook& book) {
    for (std::size_t i = 0; i < prepared_.size(); ++i) {
      const PreparedRun& run = prepared_[i];
      if (run.config == nullptr || !run.unavailable) continue;
      book.manager().skip_run(describe_run(*run.config, run.device), *run.unavailable,
                              options_.strict ? RunStatus::kFailed : RunStatus::kSkipped);
      book.end_run(i);
    }
  }

  bool is_to_train(std::size_t run) const {
    return prepared_[run].config != nullptr && !prepared_[run].unavailable;
  }

  void train_here(SweepBook& book) {
    for (std::size_t i = 0; i < prepared_.size(); ++i) {
      if (!is_to_train(i)) continue;
      for (int attempt = 0;; ++attempt) {
        if (world_.stop_requested() != 0) return;
        book.begin_run(i);
        train_run(prepared_[i], book.manager(), book.progress().run(i + 1),
                  {.make_engine = world_.make_engine,
                   .clock = world_.clock,
                   .stop_requested = world_.stop_requested,
                   .threads = [this] { return options_.threads; }});
        if (book.record(i).status != RunStatus::kFailed || attempt >= options_.retry) break;
        if (book.record(i).error.value_or("").starts_with(kDiverged)) break;
      }
      book.end_run(i);
      book.save_if_due();
      if (options_.fail_fast && book.record(i).status == RunStatus::kFailed) return;
    }
  }

  void train_elsewhere(SweepBook& book) {
    std::vector<ScheduledRun> runs;
    for (std::size_t i = 0; i < prepared_.size(); ++i) {
      if (is_to_train(i))
        runs.push_back({i, std::move(prepared_[i]), data_.position(prepared_[i].config->dataset)});
    }
    if (runs.empty()) return;
    // From here on the samples are in memory that the workers see, and only there; what was checked of
    // networks and weights the workers make for themselves.
    prepared_.clear();
    for (ScheduledRun& run : runs) {
      run.prepared.data.reset();
      run.prepared.network.reset();
      run.prepared.weights = {};
    }
    const std::vector<SharedDataset> datasets = data_.take_shared();
    SchedulerOptions options{.jobs = options_.jobs,
                             .threads = options_.threads,
                             .cores = available_cores(),
                             .retry = options_.retry,
                             .fail_fast = options_.fail_fast,
                             .timeout = options_.timeout,
                             .stall_seconds = world_.stall_seconds,
                             .worker = {world_.worker_command, {directory_->lock_fd()}},
                             .clock = world_.clock,
                             .stop_requested = world_.stop_requested,
                             .check_directory = [this] { check_directory(); }};
    for (const SharedDataset& dataset : datasets) options.worker.inherited.push_back(dataset.fd());
    train_in_workers(runs, datasets, options, book);
  }

  SweepOutcome conclude() {
    if (options_.json) {
      *world_.out << json_text(results_json(records_, directory_->name()));
    } else {
      *world_.out << results_table(
          records_, sweep_.keys,
          {.color = stdout_color(), .unicode = stdout_unicode(), .width = stdout_width()});
    }
    world_.out->flush();
    const int signal = world_.stop_requested();
    if (!options_.quiet && cost_.runs > 0) world_.terminal.write("\n" + cost_text(cost_) + "\n");
    if (!options_.quiet) {
      world_.terminal.write(fmt::format("\nTo look at it: tensorboard --logdir {}\n",
                                        shell_command({options_.logdir.string()})));
    }
    if (signal != 0 && !options_.command.empty()) {
      world_.terminal.write(
          fmt::format("Stopped by {}. To go on: {}\n", signal_name(signal), resume_command()));
    }
    return {.runs = records_, .directory = directory_->path(), .exit_code = exit_code(signal)};
  }

  // The same command; of a fresh directory, one that names it.
  std::string resume_command() const {
    std::vector<std::string> words = options_.command;
    if (options_.fresh) {
      std::erase(words, "--fresh");
      words.push_back("name=" + directory_->name());
    }
    return shell_command(words);
  }

  int exit_code(int signal) const {
    constexpr int kRunAgain = 75;  // EX_TEMPFAIL
    if (signal == SIGUSR1 || signal == kTimeIsUp) return kRunAgain;
    if (signal != 0) return 128 + signal;
    const bool failed = std::any_of(records_.begin(), records_.end(),
                                    [](const RunRecord& run) { return run.status == RunStatus::kFailed; });
    return failed ? 1 : 0;
  }

  const Sweep& sweep_;
  const RunnerOptions& options_;
  SweepEnvironment world_;
  std::optional<StopSignals> signals_;
  DatasetCache data_;
  std::map<std::string, std::string> digests_;  // of files with weights
  std::optional<SweepDirectory> directory_;
  Json provenance_;
  SweepCost cost_;
  std::vector<RunRecord> records_;     // one per run of the sweep
  std::vector<bool> kept_;             // finished before
  std::vector<PreparedRun> prepared_;  // config is null where kept
  std::vector<std::string> outdated_;  // finished before, with other settings
  std::vector<std::string> changes_;   // of the sweep file since the last start, in words
};

}  // namespace

SweepOutcome run_sweep(const Sweep& sweep, const RunnerOptions& options, SweepEnvironment environment) {
  return SweepRunner(sweep, options, std::move(environment)).run();
}

}  // namespace sweep

#include "runmanager/sweep_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/data/content_reader.h"
#include "runmanager/aggregate.h"
#include "runmanager/checkpoint.h"
#include "runmanager/progress.h"
#include "runmanager/provenance.h"
#include "runmanager/run_files.h"
#include "runmanager/run_manager.h"
#include "runmanager/run_trainer.h"
#include "runmanager/stop_signals.h"
#include "runmanager/sweep_directory.h"
#include "runmanager/sweep_file.h"
#include "runmanager/table.h"

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
    if (world_.out == nullptr) world_.out = &std::cout;
  }

  SweepOutcome run() {
    if (options_.jobs != 1) {
      throw ConfigError(fmt::format(
          "--jobs {}: this version trains one run at a time; leave --jobs out, or give 1", options_.jobs));
    }
    SweepDirectory::check(options_.logdir, sweep_.name, options_.fresh);
    // A directory that is there is locked before it is read; a new one is made only when the sweep can start.
    if (!options_.fresh && std::filesystem::exists(options_.logdir / sweep_.name)) open_directory();
    find_finished();
    prepare();
    if (!directory_) open_directory();
    provenance_ = program_provenance(options_.command);
    write_sweep_file();
    train_all();
    return conclude();
  }

 private:
  void open_directory() {
    directory_.emplace(SweepDirectory::open(options_.logdir, sweep_.name, options_.fresh));
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
      std::optional<RunRecord> old = read_finished(run_directory);
      if (!old) continue;
      if (same_identity(*old, config)) {
        records_[i] = std::move(*old);
        kept_[i] = true;
      } else {
        ++outdated_;
      }
    }
  }

  static std::optional<RunRecord> read_finished(const std::filesystem::path& run_directory) {
    try {
      RunRecord record = read_run_record(run_directory / kRunRecordFile);
      if (record.status != RunStatus::kCompleted || !has_events(run_directory)) return std::nullopt;
      return record;
    } catch (const DataError&) {
      return std::nullopt;  // Damaged, or of another version: trained again.
    }
  }

  // Compared as text, in which 1 and 1.0 differ: typed parameters, configuration with its seed, and the
  // weights and the arithmetic that it starts from.
  bool same_identity(const RunRecord& old, const RunConfig& config) {
    return old.name == config.name && to_json(old.params).dump() == to_json(config.params).dump() &&
           old.config.dump() == config.resolved.dump() &&
           old.provenance.value("numerics", 0) == kNumericsVersion &&
           old.provenance.value("init_sha256", "") == init_digest(config.init);
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
      run.unavailable = world_.unavailable_reason(run.device);
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
    write_file_atomically(directory_->path() / "sweep.json", json_text(file));
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
      if (prepared_[i].config != nullptr) records_[i].provenance = run_provenance(prepared_[i]);
    }
    RunManager manager({.directory = directory_->path(),
                        .name = directory_->name(),
                        .keys = sweep_.keys,
                        .provenance = {},
                        .clock = world_.clock});
    manager.expect(records_);
    manager.save(kResults);
    const AggregateRuns aggregates(directory_->path(), sweep_.runs);
    aggregates.update_all(manager.records());
    Progress progress(world_.terminal, world_.clock, options_.quiet, directory_->name(), sweep_.runs.size(),
                      work);
    if (outdated_ > 0) {
      progress.message(fmt::format(
          "{} finished run{} had other settings and {} trained again; with --fresh they would be kept",
          outdated_, outdated_ == 1 ? "" : "s", outdated_ == 1 ? "is" : "are"));
    }
    progress.keep_runs(static_cast<std::size_t>(std::count(kept_.begin(), kept_.end(), true)));
    try {
      for (std::size_t i = 0; i < prepared_.size() && !stop_; ++i) {
        if (prepared_[i].config == nullptr) continue;
        if (stop_ = world_.stop_requested() != 0; stop_) break;
        train_one(prepared_[i], manager, progress);
        const RunRecord& record = manager.records()[i];
        manager.save(kResults);
        aggregates.update(i, manager.records());
        progress.end_run(i + 1, record);
        stop_ = record.status == RunStatus::kInterrupted ||
                (options_.fail_fast && record.status == RunStatus::kFailed);
      }
    } catch (const IoError&) {
      save_what_can_be(manager);
      throw;
    }
    records_ = manager.records();
  }

  void train_one(const PreparedRun& run, RunManager& manager, Progress& progress) {
    if (run.unavailable) {
      manager.skip_run(describe_run(*run.config, run.device), *run.unavailable,
                       options_.strict ? RunStatus::kFailed : RunStatus::kSkipped);
      return;
    }
    train_run(run, manager, progress,
              {.make_engine = world_.make_engine,
               .clock = world_.clock,
               .stop_requested = world_.stop_requested,
               .threads = options_.threads});
  }

  // The disk may be full for large files and still have room for small ones.
  static void save_what_can_be(RunManager& manager) {
    try {
      manager.save(kResults);
    } catch (const IoError&) {
    }
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
    if (signal != 0) return signal_name(signal) == std::string_view("SIGUSR1") ? kRunAgain : 128 + signal;
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
  std::vector<RunRecord> records_;     // one per run of the sweep
  std::vector<bool> kept_;             // finished before
  std::vector<PreparedRun> prepared_;  // config is null where kept
  std::size_t outdated_ = 0;           // finished before, with other settings
  bool stop_ = false;
};

}  // namespace

SweepOutcome run_sweep(const Sweep& sweep, const RunnerOptions& options, SweepEnvironment environment) {
  return SweepRunner(sweep, options, std::move(environment)).run();
}

}  // namespace sweep

#include "runmanager/sweep/sweep_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iostream>
#include <set>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/data/dataset_remarks.h"
#include "core/data/sample_format.h"
#include "runmanager/config/data_check.h"
#include "runmanager/records/checkpoint.h"
#include "runmanager/records/existing_runs.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/replaced_runs.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/records/sweep_changes.h"
#include "runmanager/records/sweep_directory.h"
#include "runmanager/sweep/dataset_cache.h"
#include "runmanager/sweep/in_process_executor.h"
#include "runmanager/sweep/requested_runs.h"
#include "runmanager/sweep/run_scheduler.h"
#include "runmanager/sweep/shared_dataset.h"
#include "runmanager/sweep/sweep_recorder.h"
#include "runmanager/sweep/worker_pool.h"
#include "runmanager/sweepfile/sweep_file.h"
#include "runmanager/tensorboard/view_hint.h"
#include "runmanager/terminal/json_progress.h"
#include "runmanager/terminal/table.h"
#include "runmanager/text/json_output.h"
#include "runmanager/training/stop_signals.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

std::string quoted_path(const std::string& path) { return shell_command({path}); }

// Runs one sweep, in the order of run(). Everything that can fail because of the configuration comes before
// the first file is written.
class SweepRunner {
 public:
  SweepRunner(const Sweep& sweep, const RunnerOptions& options, SweepEnvironment environment)
      : sweep_(sweep),
        options_(options),
        environment_(std::move(environment)),
        data_(environment_.load_dataset) {
    if (!environment_.clock) {
      environment_.clock = [] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
      };
    }
    if (!environment_.stop_requested) {
      signals_.emplace();
      environment_.stop_requested = StopSignals::requested;
    }
    if (options_.max_time > 0) {
      const double end = environment_.clock() + options_.max_time;
      environment_.stop_requested = [asked = environment_.stop_requested, clock = environment_.clock, end] {
        const int signal = asked();
        return signal != 0 ? signal : clock() >= end ? kTimeIsUp : 0;
      };
    }
    if (environment_.out == nullptr) environment_.out = &std::cout;
  }

  SweepOutcome run() {
    check_options();
    SweepDirectory::check(options_.logdir, sweep_.name, options_.fresh);
    // An existing directory is locked before it is read. A new one is made only when the sweep can start.
    if (!options_.fresh && std::filesystem::exists(options_.logdir / sweep_.name)) open_directory();
    data_error_ = load_datasets(sweep_, data_);  // The data is part of what a run is.
    collect_remarks();
    find_existing();
    prepare();
    if (!directory_) open_directory();
    provenance_ = program_provenance(options_.command);
    changes_ = changes_since(directory_->path(), sweep_.runs, existing_);
    make_room(directory_->path(), sweep_.runs, existing_);
    write_sweep_file();
    train_all();
    return conclude();
  }

 private:
  // Refuses what needs worker processes if there are none.
  void check_options() const {
    if (!environment_.worker_command.empty()) return;
    if (options_.jobs > 1) throw ConfigError("several runs at once need worker processes");
    if (options_.timeout > 0) throw ConfigError("ending a run that takes too long needs worker processes");
  }

  void open_directory() {
    directory_.emplace(SweepDirectory::open(options_.logdir, sweep_.name, options_.fresh));
    remove_temporaries(directory_->path());
  }

  // What a person should know about the data: skipped files, say. Told once per data set.
  void collect_remarks() {
    std::set<const Dataset*> seen;
    for (const RunConfig& config : sweep_.runs) {
      const auto data = data_.find(config.dataset);
      if (!data || !seen.insert(data.get()).second) continue;
      const std::vector<std::string> remarks = dataset_remarks(*data);
      remarks_.insert(remarks_.end(), remarks.begin(), remarks.end());
    }
  }

  // What earlier starts have left of the runs. Throws if some of it is in the way.
  void find_existing() {
    records_.resize(sweep_.runs.size());
    kept_.resize(sweep_.runs.size());
    existing_.resize(sweep_.runs.size());
    for (std::size_t i = 0; i < sweep_.runs.size(); ++i) {
      records_[i].name = sweep_.runs[i].name;
      records_[i].params = sweep_.runs[i].params;
      records_[i].config = sweep_.runs[i].resolved;
    }
    if (!directory_) return;
    const std::vector<RequestedRun> requests =
        requested_runs(sweep_, data_, weights_digests_, environment_.parse_device);
    existing_ = find_existing_runs(directory_->path(), requests, options_.retry_failed);
    if (!options_.replace) refuse_runs_in_the_way(directory_->path(), requests, existing_);
    for (std::size_t i = 0; i < existing_.size(); ++i) {
      if (existing_[i].fate != RunFate::kKept) continue;
      kept_[i] = true;
      records_[i] = *existing_[i].record;
      records_[i].name = sweep_.runs[i].name;
      records_[i].params = sweep_.runs[i].params;
    }
  }

  // Loads and checks everything that the runs to be trained need; throws before anything is written.
  void prepare() {
    prepared_.resize(sweep_.runs.size());
    const bool all_kept = std::all_of(kept_.begin(), kept_.end(), [](bool kept) { return kept; });
    if (all_kept) return;
    if (data_error_) std::rethrow_exception(data_error_);
    check_against_data(sweep_, [this](const DatasetSpec& spec) { return sizes_of(*data_.get(spec)); });
    for (std::size_t i = 0; i < sweep_.runs.size(); ++i) {
      if (kept_[i]) continue;
      const RunConfig& config = sweep_.runs[i];
      PreparedRun& run = prepared_[i];
      run.config = &config;
      run.device = environment_.parse_device(config.device);
      run.unavailable = environment_.unavailable_reason(run.device, config.precision);
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
    provenance["dataset"]["balance"] = dataset_balance(*run.data);
    provenance["input"] = to_json(sample_format(*run.data));
    if (!run.config->init.empty()) {
      provenance["init"] = run.config->init.string();
      provenance["init_sha256"] = weights_digests_.get(run.config->init);
    }
    return provenance;
  }

  // Training samples times epochs: what the progress display measures the time left by.
  double work(const PreparedRun& run) const {
    if (run.config == nullptr || run.unavailable) return 0;
    return static_cast<double>(run.data->train.count) * run.config->epochs;
  }

  void train_all() {
    double total_work = 0;
    for (const PreparedRun& run : prepared_) total_work += work(run);
    for (std::size_t i = 0; i < prepared_.size(); ++i) {
      if (prepared_[i].config == nullptr) continue;
      records_[i].provenance = prepared_[i].provenance = run_provenance(prepared_[i]);
    }
    SweepRecorder recorder({.directory = directory_->path(),
                            .name = directory_->name(),
                            .keys = sweep_.keys,
                            .clock = environment_.clock,
                            .terminal = environment_.terminal,
                            .quiet = options_.quiet,
                            .json = options_.json,
                            .work = total_work,
                            .replaces = replaced_runs()},
                           sweep_.runs, std::move(records_));
    for (const std::string& remark : remarks_) recorder.progress().message(remark);
    for (const std::string& change : changes_) recorder.progress().message(change);
    recorder.progress().keep_runs(static_cast<std::size_t>(std::count(kept_.begin(), kept_.end(), true)));
    try {
      skip_unavailable(recorder);
      std::vector<ScheduledRun> runs = runs_to_train();
      if (!runs.empty()) {
        environment_.worker_command.empty() ? train_here(runs, recorder) : train_in_workers(runs, recorder);
      }
      recorder.finish();
      check_directory();
    } catch (const IoError&) {
      // If the whole directory is gone, that is the reason, whichever file was missed first.
      check_directory();
      recorder.try_save();
      throw;
    }
    cost_ = recorder.cost();
    means_ = recorder.means();
    records_ = recorder.records();
  }

  void check_directory() const {
    if (directory_->exists()) return;
    throw IoError(
        fmt::format("{}: was removed or renamed while the sweep was running; the same command starts anew",
                    directory_->path().string()));
  }

  void skip_unavailable(SweepRecorder& recorder) {
    for (std::size_t i = 0; i < prepared_.size(); ++i) {
      const PreparedRun& run = prepared_[i];
      if (run.config == nullptr || !run.unavailable) continue;
      recorder.skip_run(i, describe_run(*run.config, run.device),
                        options_.strict ? RunStatus::kFailed : RunStatus::kSkipped, *run.unavailable);
    }
  }

  // Runs whose old directories wait for the new ones to finish, from this start or an earlier one.
  std::set<std::size_t> replaced_runs() const {
    std::set<std::size_t> runs;
    const std::set<std::string> names = runs_set_aside(directory_->path());
    for (std::size_t i = 0; i < sweep_.runs.size(); ++i) {
      if (names.contains(sweep_.runs[i].name)) runs.insert(i);
    }
    return runs;
  }

  std::vector<ScheduledRun> runs_to_train() {
    std::vector<ScheduledRun> runs;
    for (std::size_t i = 0; i < prepared_.size(); ++i) {
      if (prepared_[i].config == nullptr || prepared_[i].unavailable) continue;
      runs.push_back({i, std::move(prepared_[i]), data_.position(sweep_.runs[i].dataset)});
    }
    prepared_.clear();
    return runs;
  }

  SchedulerOptions scheduler_options(std::size_t slots) {
    return {.slots = slots,
            .one_run_per_gpu = options_.jobs == 0,
            .threads = options_.threads,
            .cores = available_cores(),
            .retry = options_.retry,
            .fail_fast = options_.fail_fast,
            .timeout = options_.timeout,
            .stall_seconds = environment_.stall_seconds,
            .clock = environment_.clock,
            .stop_requested = environment_.stop_requested,
            .check_directory = [this] { check_directory(); }};
  }

  void train_here(const std::vector<ScheduledRun>& runs, SweepRecorder& recorder) {
    InProcessExecutor executor({.directory = directory_->path(),
                                .make_engine = environment_.make_engine,
                                .clock = environment_.clock,
                                .stop_requested = environment_.stop_requested,
                                .threads = {}});
    schedule_runs(runs, executor, scheduler_options(1), recorder);
  }

  void train_in_workers(std::vector<ScheduledRun>& runs, SweepRecorder& recorder) {
    // The samples move to memory that the workers see, so this process drops its own. Networks and weights
    // were loaded for the checks only: each worker makes its own.
    for (ScheduledRun& run : runs) {
      run.prepared.data.reset();
      run.prepared.network.reset();
      run.prepared.weights = {};
    }
    const std::vector<SharedDataset> datasets = data_.move_to_shared_memory();
    const int jobs = options_.jobs > 0 ? options_.jobs : automatic_jobs(runs.size(), available_cores());
    const std::size_t slots = std::min(static_cast<std::size_t>(jobs), runs.size());
    // The lock is inherited, so that nobody else writes to the directory before the last worker is gone.
    WorkerPool executor({environment_.worker_command, {directory_->lock_fd()}}, directory_->path(), datasets,
                        slots);
    schedule_runs(runs, executor, scheduler_options(slots), recorder);
  }

  SweepOutcome conclude() {
    if (options_.json) {
      *environment_.out << json_text(results_json(records_, directory_->name()));
    } else {
      *environment_.out << results_table(
          records_, sweep_.keys,
          {.color = stdout_color(), .unicode = stdout_unicode(), .width = stdout_width()});
    }
    environment_.out->flush();
    const int signal = environment_.stop_requested();
    if (!options_.quiet && cost_.runs > 0) say("\n" + cost_text(cost_) + "\n");
    if (!options_.quiet) say("\n" + view_hint(directory_->path(), records_, means_, quoted_path));
    if (signal != 0 && !options_.command.empty()) {
      say(fmt::format("Stopped by {}. To go on: {}\n", signal_name(signal), resume_command()));
    }
    return {.runs = records_, .directory = directory_->path(), .exit_code = exit_code(signal)};
  }

  // `text`: lines with their ends, perhaps an empty one before them.
  void say(std::string_view text) const {
    if (!options_.json) return environment_.terminal.write(text);
    text.remove_prefix(text.starts_with('\n') ? 1 : 0);
    text.remove_suffix(1);
    environment_.terminal.write(json_message(text));
  }

  // The same command. One with --fresh would make yet another directory, so this one is named instead. What
  // was read from standard input is gone, but the directory has it.
  std::string resume_command() const {
    std::vector<std::string> words = options_.command;
    if (sweep_.file == kStandardInput)
      return shell_command({words.at(0), "resume", directory_->path().string()});
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
  SweepEnvironment environment_;
  std::optional<StopSignals> signals_;
  DatasetCache data_;
  WeightsDigests weights_digests_;
  std::optional<SweepDirectory> directory_;
  Json provenance_;
  SweepCost cost_;
  std::vector<std::string> means_;     // names of the runs that show means of repeats
  std::vector<RunRecord> records_;     // one per run of the sweep
  std::vector<bool> kept_;             // one per run: ended in an earlier start, and is not trained again
  std::vector<PreparedRun> prepared_;  // one per run, until runs_to_train(); config is null where kept
  std::vector<ExistingRun> existing_;  // one per run: what earlier starts have left of it
  std::exception_ptr data_error_;      // why a data set could not be loaded
  std::vector<std::string> remarks_;   // on the data sets
  std::vector<std::string> changes_;   // of the sweep file since the last start, as sentences
};

}  // namespace

SweepOutcome run_sweep(const Sweep& sweep, const RunnerOptions& options, SweepEnvironment environment) {
  return SweepRunner(sweep, options, std::move(environment)).run();
}

}  // namespace sweep

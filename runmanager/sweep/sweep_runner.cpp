#include "runmanager/sweep/sweep_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <iostream>
#include <set>

#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/records/existing_runs.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/replaced_runs.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/records/sweep_changes.h"
#include "runmanager/records/sweep_directory.h"
#include "runmanager/sweep/in_process_executor.h"
#include "runmanager/sweep/run_preparer.h"
#include "runmanager/sweep/run_scheduler.h"
#include "runmanager/sweep/sweep_recorder.h"
#include "runmanager/sweep/sweep_summary.h"
#include "runmanager/sweep/trial_runs.h"
#include "runmanager/sweep/worker_pool.h"
#include "runmanager/text/json_output.h"
#include "runmanager/training/stop_signals.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

// Runs one sweep, in the order of run(). Everything that can fail because of the configuration comes before
// the first file is written.
class SweepRunner {
 public:
  SweepRunner(const Sweep& sweep, const RunnerOptions& options, SweepEnvironment environment)
      : growing_(copy_if_growing(sweep)),
        sweep_(growing_ ? *growing_ : sweep),
        options_(options),
        environment_(std::move(environment)),
        preparer_(environment_, program_provenance(options.command)) {
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
    preparer_.load(sweep_);  // The data is part of what a run is.
    find_existing();
    prepare();
    if (!directory_) open_directory();
    // The trials that earlier starts have added are not known yet, so they would seem to be gone.
    if (!growing_) changes_ = changes_since(directory_->path(), sweep_.runs, existing_);
    make_room(directory_->path(), sweep_.runs, existing_);
    write_sweep_file();
    train_runs();
    return conclude();
  }

 private:
  // Runs are referred to, so that those of a sweep that grows must not move.
  static std::optional<Sweep> copy_if_growing(const Sweep& sweep) {
    if (!sweep.search || sweep.search->method != SearchMethod::kTpe) return std::nullopt;
    std::optional<Sweep> copy = sweep;
    copy->runs.reserve(std::max(sweep.runs.size(), sweep.search->trials));
    return copy;
  }

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

  // What earlier starts have left of the runs. Throws if some of it is in the way.
  void find_existing() {
    records_.resize(sweep_.runs.size());
    kept_.resize(sweep_.runs.size());
    existing_.resize(sweep_.runs.size());
    for (std::size_t i = 0; i < sweep_.runs.size(); ++i) records_[i] = new_record(sweep_.runs[i]);
    if (!directory_) return;
    std::vector<RequestedRun> requests;
    for (const RunConfig& config : sweep_.runs) requests.push_back(preparer_.request(config));
    existing_ = find_existing_runs(directory_->path(), requests, options_.retry_failed);
    if (!options_.replace) refuse_runs_in_the_way(directory_->path(), requests, existing_);
    for (std::size_t i = 0; i < existing_.size(); ++i) {
      kept_[i] = existing_[i].fate == RunFate::kKept;
      if (auto record = known_record(existing_[i], sweep_.runs[i])) records_[i] = *std::move(record);
    }
  }

  static RunRecord new_record(const RunConfig& config) {
    RunRecord record;
    record.name = config.name;
    record.params = config.params;
    record.config = config.resolved;
    return record;
  }

  // The record of a run that earlier starts have finished; with a search, also of one that they have begun:
  // what is known of it counts.
  std::optional<RunRecord> known_record(const ExistingRun& existing, const RunConfig& config) const {
    const bool is_kept = existing.fate == RunFate::kKept;
    if (!is_kept && !(sweep_.search && existing.fate == RunFate::kContinued)) return std::nullopt;
    RunRecord record = *existing.record;
    record.name = config.name;
    record.params = config.params;
    if (!is_kept && record.status != RunStatus::kPruned) record.status = RunStatus::kInterrupted;
    return record;
  }

  // Loads and checks everything that the runs to be trained need; throws before anything is written.
  void prepare() {
    prepared_.resize(sweep_.runs.size());
    const bool all_kept = std::all_of(kept_.begin(), kept_.end(), [](bool kept) { return kept; });
    if (all_kept && !growing_) return;
    preparer_.check(sweep_);
    for (std::size_t i = 0; i < sweep_.runs.size(); ++i) {
      if (!kept_[i]) prepare(i);
    }
  }

  void prepare(std::size_t i) {
    prepared_[i] = preparer_.prepare(sweep_.runs[i]);
    records_[i].device = prepared_[i].device.name();
    records_[i].provenance = prepared_[i].provenance;
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
    file["provenance"] = preparer_.program();
    write_file_atomically(directory_->path() / kSweepFile, json_text(file));
  }

  // Training samples times epochs: what the progress display measures the time left by.
  double work(const PreparedRun& run) {
    if (run.config == nullptr || run.unavailable) return 0;
    return static_cast<double>(preparer_.training_samples(*run.config)) * run.config->epochs;
  }

  // Of the epochs of all runs that are there, how much a search trains; more than 1 where it adds runs.
  double fraction_trained() const {
    const int epochs = sweep_.runs.front().epochs;
    const auto runs = static_cast<double>(sweep_.runs.size());
    return TrialSchedule(*sweep_.search, sweep_.runs.size(), epochs).total_epochs() / (runs * epochs);
  }

  void train_runs() {
    double total_work = 0;
    for (const PreparedRun& run : prepared_) total_work += work(run);
    if (sweep_.search) total_work *= fraction_trained();
    SweepRecorder recorder({.directory = directory_->path(),
                            .name = directory_->name(),
                            .keys = sweep_.keys,
                            .clock = environment_.clock,
                            .terminal = environment_.terminal,
                            .quiet = options_.quiet,
                            .json = options_.json,
                            .total_runs = growing_ ? sweep_.search->trials : 0,
                            .work = total_work,
                            .replaces = replaced_runs()},
                           sweep_.runs, std::move(records_));
    for (const std::string& remark : preparer_.remarks()) recorder.progress().message(remark);
    for (const std::string& change : changes_) recorder.progress().message(change);
    recorder.progress().keep_runs(static_cast<std::size_t>(std::count(kept_.begin(), kept_.end(), true)));
    try {
      skip_unavailable(recorder);
      std::deque<ScheduledRun> runs = runs_to_train();
      if (sweep_.search)
        train_trials(runs, recorder);
      else if (!runs.empty())
        train_all(runs, recorder);
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
      if (run.config != nullptr && run.unavailable) skip(recorder, i, run);
    }
  }

  void skip(SweepRecorder& recorder, std::size_t i, const PreparedRun& run) {
    recorder.skip_run(i, describe_run(*run.config, run.device),
                      options_.strict ? RunStatus::kFailed : RunStatus::kSkipped, *run.unavailable);
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

  std::deque<ScheduledRun> runs_to_train() {
    std::deque<ScheduledRun> runs;
    for (std::size_t i = 0; i < prepared_.size(); ++i) {
      if (prepared_[i].config == nullptr || prepared_[i].unavailable) continue;
      runs.push_back({i, std::move(prepared_[i]), preparer_.dataset_position(sweep_.runs[i])});
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

  // Trains the runs of `source`, at most `most_at_once` of them at once. `runs`: those known by now.
  void train(RunSource& source, std::deque<ScheduledRun>& runs, std::size_t most_at_once,
             SweepRecorder& recorder) {
    environment_.worker_command.empty() ? train_here(source, recorder)
                                        : train_in_workers(source, runs, most_at_once, recorder);
  }

  void train_all(std::deque<ScheduledRun>& runs, SweepRecorder& recorder) {
    std::vector<const ScheduledRun*> all;
    all.reserve(runs.size());
    for (const ScheduledRun& run : runs) all.push_back(&run);
    ListedRuns source(std::move(all));
    train(source, runs, runs.size(), recorder);
  }

  void train_trials(std::deque<ScheduledRun>& runs, SweepRecorder& recorder) {
    const auto add = [&](RunConfig config) { return add_trial(std::move(config), recorder); };
    const auto prune = [&](std::size_t run, const std::string& reason) {
      const RunConfig& config = sweep_.runs[run];
      recorder.prune_run(run, describe_run(config, environment_.parse_device(config.device)), reason);
    };
    TrialRuns trials(sweep_, runs, recorder, {.add = add, .prune = prune});
    const std::size_t most = growing_ ? std::min(sweep_.search->at_once, sweep_.search->trials) : runs.size();
    if (!runs.empty() || growing_) train(trials, runs, most, recorder);
    if (kept_trials_ > 0) write_sweep_file();
    recorder.progress().keep_runs(std::exchange(kept_trials_, 0));
    search_end_ = trials.outcome();
  }

  // Adds a trial that the search has chosen. Its run may be there from an earlier start.
  std::optional<ScheduledRun> add_trial(RunConfig config, SweepRecorder& recorder) {
    const RunConfig& added = growing_->runs.emplace_back(std::move(config));
    const RequestedRun request = preparer_.request(added);
    existing_ = {find_existing_run(directory_->path(), request, options_.retry_failed)};
    if (!options_.replace) refuse_runs_in_the_way(directory_->path(), {&request, 1}, existing_);
    make_room(directory_->path(), {&added, 1}, existing_);
    RunRecord record = known_record(existing_[0], added).value_or(new_record(added));
    if (existing_[0].fate == RunFate::kKept) {
      recorder.add_run(std::move(record));
      ++kept_trials_;
      return std::nullopt;
    }
    write_sweep_file();
    recorder.progress().keep_runs(std::exchange(kept_trials_, 0));
    try {
      preparer_.check(added, sweep_.file);
      PreparedRun run = preparer_.prepare(added);
      record.device = run.device.name();
      record.provenance = run.provenance;
      recorder.add_run(std::move(record));
      if (!run.unavailable)
        return ScheduledRun{added.index, std::move(run), preparer_.dataset_position(added)};
      skip(recorder, added.index, run);
    } catch (const ConfigError& error) {
      // A network that does not fit its data, say: the point is as bad as can be.
      recorder.add_run(std::move(record));
      const Run run = describe_run(added, environment_.parse_device(added.device));
      recorder.skip_run(added.index, run, RunStatus::kFailed, error.what());
    }
    return std::nullopt;
  }

  void train_here(RunSource& source, SweepRecorder& recorder) {
    InProcessExecutor executor({.directory = directory_->path(),
                                .make_engine = environment_.make_engine,
                                .clock = environment_.clock,
                                .stop_requested = environment_.stop_requested,
                                .threads = {}});
    schedule_runs(source, executor, scheduler_options(1), recorder);
  }

  void train_in_workers(RunSource& source, std::deque<ScheduledRun>& runs, std::size_t most_at_once,
                        SweepRecorder& recorder) {
    // The samples move to memory that the workers see, so this process drops its own. Networks and weights
    // were loaded for the checks only: each worker makes its own.
    for (ScheduledRun& run : runs) {
      run.prepared.data.reset();
      run.prepared.network.reset();
      run.prepared.weights = {};
    }
    const std::vector<SharedDataset> datasets = preparer_.share_datasets();
    const int jobs = options_.jobs > 0 ? options_.jobs : automatic_jobs(most_at_once, available_cores());
    const std::size_t slots = std::min(static_cast<std::size_t>(jobs), most_at_once);
    // The lock is inherited, so that nobody else writes to the directory before the last worker is gone.
    WorkerPool executor({environment_.worker_command, {directory_->lock_fd()}}, directory_->path(), datasets,
                        slots);
    schedule_runs(source, executor, scheduler_options(slots), recorder);
  }

  SweepOutcome conclude() {
    const int signal = environment_.stop_requested();
    print_summary({.sweep = sweep_,
                   .directory = directory_->path(),
                   .runs = records_,
                   .cost = cost_,
                   .means = means_,
                   .search = search_end_,
                   .signal = signal},
                  options_, environment_);
    return {.runs = records_, .directory = directory_->path(), .exit_code = exit_code_of(records_, signal)};
  }

  std::optional<Sweep> growing_;  // the sweep, where trials are added to it
  const Sweep& sweep_;
  const RunnerOptions& options_;
  SweepEnvironment environment_;
  std::optional<StopSignals> signals_;
  RunPreparer preparer_;
  std::optional<SweepDirectory> directory_;
  SweepCost cost_;
  std::optional<SearchEnd> search_end_;
  std::size_t kept_trials_ = 0;        // added, and not told yet
  std::vector<std::string> means_;     // names of the runs that show means of repeats
  std::vector<RunRecord> records_;     // one per run of the sweep
  std::vector<bool> kept_;             // one per run: ended in an earlier start, and is not trained again
  std::vector<PreparedRun> prepared_;  // one per run, until runs_to_train(); config is null where kept
  std::vector<ExistingRun> existing_;  // one per run: what earlier starts have left of it
  std::vector<std::string> changes_;   // of the sweep file since the last start, as sentences
};

}  // namespace

SweepOutcome run_sweep(const Sweep& sweep, const RunnerOptions& options, SweepEnvironment environment) {
  return SweepRunner(sweep, options, std::move(environment)).run();
}

}  // namespace sweep

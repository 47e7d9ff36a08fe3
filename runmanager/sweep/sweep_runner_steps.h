// What run_sweep() consists of. Not part of the installed interface.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runmanager/kinds/run_kind.h"
#include "runmanager/records/earlier_starts/existing_runs.h"
#include "runmanager/records/sweep_directory.h"
#include "runmanager/sweep/run_scheduler.h"
#include "runmanager/sweep/sweep_recorder.h"
#include "runmanager/sweep/sweep_runner.h"
#include "runmanager/training/stop_signals.h"

namespace sweep {

/// Runs one sweep, in the order of run(). Everything that can fail because of the configuration comes before
/// the first file is written. sweep_runner.cpp has the beginning and the end, sweep_training.cpp the
/// training, and joined_training.cpp what differs where several processes share the sweep.
class SweepRunner {
 public:
  SweepRunner(const Sweep& sweep, const RunnerOptions& options, SweepEnvironment environment);
  SweepOutcome run();
  /// What plan_sweep() does.
  PlannedSweep plan();

 private:
  // Runs are referred to, so that those of a sweep that grows must not move.
  static std::optional<Sweep> copy_if_growing(const Sweep& sweep);
  // Everything before the training, in a directory that only this process uses.
  void set_up();
  // The whole sweep, together with other processes.
  SweepOutcome run_joined();
  // The first process plans as if it had the directory for itself. The others find out what is there of a
  // run when they lock it.
  void plan_joined(bool alone);
  // Throws ConfigError if others train other runs, or with other data.
  void check_is_same() const;
  // Removes what killed processes have left in the sweep's directory.
  void clean_up() const;
  // Refuses what needs worker processes if there are none, and what several processes cannot have together.
  void check_options() const;
  void check_can_be_joined() const;
  void open_directory();
  void make_records();
  // Whether a run of the file has ended in an earlier start, and is not trained again.
  bool is_kept(std::size_t run) const { return existing_[run].fate == RunFate::kKept; }
  // What earlier starts have left of the runs. Throws if some of it is in the way.
  void find_existing();
  void refuse_other_population() const;
  // The epoch after which the last copies of a population were made; 0: there are none.
  int last_generation() const;
  // A member that failed before copies were made is not tried again: another result of it would ask for other
  // copies, of states that are gone.
  void keep_if_decided(ExistingRun& existing) const;
  static RunRecord new_record(const RunConfig& config);
  // The record of a run that earlier starts have finished; with a search, also of one that they have begun:
  // what is known of it counts.
  std::optional<RunRecord> known_record(const ExistingRun& existing, const RunConfig& config) const;
  // Loads and checks everything that the runs to be trained need; throws before anything is written.
  void prepare();
  ScheduledRun scheduled(const RunConfig& config) const;
  void write_sweep_file();
  // The file grows with the trials: writing it takes at most a twentieth of the time. Trials that it lacks
  // after a kill are chosen again, as results alone decide.
  void write_growing_file();
  // At once. Where others add trials to the file, only if it has fewer.
  void write_trials();
  void train_runs();
  // What earlier starts have done of a run, for the time left.
  void know_work(const ExistingRun& existing, const RunConfig& config);
  void check_directory() const;
  void train_with_others();
  // See SharingOptions.
  RunFate fate_of(const RunConfig& config);
  // Others may have the devices that this machine has not. Who is left last skips the runs.
  void leave_to_others(RunQueue& runs);
  void skip(const ScheduledRun& run);
  SchedulerOptions scheduler_options(std::size_t slots);
  // Trains the runs of `queue`, if there are any. Then knows whether it was stopped.
  void train(RunQueue& queue);
  void train_alone();
  void end_search(TrialRuns& trials);
  TrialRunsOptions trial_options();
  void prune(std::size_t run, const std::string& reason);
  // How many runs are trained at once.
  std::size_t slots() const;
  // Adds a trial that the search has chosen. Its run may be there from an earlier start.
  std::optional<ScheduledRun> add_trial(RunConfig config);
  // What earlier starts have left of runs, which others may have trained since. Throws ConfigError if any of
  // it is in the way.
  std::vector<ExistingRun> existing_runs(std::span<const RunConfig> runs, bool retry_failed, Adopted adopted);
  // The same for a trial that is added; sets aside what it replaces.
  ExistingRun make_room_for(const RunConfig& config);
  // Returns a run's lock once no other process has it. None if only this one trains, if `is_done`, or if this
  // process was asked to stop.
  std::optional<RunLock> wait_for_lock(const std::string& run, const std::function<bool()>& is_done);
  // See TrialRunsOptions. Throws DataError if the parent has gone on without it.
  bool keep_start(std::size_t parent, int epoch, const RunConfig& copy);
  // Whether every run has ended, and no trial was still to come.
  bool is_done() const;
  SweepOutcome conclude();

  std::optional<Sweep> growing_;  // the sweep, where trials are added to it
  const Sweep& sweep_;
  const RunnerOptions& options_;
  SweepEnvironment environment_;
  std::optional<StopSignals> signals_;
  const nlohmann::ordered_json program_;  // see program_provenance()
  const std::unique_ptr<RunKind> kind_;
  GpuPool gpus_;
  std::optional<SweepDirectory> directory_;
  std::optional<SweepRecorder> recorder_;  // while runs are trained
  RunQueue* shared_queue_ = nullptr;       // while runs are trained together with others
  SweepCost cost_;
  std::optional<SearchEnd> search_end_;
  bool was_stopped_ = false;              // while runs were trained
  bool has_failed_run_ = false;           // in this start
  double work_per_epoch_ = 1;             // of the runs' training, on average
  std::size_t kept_trials_ = 0;           // added, and not told yet
  bool lacks_trials_ = false;             // the written file
  double next_write_ = 0;                 // when it may be written again
  std::vector<std::string> means_;        // names of the runs that show means of repeats
  std::vector<RunRecord> records_;        // one per run of the sweep
  std::deque<ScheduledRun> runs_;         // to be trained, in the order of the sweep; trials are added
  std::deque<ScheduledRun> unavailable_;  // the same, but their devices are missing here
  std::vector<ExistingRun> existing_;     // one per run of the file: what earlier starts have left of it
  std::vector<std::string> changes_;      // of the sweep file since the last start, as sentences
  std::vector<std::string> earlier_;      // where trials are added: the last start's
};

}  // namespace sweep

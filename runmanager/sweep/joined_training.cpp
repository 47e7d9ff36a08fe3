// How a sweep is trained together with other processes.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/records/earlier_starts/replaced_runs.h"
#include "runmanager/records/earlier_starts/sweep_changes.h"
#include "runmanager/records/run_files.h"
#include "runmanager/sweep/joined_inputs.h"
#include "runmanager/sweep/joined_start.h"
#include "runmanager/sweep/shared_trials.h"
#include "runmanager/sweep/sweep_runner_steps.h"

namespace sweep {
namespace {

// The tasks of a Slurm array are one start; else one begins where no process works on the sweep.
std::string new_start() {
  for (const char* name : {"SLURM_ARRAY_JOB_ID", "SLURM_JOB_ID"}) {
    if (const char* job = std::getenv(name); job != nullptr && *job != '\0') return job;
  }
  return random_id();
}

// An error that leaves a training ends with the results saved once more, which must not ask the runs then.
struct Forget {
  std::function<void()>& collect;
  ~Forget() { collect = nullptr; }
};

}  // namespace

SweepOutcome SweepRunner::run_joined() {
  kind_->load(sweep_);
  kind_->check(sweep_);
  directory_.emplace(SweepDirectory::join(options_.logdir, sweep_.name));
  // Runs that no other process takes need no lock.
  if (!options_.takes) check_locks_reach(directory_->path());
  make_records();
  if (directory_->plan(
          new_start(), [this](bool alone) { plan_joined(alone); }, environment_.stop_requested)) {
    prepare();
    train_runs();
  }
  return conclude();
}

void SweepRunner::plan_joined(bool alone) {
  if (!alone) return check_is_same();
  if (!options_.takes) clean_up();
  find_existing();
  changes_ = changes_since(directory_->path(), sweep_.runs, existing_);
  make_room(directory_->path(), sweep_.runs, existing_);
  for (std::size_t i = 0; i < sweep_.runs.size(); ++i) {
    // That this start does not try them again holds for those that join it as well.
    if (!kept_[i] || records_[i].status != RunStatus::kFailed) continue;
    if (auto lock = RunLock::try_lock(directory_->path() / sweep_.runs[i].name))
      lock->note_failure(directory_->start());
  }
  write_inputs(directory_->path(), sweep_, *kind_);
  write_sweep_file();
}

void SweepRunner::check_is_same() const {
  const std::string directory = directory_->path().string();
  if (const std::string runs = differences_from_sweep_file(directory_->path(), sweep_, *kind_); !runs.empty())
    throw ConfigError(fmt::format(
        "{}: others train a sweep with other runs there:{}\nTo work with them, use the same sweep "
        "file, or: sweep resume {} --join",
        directory, runs, directory));
  if (const std::string inputs = differences_from_inputs(directory_->path(), sweep_, *kind_); !inputs.empty())
    throw ConfigError(
        fmt::format("{}: others train it with other data there:{}\nWho trains a run must not change its "
                    "results: use the same data, or another name: name=NAME",
                    directory, inputs));
}

std::function<void()> SweepRunner::refresh() {
  if (!options_.join) return {};
  return [this] {
    if (collect_) collect_();
  };
}

void SweepRunner::train_with_others(SweepRecorder& recorder) {
  std::deque<ScheduledRun> unavailable = unavailable_runs(), runs = runs_to_train();
  const auto finished = [this](std::size_t run, const RunLock& lock) { return finished_record(run, lock); };
  LockedRuns here(runs, recorder,
                  {.slots = slots_for(runs.size()),
                   .leaves = options_.leave,
                   .takes = options_.takes,
                   .start = directory_->start(),
                   .finished = finished});
  LockedRuns elsewhere(unavailable, recorder,
                       {.slots = 1,
                        .leaves = options_.leave,
                        .takes = options_.takes,
                        .start = directory_->start(),
                        .finished = finished});
  const Forget forget{collect_};
  collect_ = [&] {
    here.collect();
    elsewhere.collect();
  };
  if (!runs.empty()) train(here, runs, runs.size(), recorder);
  // A process that does not wait for others cannot know what they have: a node whose device is broken would
  // skip the runs of all.
  if (options_.leave)
    tell_of_unavailable(unavailable, recorder);
  else if (!unavailable.empty())
    leave_to_others(elsewhere, recorder);
  directory_->write_results([&] {
    do {
      recorder.finish();
    } while (here.collect() + elsewhere.collect() > 0);
    recorder.write_means();
  });
}

void SweepRunner::tell_of_unavailable(const std::deque<ScheduledRun>& runs, SweepRecorder& recorder) const {
  if (runs.empty()) return;
  recorder.progress().message(fmt::format("{} of the runs cannot be trained here and are left to others: {}",
                                          runs.size(), *runs.front().prepared.unavailable));
}

void SweepRunner::train_trials_with_others(SweepRecorder& recorder) {
  const std::deque<ScheduledRun> unavailable = unavailable_runs();
  std::deque<ScheduledRun> runs = runs_to_train();
  const std::size_t most = most_trials_at_once(runs.size());
  TrialRuns trials(sweep_, runs, recorder, trial_options(recorder));
  const auto is_whole = [this](std::size_t run) {
    const RequestedRun request = kind_->request(sweep_.runs[run]);
    return find_existing_run(directory_->path(), request, options_.retry_failed).fate == RunFate::kKept;
  };
  SharedTrials shared(trials, runs, recorder,
                      {.slots = slots_for(most), .start = directory_->start(), .is_whole = is_whole});
  const Forget forget{collect_};
  collect_ = [&] { shared.collect(); };
  if (!runs.empty() || growing_) train(shared, runs, most, recorder);
  tell_of_unavailable(unavailable, recorder);
  shared.add_known();
  if (growing_) write_trials();
  recorder.progress().keep_runs(std::exchange(kept_trials_, 0));
  search_end_ = trials.outcome();
  directory_->write_results([&] {
    recorder.finish();
    recorder.write_means();
  });
}

std::optional<RunRecord> SweepRunner::finished_record(std::size_t run, const RunLock& lock) {
  const RunConfig& config = sweep_.runs[run];
  const RequestedRun request = kind_->request(config);
  const bool retries = options_.retry_failed && lock.failed_start() != directory_->start();
  const ExistingRun existing = find_existing_run(directory_->path(), request, retries);
  refuse_runs_in_the_way(directory_->path(), {&request, 1}, {&existing, 1});
  return existing.fate == RunFate::kKept ? known_record(existing, config) : std::nullopt;
}

std::deque<ScheduledRun> SweepRunner::unavailable_runs() {
  std::deque<ScheduledRun> runs;
  for (std::size_t i = 0; i < prepared_.size(); ++i) {
    if (prepared_[i].config != nullptr && prepared_[i].unavailable) runs.push_back({i, prepared_[i], 0});
  }
  return runs;
}

void SweepRunner::leave_to_others(LockedRuns& runs, SweepRecorder& recorder) {
  constexpr std::chrono::milliseconds kBetweenLooks(500);
  directory_->stop_working();
  while (runs.has_open() && environment_.stop_requested() == 0) {
    directory_->act_alone([&] {
      for (std::vector<const ScheduledRun*> locked = runs.take_ready(); !locked.empty();
           locked = runs.take_ready()) {
        skip(recorder, locked.front()->run, locked.front()->prepared);
        runs.end(locked.front()->run);
      }
    });
    runs.collect();
    if (runs.has_open()) std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace sweep

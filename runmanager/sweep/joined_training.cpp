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
#include "runmanager/sweep/joined_start.h"
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

void SweepRunner::train_with_others() {
  std::optional<TrialRuns> trials;
  if (sweep_.search && waits_for_results(*sweep_.search))
    trials.emplace(sweep_, runs_, *recorder_, trial_options());
  SharingOptions sharing{.slots = slots(),
                         .leaves = options_.leave,
                         .takes = options_.takes,
                         .start = directory_->start(),
                         .fate = [this](std::size_t run) { return fate_of(run); }};
  RunQueue here(runs_, *recorder_, trials ? &*trials : nullptr, sharing);
  sharing.slots = 1;
  RunQueue elsewhere(unavailable_, *recorder_, nullptr, sharing);
  const Forget forget{collect_};
  collect_ = [&] { here.collect(); };
  train(here);
  // A process that does not wait for others cannot know what they have: a node whose device is broken would
  // skip the runs of all.
  if (options_.leave || trials)
    tell_of_unavailable();
  else if (!unavailable_.empty())
    leave_to_others(elsewhere);
  if (trials) {
    // Adds the trials that the results of others give.
    here.collect();
    for (const ScheduledRun* run : trials->take_ready()) trials->end(run->run);
    end_search(*trials);
  }
  directory_->write_results([&] {
    do {
      recorder_->finish();
    } while (here.collect() > 0);
    recorder_->write_means();
  });
}

void SweepRunner::tell_of_unavailable() {
  if (unavailable_.empty()) return;
  recorder_->progress().message(
      fmt::format("{} of the runs cannot be trained here and are left to others: {}", unavailable_.size(),
                  *unavailable_.front().needs.unavailable));
}

RunFate SweepRunner::fate_of(std::size_t run) {
  const RequestedRun request = kind_->request(sweep_.runs[run]);
  const std::string failed_start = failed_start_of(directory_->path() / sweep_.runs[run].name);
  const bool retries = options_.retry_failed && failed_start != directory_->start();
  const ExistingRun existing = find_existing_run(directory_->path(), request, retries);
  refuse_runs_in_the_way(directory_->path(), {&request, 1}, {&existing, 1});
  return existing.fate;
}

void SweepRunner::leave_to_others(RunQueue& runs) {
  constexpr std::chrono::milliseconds kBetweenLooks(500);
  directory_->stop_working();
  while (runs.has_open() && environment_.stop_requested() == 0) {
    directory_->act_alone([&] {
      for (std::vector<const ScheduledRun*> locked = runs.take_ready(); !locked.empty();
           locked = runs.take_ready()) {
        skip(*locked.front());
        runs.end(locked.front()->run);
      }
    });
    runs.collect();
    if (runs.has_open()) std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace sweep

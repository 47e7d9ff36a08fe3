// The runs that this process trains of a sweep that it shares with others: those that it can lock.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "runmanager/records/earlier_starts/existing_runs.h"
#include "runmanager/sweep/run_source.h"
#include "runmanager/sweep/sweep_recorder.h"

namespace sweep {

struct LockedRunsOptions {
  std::size_t slots = 1;                             // runs at once
  bool leaves = false;                               // whether nothing is waited for that others train
  std::function<bool(const RunConfig&)> takes = {};  // what may be locked; empty: all
  std::string start = {};                            // SweepDirectory::start()
  /// Of a search whose trials wait for results: chooses those that can be trained now. What a search decides
  /// is a function of its results alone, so any number of processes train the same trials. Null: all can be.
  RunSource* trials = nullptr;
  /// What the files of a run say. Throws ConfigError if they are those of a run with other settings.
  std::function<RunFate(std::size_t run)> fate;
};

/// Locks runs one after another, as slots become free, also those of others that have died: a run goes on
/// from its checkpoint, a trial before anything that depends on it is decided.
class LockedRuns final : public RunSource {
 public:
  /// `runs`: all that may have to be trained, in the order of the sweep; trials may be added. References must
  /// outlive the object.
  LockedRuns(std::deque<ScheduledRun>& runs, SweepRecorder& recorder, LockedRunsOptions options)
      : runs_(runs), recorder_(recorder), options_(std::move(options)) {}

  std::vector<const ScheduledRun*> take_ready() override;
  bool may_have_more() const override;
  bool owns(std::size_t run) const override;
  void end(std::size_t run) override;

  /// Whether runs are left that have not ended, as far as is known.
  bool has_open() const;
  /// Takes over the records of all runs of the sweep that others have trained. Returns how many of them have
  /// ended.
  std::size_t collect();

 private:
  using Clock = std::chrono::steady_clock;
  bool look();
  bool lock(ScheduledRun& run);
  bool collect(std::size_t run);
  ScheduledRun* find(std::size_t run) const;

  std::deque<ScheduledRun>& runs_;
  SweepRecorder& recorder_;
  const LockedRunsOptions options_;
  std::deque<std::size_t> candidates_;  // to be trained, and not tried to lock since the last look
  std::size_t active_ = 0;              // handed out, and not ended
  bool others_may_end_ = false;         // trials that this process cannot train now
  Clock::time_point look_begin_, next_look_;
};

}  // namespace sweep

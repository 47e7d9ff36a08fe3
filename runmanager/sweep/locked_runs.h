// The runs that this process trains of a sweep that it shares with others: those that it can lock.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runmanager/sweep/run_source.h"
#include "runmanager/sweep/sweep_recorder.h"

namespace sweep {

struct LockedRunsOptions {
  std::size_t slots = 1;                             // runs at once
  bool leaves = false;                               // whether nothing is waited for that others train
  std::function<bool(const RunConfig&)> takes = {};  // what may be locked; empty: all
  std::string start = {};                            // SweepDirectory::start()
  /// The record of a run if nothing is left to be trained, which was just locked.
  std::function<std::optional<RunRecord>(std::size_t run, const RunLock& lock)> finished;
};

/// When to look again at what others do, after a look that has begun then: later if a look takes long.
std::chrono::steady_clock::time_point next_look(std::chrono::steady_clock::time_point begin);

/// Locks runs one after another, as slots become free, also those of others that have died.
class LockedRuns final : public RunSource {
 public:
  /// `runs`: all that may have to be trained. References must outlive the object.
  LockedRuns(std::deque<ScheduledRun>& runs, SweepRecorder& recorder, LockedRunsOptions options);

  std::vector<const ScheduledRun*> take_ready() override;
  bool may_have_more() const override;
  bool owns(std::size_t run) const override;
  void end(std::size_t run) override;

  /// Whether runs are left that have not ended, as far as is known.
  bool has_open() const { return !open_.empty(); }
  /// Takes over the records of runs that others have ended. Returns how many there were.
  std::size_t collect();

 private:
  using Clock = std::chrono::steady_clock;
  struct OpenRun {
    ScheduledRun* run = nullptr;
    bool is_active = false;  // handed out, and not ended
  };
  enum class Got { kLock, kEnd, kNothing };
  std::filesystem::path directory_of(const OpenRun& open) const;
  OpenRun* lock_next();
  OpenRun* lock_from(std::size_t begin);
  Got lock(OpenRun& open);
  bool seems_ended(const OpenRun& open) const;
  std::vector<OpenRun>::const_iterator find(std::size_t run) const;

  SweepRecorder& recorder_;
  const LockedRunsOptions options_;
  std::vector<OpenRun> open_;  // those that have not ended, in the order of the sweep
  std::size_t next_ = 0;       // of open_: none before it could be locked when it was last tried
  std::size_t active_ = 0;
  Clock::time_point next_look_;  // at all of open_
};

}  // namespace sweep

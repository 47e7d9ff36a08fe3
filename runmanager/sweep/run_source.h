// The interface from which the scheduler takes runs to train.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "runmanager/sweep/run_executor.h"

namespace sweep {

/// Hands out the runs of a sweep when they can begin. Not thread-safe.
class RunSource {
 public:
  RunSource() = default;
  RunSource(const RunSource&) = delete;
  RunSource& operator=(const RunSource&) = delete;
  virtual ~RunSource() = default;

  /// The runs that can begin now and were not handed out before, in the order in which they should. Called at
  /// the start, and after each end() until the sweep is asked to stop. Each stays where it is until its end.
  virtual std::vector<const ScheduledRun*> take_ready() = 0;
  /// No further attempt to train the run follows. If it has paused, it may be handed out again.
  virtual void end(std::size_t run) = 0;

  /// Whether runs that were handed out and wait for a free slot may still begin. Once false, it stays so, and
  /// end() follows for each of them.
  virtual bool may_begin() const { return true; }
  /// Whether take_ready() is to be called again though no run has ended, as others than the caller decide
  /// what can begin.
  virtual bool may_have_more() const { return false; }
  /// Whether the run is the caller's to train and to write about.
  virtual bool owns(std::size_t) const { return true; }
};

/// Runs that are all known and independent of each other.
class ListedRuns final : public RunSource {
 public:
  /// `runs` has to outlive it.
  explicit ListedRuns(const std::deque<ScheduledRun>& runs) {
    for (const ScheduledRun& run : runs) runs_.push_back(&run);
  }

  std::vector<const ScheduledRun*> take_ready() override { return std::exchange(runs_, {}); }
  void end(std::size_t) override {}

 private:
  std::vector<const ScheduledRun*> runs_;
};

}  // namespace sweep

// The trials of a search that several processes train together: each reads the records, decides as one alone
// would, and trains what it can lock.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "runmanager/sweep/run_source.h"
#include "runmanager/sweep/sweep_recorder.h"
#include "runmanager/sweep/trial_runs.h"

namespace sweep {

struct SharedTrialsOptions {
  std::size_t slots = 1;  // trials at once
  std::string start;      // SweepDirectory::start()
  /// Whether the files of a trial that its record calls completed are whole.
  std::function<bool(std::size_t run)> is_whole;
};

/// What a search decides is a function of its results alone, so any number of processes train the same
/// trials. A trial of a process that died goes on elsewhere, from its checkpoint, before anything that
/// depends on it is decided.
class SharedTrials final : public RunSource {
 public:
  /// `runs`: those of `trials`. References must outlive the object.
  SharedTrials(TrialRuns& trials, std::deque<ScheduledRun>& runs, SweepRecorder& recorder,
               SharedTrialsOptions options);

  std::vector<const ScheduledRun*> take_ready() override;
  /// While a trial is to be trained that this process does not train.
  bool may_have_more() const override;
  bool owns(std::size_t run) const override;
  void end(std::size_t run) override;

  /// Takes over the records of what others have trained.
  void collect();
  /// The same of one trial.
  void collect(std::size_t run);
  /// The same, and adds the trials that their results give.
  void add_known();

 private:
  using Clock = std::chrono::steady_clock;
  bool lock(const ScheduledRun& run);
  ScheduledRun* find(std::size_t run) const;

  TrialRuns& trials_;
  std::deque<ScheduledRun>& runs_;
  SweepRecorder& recorder_;
  const SharedTrialsOptions options_;
  std::size_t active_ = 0;       // handed out, and not ended
  bool others_may_end_ = false;  // what this process cannot train now
  Clock::time_point next_look_;
};

}  // namespace sweep

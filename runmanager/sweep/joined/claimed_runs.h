// The runs that this process trains of a sweep that it shares with others.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "runmanager/sweep/joined/joined_sweep.h"
#include "runmanager/sweep/run_source.h"
#include "runmanager/sweep/sweep_recorder.h"

namespace sweep {

struct ClaimedRunsOptions {
  std::size_t slots = 1;                             // runs at once
  bool leaves = false;                               // whether nothing is waited for that others train
  std::size_t most = 0;                              // that are handed out; 0: all
  std::function<bool(const RunConfig&)> takes = {};  // what may be claimed; empty: all
  /// What is there of a run that this process has just claimed: its record if nothing is left to be trained.
  std::function<std::optional<RunRecord>(std::size_t run)> finished;
};

/// Claims runs one after another, as slots become free. Runs of others that die are claimed, too.
class ClaimedRuns final : public RunSource {
 public:
  /// `runs`: all that may have to be trained. References must outlive the object.
  ClaimedRuns(JoinedSweep& joined, std::deque<ScheduledRun>& runs, SweepRecorder& recorder,
              ClaimedRunsOptions options);

  std::vector<const ScheduledRun*> take_ready() override;
  bool may_have_more() const override;
  bool owns(std::size_t run) const override;
  bool settle(std::size_t run, const RunRecord& record) override;
  void end(std::size_t run) override;

  /// Whether runs are left that have not ended, as far as is known.
  bool has_open() const { return !open_.empty(); }
  /// Takes over the records of runs that others have ended. Returns how many there were.
  std::size_t collect();

 private:
  using Clock = std::chrono::steady_clock;
  struct OpenRun {
    ScheduledRun* run = nullptr;
    bool is_active = false;   // handed out, and not ended
    bool is_settled = false;  // this process has ended it
    bool was_lost = false;    // this process had it, and may have made files after another one ended it
  };
  const std::string& name_of(const OpenRun& open) const { return open.run->prepared.config->name; }
  OpenRun* claim_next();
  OpenRun* claim_from(std::size_t begin);
  bool claim(OpenRun& open);
  bool take_over_end(OpenRun& open);
  OpenRun* find(std::size_t run);
  const OpenRun* find(std::size_t run) const;

  JoinedSweep& joined_;
  SweepRecorder& recorder_;
  const ClaimedRunsOptions options_;
  std::vector<OpenRun> open_;  // those that have not ended, in the order of the sweep
  std::size_t next_ = 0;       // of open_: none before it was free when it was last tried
  std::size_t active_ = 0;
  std::size_t handed_out_ = 0;
  std::optional<Clock::time_point> last_look_;  // at all of open_
};

}  // namespace sweep

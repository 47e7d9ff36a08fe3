#include "runmanager/slurm/follow.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "core/base/error.h"
#include "runmanager/inspect/recorded_progress.h"
#include "runmanager/inspect/run_listing.h"
#include "runmanager/slurm/open_trials.h"
#include "runmanager/slurm/shapes.h"
#include "runmanager/slurm/slurm_status.h"
#include "runmanager/slurm/submission.h"
#include "runmanager/terminal/ended_line.h"
#include "runmanager/terminal/live_region.h"
#include "runmanager/terminal/live_table.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// A record written by another machine may become visible here only so much later.
constexpr std::chrono::seconds kVisibleAfter{60};

class Follower {
 public:
  Follower(const Sweep& sweep, const fs::path& directory, SlurmClient& client, const FollowOptions& options)
      : sweep_(sweep),
        directory_(directory),
        client_(client),
        options_(options),
        region_(options.terminal),
        progress_(sweep.name) {}

  FollowedSweep run() {
    for (;;) {
      const Clock::time_point begin = Clock::now();
      FollowedSweep followed = read();
      show(followed);
      if (followed.unfinished == 0 || options_.stop_requested() || nothing_lives(followed)) {
        region_.clear();
        return followed;
      }
      options_.wait();
      for (const auto rest = begin + kRestPerReading * reading_;
           Clock::now() < rest && !options_.stop_requested();)
        options_.wait();
    }
  }

 private:
  FollowedSweep read() {
    const Clock::time_point begin = Clock::now();
    FollowedSweep followed;
    followed.runs = list_runs(directory_);
    for (const RunRecord& run : followed.runs) followed.unfinished += has_ended(run.status) ? 0 : 1;
    if (is_shared_search(sweep_)) followed.unfinished = open_trials(sweep_, followed.runs, false);
    status_ = slurm_status(directory_, client_);
    if (status_.known && status_.held_after_failed_launch() > 0) release();
    reading_ = Clock::now() - begin;
    return followed;
  }

  // Tasks that Slurm holds would be waited for in vain. Not more often than it is asked.
  void release() {
    const Clock::time_point now = Clock::now();
    if (released_ && now - *released_ < std::chrono::duration<double>(kQueueSeconds)) return;
    released_ = now;
    try {
      const SlurmJobsLock lock(directory_);
      const std::vector<SubmittedJob> jobs = read_slurm_jobs(directory_);
      TaskQueue queue = fresh_queue(jobs, client_);
      release_failed_launches(jobs, queue, client_);
      status_ = slurm_status(jobs, queue);
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a minute later again
    }
  }

  // Slurm has answered after the last change, and no task runs or waits.
  bool nothing_lives(const FollowedSweep& followed) {
    const bool dead = status_.known && !status_.any_live();
    if (!dead || followed.unfinished != unfinished_) dead_since_.reset();
    unfinished_ = followed.unfinished;
    if (!dead) return false;
    if (!dead_since_) dead_since_ = Clock::now();
    return Clock::now() - *dead_since_ >= kVisibleAfter;
  }

  void show(const FollowedSweep& followed) {
    if (options_.quiet) return;
    const LiveSweep& live = progress_.update(followed.runs, goal_of_sweep(directory_, followed.runs));
    std::string above;
    for (const std::size_t i : progress_.newly_ended())
      above += ended_line(live, followed.runs[i], options_.terminal) + "\n";
    if (!options_.terminal.interactive) {
      if (!above.empty()) options_.terminal.write(above);
      return;
    }
    std::vector<std::string> lines = live_table(live, options_.terminal);
    lines.push_back(slurm_line(status_));
    region_.draw(lines, above);
  }

  const Sweep& sweep_;
  const fs::path& directory_;
  SlurmClient& client_;
  const FollowOptions& options_;
  LiveRegion region_;
  RecordedProgress progress_;
  SlurmStatus status_;
  Clock::duration reading_{};
  std::optional<Clock::time_point> dead_since_, released_;
  std::size_t unfinished_ = 0;
};

}  // namespace

FollowedSweep follow_sweep(const Sweep& sweep, const fs::path& directory, SlurmClient& client,
                           const FollowOptions& options) {
  return Follower(sweep, directory, client, options).run();
}

}  // namespace sweep

#include "runmanager/slurm/follow.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "runmanager/inspect/run_listing.h"
#include "runmanager/slurm/shapes.h"
#include "runmanager/slurm/slurm_jobs.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// A record written by another machine may become visible here only so much later.
constexpr std::chrono::seconds kVisibleAfter{60};

class Follower {
 public:
  Follower(const Sweep& sweep, const fs::path& directory, SlurmClient& client)
      : sweep_(sweep), directory_(directory), client_(client) {}

  WatchedElsewhere look() {
    SlurmStatus status = slurm_status(directory_, client_);
    if (status.known && !status.held_after_failed_launch().empty()) release(status);
    const bool dead = status.known && !status.any_live();
    if (!dead)
      dead_since_.reset();
    else if (!dead_since_)
      dead_since_ = Clock::now();
    return {.lives = !dead || Clock::now() - *dead_since_ < kVisibleAfter, .line = slurm_line(status)};
  }

  std::size_t unfinished(const std::vector<RunRecord>& runs) {
    const std::size_t count = is_shared_search(sweep_)
                                  ? open_trials(sweep_, runs, false)
                                  : static_cast<std::size_t>(std::ranges::count_if(
                                        runs, [](const RunRecord& run) { return !has_ended(run.status); }));
    if (count != std::exchange(unfinished_, count)) dead_since_.reset();
    return count;
  }

 private:
  // Tasks that Slurm holds would be waited for in vain. Not more often than it is asked.
  void release(SlurmStatus& status) {
    const Clock::time_point now = Clock::now();
    if (released_ && now - *released_ < std::chrono::duration<double>(kQueueSeconds)) return;
    released_ = now;
    try {
      LockedSlurmJobs jobs(directory_, client_);
      jobs.release_failed_launches();
      status = jobs.status();
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a minute later again
    }
  }

  const Sweep& sweep_;
  const fs::path& directory_;
  SlurmClient& client_;
  std::optional<Clock::time_point> dead_since_, released_;
  std::size_t unfinished_ = 0;
};

}  // namespace

FollowedSweep follow_sweep(const Sweep& sweep, const fs::path& directory, SlurmClient& client,
                           WatchOptions options) {
  Follower follower(sweep, directory, client);
  options.tells_end = false;
  options.elsewhere = [&] { return follower.look(); };
  options.is_done = [&](const std::vector<RunRecord>& runs) { return follower.unfinished(runs) == 0; };
  watch_sweep(directory, options);
  FollowedSweep followed{.runs = list_runs(directory)};
  followed.unfinished = follower.unfinished(followed.runs);
  return followed;
}

}  // namespace sweep

#include "runmanager/slurm/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/json/json_text.h"
#include "runmanager/inspect/run_listing.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/run_files.h"
#include "runmanager/slurm/shapes.h"
#include "runmanager/slurm/slurm_jobs.h"
#include "runmanager/sweep/trial_schedule.h"
#include "runmanager/sweepfile/slurm/slurm_spec.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// The options of the command line that tasks get.
std::vector<std::string> task_options(const RunnerOptions& options) {
  std::vector<std::string> words;
  if (options.jobs != 1)
    words.insert(words.end(), {"--jobs", options.jobs == 0 ? "auto" : std::to_string(options.jobs)});
  if (options.retry > 0) words.insert(words.end(), {"--retry", std::to_string(options.retry)});
  if (options.timeout > 0) words.insert(words.end(), {"--timeout", fmt::format("{}", options.timeout)});
  if (!options.retry_failed) words.emplace_back("--no-retry-failed");
  if (options.fail_fast) words.emplace_back("--fail-fast");
  if (options.strict) words.emplace_back("--strict");
  return words;
}

std::size_t live_workers(const fs::path& directory, SlurmClient& client) {
  if (!has_slurm_jobs(directory)) return 0;
  return LockedSlurmJobs(directory, client).status().counts().live();
}

// Whether the sweep is that of the sweep.json in `directory`, which was checked when it was written.
bool is_resumed(const Sweep& sweep, const fs::path& directory) {
  return sweep.file.lexically_normal() == (directory / kSweepFile).lexically_normal();
}

// The keys of a sweep file whose values are not those of the sweep.json in `directory`; "" if there are none.
// How tasks are asked for changes no run.
std::string changed_keys(const Sweep& sweep, const fs::path& directory) {
  static const std::set<std::string> others = {"name", "slurm",      "runs",   "excluded",
                                               "file", "provenance", "learned"};
  const nlohmann::ordered_json there = read_json_file(directory / kSweepFile);
  std::set<std::string> changed;
  for (const auto& [one, other] : {std::pair(&there, &sweep.resolved), std::pair(&sweep.resolved, &there)}) {
    for (const auto& [key, value] : one->items()) {
      if (!others.contains(key) && (!other->contains(key) || other->at(key) != value)) changed.insert(key);
    }
  }
  return fmt::format("{}", fmt::join(changed, ", "));
}

// Which runs have ended, for a sweep whose directory others may write to meanwhile: tasks, or what is left of
// them on a node that was cut off. Its runs have to be those of `sweep`.
std::vector<bool> done_beside_others(const Sweep& sweep, const RunnerOptions& options,
                                     const fs::path& directory, bool tries_failed) {
  const std::vector<RunRecord> records = list_runs(directory);
  // A search has added trials since.
  const bool same =
      !options.replace && (waits_for_results(sweep) ||
                           std::ranges::equal(records, sweep.runs, {}, &RunRecord::name, &RunConfig::name));
  const std::string changed =
      same && !is_resumed(sweep, directory) ? changed_keys(sweep, directory) : std::string();
  if (!same || !changed.empty())
    throw ConfigError(fmt::format(
        "{}: tasks on the cluster train its runs as they were{}; to change them, end these first: {}",
        directory.string(), changed.empty() ? "" : ", with another value of: " + changed,
        shell_command({typed_program(), "cancel"}, directory)));
  std::vector<bool> done;
  for (const RunRecord& record : records)
    done.push_back(has_ended(record.status) && !(record.status == RunStatus::kFailed && tries_failed));
  return done;
}

// How many tasks can train trials of a search at once.
std::size_t useful_tasks(const Sweep& sweep, const SlurmSpec& spec) {
  const bool chooses = chooses_points(*sweep.search);
  return std::min(chooses ? sweep.search->at_once : sweep.runs.size(), static_cast<std::size_t>(spec.tasks));
}

// The device that "auto" means to the tasks, whatever this machine has.
Device device_of_tasks(std::string_view text, const SlurmSpec& spec) {
  RunConfig run;
  run.device = text;
  return parse_device(text != "auto" ? text : shape_of(run, spec).cuda ? "cuda" : "cpu");
}

}  // namespace

LaunchedSweep launch_sweep(const Sweep& sweep, const RunnerOptions& options, const fs::path& program,
                           SweepEnvironment environment, SlurmClient& client) {
  const SlurmSpec spec = slurm_spec(sweep);
  check_for_slurm(sweep, spec);
  if (options.max_time > 0)
    throw ConfigError("--max-time: tasks of a cluster end by its own limit, which --slurm time=4:00:00 sets");
  client.max_array_size();  // Throws if there is no Slurm.
  LaunchedSweep launched;
  launched.directory = options.logdir / sweep.name;
  std::vector<bool> done;
  const bool was_submitted = !options.fresh && has_slurm_jobs(launched.directory);
  const bool is_live = was_submitted && live_workers(launched.directory, client) > 0;
  const bool goes_on = was_submitted && !options.replace && is_resumed(sweep, launched.directory);
  const bool tries_failed = options.retry_failed && !is_live;
  if (is_live || goes_on) {
    done = done_beside_others(sweep, options, launched.directory, tries_failed);
  } else {
    environment.parse_device = [spec](std::string_view text) { return device_of_tasks(text, spec); };
    PlannedSweep planned = plan_sweep(sweep, options, std::move(environment));
    launched.directory = std::move(planned.directory);
    done = std::move(planned.done);
  }
  SubmissionOptions submission{.directory = launched.directory,
                               .name = launched.directory.filename().string(),
                               .spec = spec,
                               .program = program,
                               .options = task_options(options),
                               .jobs = options.jobs,
                               .threads = options.threads};
  std::map<SlurmShape, std::vector<std::string>> runs;
  if (waits_for_results(sweep)) {
    const std::vector<RunRecord> records = list_runs(launched.directory);
    if (const std::size_t open = open_trials(sweep, records, tries_failed); open > 0) {
      const auto ended = static_cast<std::size_t>(std::ranges::count_if(records, [&](const RunRecord& run) {
        return has_ended(run.status) && !(run.status == RunStatus::kFailed && tries_failed);
      }));
      launched.unfinished = std::max(open + ended, all_trials(sweep)) - ended;
      runs[shape_of(sweep.runs.front(), spec)] = {};
      submission.shared_tasks = useful_tasks(sweep, spec);
    }
  } else {
    for (std::size_t i = 0; i < done.size(); ++i) {
      if (done[i]) continue;
      runs[shape_of(sweep.runs[i], spec)].push_back(sweep.runs[i].name);
      ++launched.unfinished;
    }
  }
  launched.submission = submit_runs(submission, runs, client);
  return launched;
}

void check_no_live_tasks(const fs::path& directory, SlurmClient& client) {
  const std::size_t live = live_workers(directory, client);
  if (live == 0) return;
  throw ConfigError(fmt::format("{}: {} on the cluster train{} it; \"{}\" ends them", directory.string(),
                                counted(live, "task"), live == 1 ? "s" : "",
                                shell_command({typed_program(), "cancel"}, directory)));
}

namespace {

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
    const std::size_t count = waits_for_results(sweep_)
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

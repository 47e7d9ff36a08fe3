// The Slurm jobs of a sweep: those that the file slurm/jobs.json in its directory lists, and what Slurm says
// of their tasks; what a task does at its beginning and at its end.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "runmanager/slurm/slurm_client.h"

namespace sweep {

/// In a sweep's directory: scripts, the output of tasks, the list of jobs, and lists of runs.
inline constexpr const char* kSlurmFolder = "slurm";

/// How many of some tasks run or wait, why, and how the others have ended.
struct TaskCounts {
  std::size_t running = 0, waiting = 0;
  std::map<std::string, std::size_t> reasons = {};  // of those that wait: "Resources"
  /// By Slurm's word for how: "COMPLETED". Those that it has forgotten lack.
  std::map<std::string, std::size_t> ended = {};

  std::size_t live() const { return running + waiting; }
  void add(const std::vector<SlurmTask>& tasks);
};

/// A job that was submitted, an array or the report.
struct SlurmJob {
  std::string id = {};         // its number; empty if sbatch has not answered
  std::string shape = {};      // shape_name() of its runs; empty: the report
  std::size_t tasks = 1;       // of the array
  std::string comment = {};    // by which it is found if sbatch does not answer; differs for each
  std::string submitted = {};  // utc_time()
  bool cancelled = false;
  std::vector<SlurmTask> known = {};  // those of its tasks that Slurm knows

  bool is_report() const { return shape.empty(); }
  TaskCounts counts() const;
  std::size_t live() const { return counts().live(); }
};

/// The jobs, and Slurm's answer about the tasks of all of them.
struct SlurmStatus : TaskQueue {
  std::vector<SlurmJob> jobs;  // in the order in which they were submitted

  TaskCounts counts() const;  // of the tasks of all arrays
  /// Tasks that wait because a node could not start them, of all jobs.
  std::vector<SlurmTask> held_after_failed_launch() const;
  /// Whether any job runs or waits; the last one submits again what is not done.
  bool any_live() const;
};

/// Whether the sweep in `directory` was ever submitted.
bool has_slurm_jobs(const std::filesystem::path& directory);

/// The jobs in the order in which they were submitted, as the file has them; none if there is no file. Throws
/// DataError for a file that is not what LockedSlurmJobs::write() leaves.
std::vector<SlurmJob> read_slurm_jobs(const std::filesystem::path& directory);

/// The same with their tasks. Asks Slurm at most once a minute for each client. Throws DataError if the list
/// of jobs cannot be read.
SlurmStatus slurm_status(const std::filesystem::path& directory, SlurmClient& client);

/// The jobs of a sweep, for a process that submits, cancels or releases some. As long as the object lives, no
/// other process of this machine does that. If locks of the file system are local to a machine, two machines
/// might submit at once; then the surplus tasks find nothing to do and end. References must outlive it.
class LockedSlurmJobs {
 public:
  /// Makes the folder if it is missing. Waits some seconds; throws IoError if another process goes on holding
  /// it, or if the folder cannot be made. Finds the numbers of jobs that sbatch has not answered, drops those
  /// that were never submitted, and asks Slurm for the tasks of all others: throws as SlurmClient.
  LockedSlurmJobs(const std::filesystem::path& directory, SlurmClient& client);

  const SlurmStatus& status() const { return status_; }
  std::vector<SlurmJob>& jobs() { return status_.jobs; }
  /// Replaces the file atomically. Throws IoError.
  void write() const;
  /// Releases tasks that Slurm holds because a node could not start them. They count as alive, so none are
  /// submitted in their place, but they never start by themselves. Returns how many there were, and asks
  /// Slurm again if there were any. Throws as SlurmClient.
  std::size_t release_failed_launches();

 private:
  void settle_unanswered();
  void ask();

  const std::filesystem::path& directory_;
  SlurmClient& client_;
  FileDescriptor lock_;
  SlurmStatus status_;
};

/// Ends all jobs of the sweep; those that have ended are not an error. Returns how many tasks still ran or
/// waited. Throws as LockedSlurmJobs.
std::size_t cancel_jobs(const std::filesystem::path& directory, SlurmClient& client);

/// The names of the runs of each task of an array.
using TaskLists = std::vector<std::vector<std::string>>;

/// Writes what the tasks of a job train, by SlurmJob::comment. Throws IoError.
void write_task_lists(const std::filesystem::path& directory, const std::string& comment,
                      const TaskLists& lists);
/// Nothing if there is no such file: the job is of an earlier version, whose tasks train any run of their
/// shape. Throws DataError for a file that is not what write_task_lists() leaves.
std::optional<TaskLists> read_task_lists(const std::filesystem::path& directory, const std::string& comment);

/// A reason for waiting, explained if the word is not clear: "Resources: nodes are busy".
std::string reason_text(const std::string& reason);

/// "Slurm: 3 tasks run, 5 wait", with the reasons why; without a line end.
std::string slurm_line(const SlurmStatus& status);

/// Lines with line ends: one for each job whose tasks live or did not end well, and what to do if
/// `unfinished` runs have no task left. `directory`: for the command that goes on.
std::string slurm_status_text(const SlurmStatus& status, std::size_t unfinished,
                              const std::filesystem::path& directory);

/// {"known", "error", "age_seconds", "running", "waiting", "jobs": [{"job", "kind", "tasks", "running",
/// "waiting", "reasons", "ended", "cancelled"}]}
nlohmann::ordered_json to_json(const SlurmStatus& status);

/// The environment variable by which the program knows that it is a task of this launcher, and how often the
/// task may start again.
inline constexpr const char* kSlurmRestartsVariable = "SWEEP_SLURM_RESTARTS";
/// Set when the last job submits again: how often that has happened before.
inline constexpr const char* kSlurmRoundVariable = "SWEEP_SLURM_ROUND";

/// Whether this process is a task that the launcher has submitted.
bool is_slurm_task();

/// The names of the runs that this task of an array trains. `lists`: see read_task_lists(). Throws DataError
/// if there are none for it.
std::vector<std::string> runs_of_this_task(const std::filesystem::path& directory, const std::string& lists);

/// Call this last in a task. A task that was stopped before its end, `exit_code` 75, is put back into the
/// queue, unless it has reached its limit of restarts. With `failed_fast`, see SweepOutcome, ends all others.
/// Writes to stderr what it does and what goes wrong: "sweep resume" goes on in any case. Returns the exit
/// code of the process.
int end_slurm_task(int exit_code, const std::filesystem::path& directory, bool failed_fast,
                   SlurmClient& client);

}  // namespace sweep

// Sends the runs of a sweep to a Slurm cluster: an array of tasks for each kind of run, and a report after
// them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runmanager/config/slurm_spec.h"
#include "runmanager/slurm/job_file.h"
#include "runmanager/slurm/shapes.h"
#include "runmanager/slurm/slurm_client.h"

namespace sweep {

struct SubmissionOptions {
  std::filesystem::path directory;  // of the sweep; it is there, with its sweep.json
  std::string name;                 // of the jobs
  SlurmSpec spec;
  std::filesystem::path program;     // this program, if the spec names none
  std::vector<std::string> options;  // of `sweep resume` for each task, such as "--retry", "2"
  int jobs = 1;                      // runs at once in a task
  int threads = 0;                   // of a run; 0: the cores of the task, divided over its runs
  /// How many tasks share the trials of a search. 0: each run is in the list of one task.
  std::size_t shared_tasks = 0;
};

/// The result of a submission.
struct Submission {
  std::vector<SubmittedJob> jobs;  // new ones; empty: enough tasks are on their way
  std::size_t live_tasks = 0;      // of earlier submissions, that run or wait
  std::size_t released = 0;        // of these, that Slurm held because a node could not start them
  std::vector<SlurmTask> held;     // of these, held by a person: they wait until they are released
};

/// Returns the runs of each task of an array. They are dealt out one by one, because long runs are neighbours
/// in `runs`. There are four lists for each task that may run at once, or as many as runs_per_task asks for,
/// but no more than `largest`.
TaskLists task_lists(const SlurmSpec& spec, const std::vector<std::string>& runs, std::size_t largest);

/// Asks Slurm for the tasks of `jobs`. Throws as SlurmClient.
TaskQueue fresh_queue(const std::vector<SubmittedJob>& jobs, SlurmClient& client);

/// Releases the tasks of `jobs` that Slurm holds because a node could not start them. They count as alive, so
/// none are submitted in their place, but they never start by themselves. Returns how many there were; then
/// `queue` is updated. To be called with the lock held. Throws as SlurmClient.
std::size_t release_failed_launches(const std::vector<SubmittedJob>& jobs, TaskQueue& queue,
                                    SlurmClient& client);

/// Submits an array for the unfinished runs of each shape that no running or waiting task has in its list; a
/// second call submits nothing. Releases tasks that a node could not start, but not those that a person
/// holds. `runs`: the names of those that are not done. The job file is written before and after each call of
/// sbatch. Throws ConfigError if Slurm refuses, SlurmUnreachable if it does not answer; IoError.
Submission submit_runs(const SubmissionOptions& options,
                       const std::map<SlurmShape, std::vector<std::string>>& runs, SlurmClient& client);

/// Finds the numbers of jobs that sbatch has not answered, and drops those that were never submitted. To be
/// called with the lock held. Throws as SlurmClient.
void settle_unanswered(const std::filesystem::path& directory, std::vector<SubmittedJob>& jobs,
                       SlurmClient& client);

/// Ends all jobs of the sweep; those that have ended are not an error. Returns how many tasks still ran or
/// waited. Throws as submit_runs().
std::size_t cancel_jobs(const std::filesystem::path& directory, SlurmClient& client);

}  // namespace sweep

// Sends the runs of a sweep to a Slurm cluster: an array of tasks for each kind of run, and a report after
// them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runmanager/slurm/shapes.h"
#include "runmanager/slurm/slurm_jobs.h"
#include "runmanager/sweepfile/slurm/slurm_spec.h"

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
  std::vector<SlurmJob> jobs;   // new ones; empty: enough tasks are on their way
  std::size_t live_tasks = 0;   // of earlier submissions, that run or wait
  std::size_t released = 0;     // of these, that Slurm held because a node could not start them
  std::vector<SlurmTask> held;  // of these, held by a person: they wait until they are released
  std::size_t given_up = 0;     // that scancel has ended: the last job does not submit their runs again
};

/// Submits an array for the unfinished runs of each shape that no running or waiting task has in its list; a
/// second call submits nothing. Releases tasks that a node could not start, but not those that a person
/// holds. `runs`: the names of those that are not done. The job file is written before and after each call of
/// sbatch. Throws ConfigError if Slurm refuses, SlurmUnreachable if it does not answer; IoError.
Submission submit_runs(const SubmissionOptions& options,
                       const std::map<SlurmShape, std::vector<std::string>>& runs, SlurmClient& client);

}  // namespace sweep

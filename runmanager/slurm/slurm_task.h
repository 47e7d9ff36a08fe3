// A task of a sweep: its script, the options for sbatch, and what it does when it has ended.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "runmanager/slurm/slurm_client.h"
#include "runmanager/sweepfile/slurm/slurm_spec.h"

namespace sweep {

/// The environment variable by which the program knows that it is a task of this launcher, and how often the
/// task may start again.
inline constexpr const char* kSlurmRestartsVariable = "SWEEP_SLURM_RESTARTS";
/// Set when the last job submits again: how often that has happened before.
inline constexpr const char* kSlurmRoundVariable = "SWEEP_SLURM_ROUND";

struct BatchScript {
  std::filesystem::path directory;  // of the sweep, absolute
  std::filesystem::path program;    // the program as nodes have it
  std::vector<std::string> setup;   // lines of shell
  int max_restarts = 0;
};

/// The script of a task that trains runs. `shape`: shape_name() of its runs. `lists`: the comment of the job,
/// see read_task_lists(); empty: it trains whatever there is. `options`: more of `sweep resume`. `jobs`: runs
/// at once, which share the cores of the task; 0 threads: as many as it has for each.
std::string worker_script(const BatchScript& script, const std::string& shape, const std::string& lists,
                          const std::vector<std::string>& options, int jobs, int threads);

/// The script of the job that writes the report when all others have ended. It then submits unfinished runs
/// again, with `options` of `sweep resume`, up to max_restarts times. `round`: how often that has happened.
std::string report_script(const BatchScript& script, const std::vector<std::string>& options, int round);

/// The options of every job.
std::vector<std::string> job_options(const std::filesystem::path& directory, const std::string& name,
                                     const std::string& comment, const SlurmTasks& tasks);

/// The file of a job's output: STEM.out in the folder "slurm" of the sweep.
std::string output_option(const std::filesystem::path& directory, const std::string& stem);

/// The options that an array of `tasks` tasks adds; at most `at_once` of them run at a time.
std::vector<std::string> array_options(const std::filesystem::path& directory, const std::string& shape,
                                       std::size_t tasks, std::size_t at_once, int warning_seconds);

/// Whether this process is a task that the launcher has submitted.
bool is_slurm_task();

/// The names of the runs that this task of an array trains. `lists`: see read_task_lists(). Throws DataError
/// if there are none for it.
std::vector<std::string> runs_of_this_task(const std::filesystem::path& directory, const std::string& lists);

/// Call this last in a task. A task that was stopped before its end, `exit_code` 75, is put back into the
/// queue, unless it has reached its limit of restarts. With `fail_fast`, the first task with a failed run
/// ends all others. Writes to stderr what it does and what goes wrong: "sweep resume" goes on in any case.
/// Returns the exit code of the process.
int end_slurm_task(int exit_code, const std::filesystem::path& directory, bool fail_fast,
                   SlurmClient& client);

}  // namespace sweep

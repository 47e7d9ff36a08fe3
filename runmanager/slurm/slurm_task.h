// What a task of a sweep does at its beginning and at its end.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runmanager/slurm/slurm_client.h"

namespace sweep {

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
/// queue, unless it has reached its limit of restarts. With `fail_fast`, the first task with a failed run
/// ends all others. Writes to stderr what it does and what goes wrong: "sweep resume" goes on in any case.
/// Returns the exit code of the process.
int end_slurm_task(int exit_code, const std::filesystem::path& directory, bool fail_fast,
                   SlurmClient& client);

}  // namespace sweep

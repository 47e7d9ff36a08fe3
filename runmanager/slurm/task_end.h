// The end of a task on a cluster.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runmanager/slurm/slurm_client.h"

namespace sweep {

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

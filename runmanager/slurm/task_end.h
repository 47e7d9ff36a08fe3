// What a task of a cluster does when the program that it runs has ended.
#pragma once

#include <filesystem>

#include "runmanager/slurm/slurm_client.h"

namespace sweep {

/// Whether this process is a task that the launcher has submitted.
bool is_slurm_task();

/// To be called last of all, by a task: one that was stopped before its end, `exit_code` 75, is put back into
/// the queue, unless it has started again as often as it may; with `fail_fast`, the first one with a run that
/// failed ends all others. Says on stderr what it does. What goes wrong is said there, too: "sweep resume"
/// goes on in any case. Returns the exit code of the process.
int end_slurm_task(int exit_code, const std::filesystem::path& directory, bool fail_fast,
                   SlurmClient& client);

}  // namespace sweep

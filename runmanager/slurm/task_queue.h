// What Slurm says of a sweep's tasks, asked for at most once a minute by all who look at the sweep.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runmanager/slurm/job_file.h"
#include "runmanager/slurm/slurm_client.h"

namespace sweep {

/// The latest answer. Tasks that it lacks have ended some minutes ago, or are unknown to Slurm.
struct TaskQueue {
  bool known = false;            // false: Slurm has not answered, so that nothing is known of any task
  std::string error;             // why not
  double age = 0;                // seconds since it was asked
  std::vector<SlurmTask> tasks;  // in Slurm's order
};

/// How old an answer may be, in seconds.
inline constexpr double kQueueSeconds = 60;

/// The answer in slurm/queue.json if it is young enough; else asks, and leaves the answer there. A job that
/// was submitted after the answer is not asked for before the minute is over: its tasks wait.
TaskQueue shared_queue(const std::filesystem::path& directory, const std::vector<SubmittedJob>& jobs,
                       SlurmClient& client);

/// Asks now, and leaves the answer for others. Throws SlurmUnreachable, and ConfigError as SlurmClient.
TaskQueue fresh_queue(const std::filesystem::path& directory, const std::vector<SubmittedJob>& jobs,
                      SlurmClient& client);

/// Adds the tasks of a new job, which wait, to the answer that is there, if there is one.
void add_to_queue(const std::filesystem::path& directory, const SubmittedJob& job);

}  // namespace sweep

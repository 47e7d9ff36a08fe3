// The state of a sweep on a cluster: first what its directory says, then what Slurm says of its tasks.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runmanager/slurm/job_file.h"
#include "runmanager/slurm/slurm_client.h"

namespace sweep {

/// The tasks of one job.
struct SlurmJobStatus {
  SubmittedJob job;
  std::size_t running = 0, waiting = 0;
  std::map<std::string, std::size_t>
      ended;  // by Slurm's word for how: "COMPLETED"; ones it has forgotten lack
  std::map<std::string, std::size_t> reasons;  // of those that wait: "Resources"
  std::size_t held_after_failed_launch = 0;    // of those that wait

  std::size_t live() const { return running + waiting; }
};

struct SlurmStatus {
  std::vector<SlurmJobStatus> jobs;  // in the order in which they were submitted
  bool known = false;                // whether Slurm has answered; the counts mean nothing if not
  std::string error;                 // why not
  double age = 0;                    // of the answer, in seconds

  std::size_t running() const;  // tasks that train, of all jobs
  std::size_t waiting() const;
  std::size_t held_after_failed_launch() const;  // of those that wait, of all jobs
  /// Whether any job runs or waits; the last one submits again what is not done.
  bool any_live() const;
};

SlurmStatus slurm_status(const std::vector<SubmittedJob>& jobs, const TaskQueue& queue);

/// Asks Slurm at most once a minute for each client. Throws DataError if the list of jobs cannot be read.
SlurmStatus slurm_status(const std::filesystem::path& directory, SlurmClient& client);

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

}  // namespace sweep

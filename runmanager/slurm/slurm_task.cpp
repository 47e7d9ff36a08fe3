#include "runmanager/slurm/slurm_task.h"

#include <fmt/format.h>

#include <cstdlib>
#include <iostream>

#include "core/base/error.h"
#include "runmanager/slurm/slurm_jobs.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

constexpr int kStopped = 75, kRunFailed = 1;

// Not by SLURM_JOB_ID: that of an array's last task is the number of the whole array.
std::string this_task() {
  const std::string job = variable("SLURM_ARRAY_JOB_ID"), index = variable("SLURM_ARRAY_TASK_ID");
  return job.empty() || index.empty() ? variable("SLURM_JOB_ID") : job + "_" + index;
}

void requeue(SlurmClient& client) {
  const long restarts = std::strtol(variable("SLURM_RESTART_COUNT").c_str(), nullptr, 10);
  const long most = std::strtol(variable(kSlurmRestartsVariable).c_str(), nullptr, 10);
  if (restarts >= most) {
    std::cerr << fmt::format("This task has started again {} times, as often as it may (max_restarts).\n",
                             restarts);
    return;
  }
  const std::string task = this_task();
  std::cerr << fmt::format("Stopped before its end: task {} goes back into the queue.\n", task);
  client.requeue(task);
}

}  // namespace

bool is_slurm_task() {
  return std::getenv(kSlurmRestartsVariable) != nullptr && !variable("SLURM_JOB_ID").empty();
}

std::vector<std::string> runs_of_this_task(const fs::path& directory, const std::string& lists) {
  const std::string index = variable("SLURM_ARRAY_TASK_ID");
  const std::optional<TaskLists> all = read_task_lists(directory, lists);
  const auto mine = static_cast<std::size_t>(std::strtoul(index.c_str(), nullptr, 10));
  if (!all || index.empty() || mine >= all->size())
    throw DataError(fmt::format("{}: has no list {} for task {} of an array; want what sbatch was given",
                                (directory / kSlurmFolder).string(), lists, index));
  return (*all)[mine];
}

int end_slurm_task(int exit_code, const fs::path& directory, bool fail_fast, SlurmClient& client) {
  try {
    if (exit_code == kStopped) requeue(client);
    if (exit_code == kRunFailed && fail_fast) {
      std::cerr << "A run failed: all tasks of the sweep are ended (--fail-fast).\n";
      cancel_jobs(directory, client);
    }
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
  }
  return exit_code;
}

}  // namespace sweep

// The programs of Slurm, called one by one.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/child.h"
#include "core/base/error.h"

namespace sweep {

/// Slurm did not answer: its controller is down, or too busy. The request may or may not have been carried
/// out.
class SlurmUnreachable : public Error {
 public:
  using Error::Error;
};

/// One line of squeue: a task of an array, or a job without one.
struct SlurmTask {
  std::string job;     // of the array
  std::string index;   // "3"; empty for a job that is no array
  std::string state;   // "RUNNING"
  std::string reason;  // why it waits: "Resources"
  bool operator==(const SlurmTask&) const = default;
};

/// Slurm's answer about tasks. Those that are missing ended some minutes ago, or are unknown to Slurm.
struct TaskQueue {
  bool known = false;            // false: Slurm has not answered, so no task's state is known
  std::string error;             // why not
  double age = 0;                // seconds since it was asked
  std::vector<SlurmTask> tasks;  // in Slurm's order
};

/// How old an answer may be, in seconds.
inline constexpr double kQueueSeconds = 60;

/// As scontrol and scancel take it: "4711_3", or "4711".
std::string task_name(const SlurmTask& task);
/// Whether a task in that state runs, waits, or may come back. States that are not known count as alive.
bool is_alive(std::string_view state);
/// Whether it runs or is about to.
bool is_running(std::string_view state);

/// Whether Slurm holds the task because a node could not start it. It then waits until it is released, which
/// can be done at once. This happens if the controller was lost while tasks started, or a node's disk is
/// full.
bool is_held_after_failed_launch(const SlurmTask& task);
/// Whether it waits, and never starts, because a person or a rule of the cluster holds it.
bool is_held_by_others(const SlurmTask& task);

/// Calls sbatch, squeue, scancel and scontrol, which have to be in PATH, without a shell. Every call may
/// throw ConfigError if the program is not installed or refuses, with what it said, and SlurmUnreachable. Not
/// thread-safe.
class SlurmClient {
 public:
  /// `limit`: how long one call may take.
  explicit SlurmClient(std::chrono::milliseconds limit = std::chrono::seconds(60)) : limit_(limit) {}

  /// Returns the number of the job. `options`: all except --parsable and the script.
  std::string submit(const std::vector<std::string>& options, const std::string& script);
  /// The tasks of `jobs`, by their numbers, those that ended some minutes ago included. Jobs that Slurm no
  /// longer knows are left out.
  std::vector<SlurmTask> tasks(const std::vector<std::string>& jobs);
  /// The same for callers that look again and again: asks once in kQueueSeconds, also if Slurm does not
  /// answer. Throws nothing.
  TaskQueue recent_tasks(const std::vector<std::string>& jobs);
  /// The jobs of this user that were submitted with that --comment.
  std::vector<std::string> find_by_comment(const std::string& comment);
  /// Ends them; jobs that are gone are not an error.
  void cancel(const std::vector<std::string>& jobs);
  /// Puts the task back into the queue.
  void requeue(const std::string& task);
  /// Releases tasks that are held; those that are not, or are gone, are not an error.
  void release(const std::vector<SlurmTask>& tasks);
  /// Max tasks of an array.
  std::size_t max_array_size();

 private:
  // `forgives`: whether a failure is none, by what the program said.
  CommandResult run(const std::vector<std::string>& words,
                    bool (*forgives)(std::string_view error) = nullptr);

  std::chrono::milliseconds limit_;
  TaskQueue recent_;
  std::vector<std::string> recent_jobs_;  // that recent_ is of
  std::chrono::steady_clock::time_point asked_;
};

}  // namespace sweep

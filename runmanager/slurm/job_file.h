// The Slurm jobs of a sweep, in the file slurm/jobs.json of its directory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/file.h"

namespace sweep {

/// In a sweep's directory: scripts, the output of tasks, and the files below.
inline constexpr const char* kSlurmFolder = "slurm";
inline constexpr const char* kSlurmJobsFile = "jobs.json";

/// A job that was submitted, an array or the report.
struct SubmittedJob {
  std::string id;         // its number; empty if sbatch has not answered
  std::string shape;      // shape_name() of its runs; empty: the report
  std::size_t tasks = 1;  // of the array
  std::string comment;    // by which it is found if sbatch does not answer; differs for each
  std::string submitted;  // utc_time()
  bool cancelled = false;

  bool is_report() const { return shape.empty(); }
};

/// Whether the sweep in `directory` was ever submitted.
bool has_slurm_jobs(const std::filesystem::path& directory);

/// The jobs in the order in which they were submitted; none if there is no file. Throws DataError for a file
/// that is not what write_slurm_jobs() leaves.
std::vector<SubmittedJob> read_slurm_jobs(const std::filesystem::path& directory);

/// Replaces the file atomically. Throws IoError.
void write_slurm_jobs(const std::filesystem::path& directory, const std::vector<SubmittedJob>& jobs);

/// The numbers of those that sbatch has answered.
std::vector<std::string> known_ids(const std::vector<SubmittedJob>& jobs);

/// The names of the runs of each task of an array.
using TaskLists = std::vector<std::vector<std::string>>;

/// Writes what the tasks of a job train, by SubmittedJob::comment. Throws IoError.
void write_task_lists(const std::filesystem::path& directory, const std::string& comment,
                      const TaskLists& lists);
/// Nothing if there is no such file: the job is of an earlier version, whose tasks train any run of their
/// shape. Throws DataError for a file that is not what write_task_lists() leaves.
std::optional<TaskLists> read_task_lists(const std::filesystem::path& directory, const std::string& comment);

/// While it exists, no other process of this machine submits or cancels jobs of the sweep. If locks of the
/// file system are local to a machine, two machines might submit at once; then the surplus tasks find nothing
/// to do and end.
class SlurmJobsLock {
 public:
  /// Makes the folder if it is missing. Waits some seconds; throws IoError if another process goes on holding
  /// it, or if the folder cannot be made.
  explicit SlurmJobsLock(const std::filesystem::path& directory);

 private:
  FileDescriptor file_;
};

}  // namespace sweep

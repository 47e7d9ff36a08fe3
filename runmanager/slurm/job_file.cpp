#include "runmanager/slurm/job_file.h"

#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/error.h"
#include "core/json/json_text.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr int kLockTries = 200;  // of 50 ms: a submission takes longer only if Slurm does not answer

fs::path jobs_path(const fs::path& directory) { return directory / kSlurmFolder / kSlurmJobsFile; }

fs::path lists_path(const fs::path& directory, const std::string& comment) {
  return directory / kSlurmFolder / (comment + ".json");
}

FileDescriptor open_lock(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory / kSlurmFolder, error);
  if (error)
    throw IoError(
        fmt::format("{}: cannot be made: {}", (directory / kSlurmFolder).string(), error.message()));
  return open_output_file(directory / kSlurmFolder / ".submitting", OutputMode::kAppend);
}

// The temporary files of write_file_atomically() that killed processes have left.
void remove_left_over(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->path().extension() == ".tmp") fs::remove(it->path(), ignored);
  }
}

}  // namespace

bool has_slurm_jobs(const fs::path& directory) {
  std::error_code error;
  return fs::exists(jobs_path(directory), error);
}

std::vector<SubmittedJob> read_slurm_jobs(const fs::path& directory) {
  std::vector<SubmittedJob> jobs;
  if (!has_slurm_jobs(directory)) return jobs;
  const fs::path path = jobs_path(directory);
  const Json file = read_json_file(path);
  try {
    if (file.at("version").get<int>() > kVersion)
      throw DataError(fmt::format("{}: was written by a newer version of the program", path.string()));
    for (const Json& entry : file.at("jobs")) {
      SubmittedJob job;
      job.id = entry.at("job").get<std::string>();
      job.shape = entry.at("shape").get<std::string>();
      job.tasks = entry.at("tasks").get<std::size_t>();
      job.comment = entry.at("comment").get<std::string>();
      job.submitted = entry.at("submitted").get<std::string>();
      job.cancelled = entry.at("cancelled").get<bool>();
      jobs.push_back(std::move(job));
    }
  } catch (const Json::exception&) {
    throw DataError(fmt::format("{}: is not the list of jobs that sweep writes", path.string()));
  }
  return jobs;
}

void write_slurm_jobs(const fs::path& directory, const std::vector<SubmittedJob>& jobs) {
  Json list = Json::array();
  for (const SubmittedJob& job : jobs) {
    Json entry = {{"job", job.id},          {"shape", job.shape},         {"tasks", job.tasks},
                  {"comment", job.comment}, {"submitted", job.submitted}, {"cancelled", job.cancelled}};
    list.push_back(std::move(entry));
  }
  const Json file = {{"version", kVersion}, {"jobs", std::move(list)}};
  write_file_atomically(jobs_path(directory), json_text(file));
}

void write_task_lists(const fs::path& directory, const std::string& comment, const TaskLists& lists) {
  write_file_atomically(lists_path(directory, comment), compact_json_text(Json(lists)) + "\n");
}

std::optional<TaskLists> read_task_lists(const fs::path& directory, const std::string& comment) {
  const fs::path path = lists_path(directory, comment);
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  try {
    return read_json_file(path).get<TaskLists>();
  } catch (const Json::exception&) {
    throw DataError(fmt::format("{}: is not the list of runs that sweep writes", path.string()));
  }
}

std::vector<std::string> known_ids(const std::vector<SubmittedJob>& jobs) {
  std::vector<std::string> ids;
  for (const SubmittedJob& job : jobs) {
    if (!job.id.empty()) ids.push_back(job.id);
  }
  return ids;
}

SlurmJobsLock::SlurmJobsLock(const fs::path& directory) : file_(open_lock(directory)) {
  for (int tries = 0; ::flock(file_.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK && errno != EINTR) return;  // A file system without locks.
    if (tries == kLockTries)
      throw IoError(
          fmt::format("{}: another process is submitting or cancelling its jobs", directory.string()));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  remove_left_over(directory / kSlurmFolder);
}

}  // namespace sweep

#include "runmanager/slurm/slurm_jobs.h"

#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/printable.h"
#include "core/base/text.h"
#include "core/json/json_text.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/run_files.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr int kLockTries = 200;  // of 50 ms: a submission takes longer only if Slurm does not answer

fs::path jobs_path(const fs::path& directory) { return directory / kSlurmFolder / "jobs.json"; }

fs::path lists_path(const fs::path& directory, const std::string& comment) {
  return directory / kSlurmFolder / (comment + ".json");
}

FileDescriptor open_lock(const fs::path& directory) {
  make_directories(directory / kSlurmFolder);
  return open_output_file(directory / kSlurmFolder / ".submitting", OutputMode::kAppend);
}

// The numbers of those that sbatch has answered.
std::vector<std::string> known_ids(const std::vector<SlurmJob>& jobs) {
  std::vector<std::string> ids;
  for (const SlurmJob& job : jobs) {
    if (!job.id.empty()) ids.push_back(job.id);
  }
  return ids;
}

// Gives each job its tasks.
void share_out_tasks(SlurmStatus& status) {
  for (SlurmJob& job : status.jobs) {
    job.known.clear();
    std::ranges::copy_if(status.tasks, std::back_inserter(job.known),
                         [&job](const SlurmTask& task) { return task.job == job.id; });
  }
}

// Reasons with which a task waits for somebody to change something.
struct Reason {
  std::string_view word;
  std::string_view meaning;
};

constexpr Reason kReasons[] = {
    {"None", "Slurm has not looked at it yet"},
    {"Resources", "the nodes it needs are busy"},
    {"Priority", "others are before it"},
    {"BeginTime", "it was put back a moment ago, and starts again in some minutes"},
    {"JobArrayTaskLimit", "as many of its array run as may"},
    {"Dependency", "it waits for the others to end"},
    {"DependencyNeverSatisfied", "it will never run"},
    {"launch failed requeued held", "a node could not start it, so Slurm holds it: sweep resume lets it go"},
    {"JobHeldUser", "it is held: scontrol release lets it go"},
    {"JobHeldAdmin", "an administrator holds it"},
    {"job requeued in held state", "it is held: scontrol release lets it go"},
    {"Nodes required for job are DOWN", "nodes it needs are down, drained or reserved"},
    {"PartitionTimeLimit", "\"time\" is above the partition's limit: it will never run"},
    {"PartitionNodeLimit", "it asks for more nodes than the partition has: it will never run"},
    {"BadConstraints", "no node has what it asks for: it will never run"},
    {"ReqNodeNotAvail", "nodes it needs are down or reserved"},
    {"AssocGrpGRES", "the account's GPUs are all in use"},
    {"QOSMaxJobsPerUserLimit", "you have as many jobs running as you may"},
    {"QOSMaxGRESPerUser", "you have as many GPUs as you may"},
    {"AssocMaxJobsLimit", "the account has as many jobs running as it may"}};

// "3 run, 5 wait (Resources: the nodes it needs are busy), 1 failed".
std::string tasks_text(const TaskCounts& counts) {
  std::vector<std::string> parts;
  if (counts.running > 0) parts.push_back(fmt::format("{} run", counts.running));
  if (counts.waiting > 0) {
    std::vector<std::string> reasons;
    for (const auto& [reason, count] : counts.reasons) reasons.push_back(reason_text(reason));
    parts.push_back(fmt::format("{} wait ({})", counts.waiting, fmt::join(reasons, "; ")));
  }
  for (const auto& [how, count] : counts.ended) parts.push_back(fmt::format("{} {}", count, lower_case(how)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string job_text(const SlurmJob& job) {
  const std::string what = job.is_report() ? "report" : fmt::format("tasks on {}", job.shape);
  const std::string tasks = tasks_text(job.counts());
  return fmt::format("  job {}, {}: {}{}\n", job.id.empty() ? "?" : job.id, what,
                     tasks.empty() ? "ended" : printable(tasks), job.cancelled ? "; cancelled" : "");
}

// Whether something is to be said of a job: it lives, or some of it ended badly.
bool is_of_interest(const SlurmJob& job) {
  const TaskCounts counts = job.counts();
  if (counts.live() > 0) return true;
  return !job.cancelled && std::ranges::any_of(counts.ended, [](const auto& entry) {
    return entry.first != "COMPLETED" && entry.first != "CANCELLED";
  });
}

}  // namespace

void TaskCounts::add(const std::vector<SlurmTask>& tasks) {
  for (const SlurmTask& task : tasks) {
    if (!is_alive(task.state)) {
      ++ended[task.state];
    } else if (is_running(task.state)) {
      ++running;
    } else {
      ++waiting;
      ++reasons[task.reason];
    }
  }
}

TaskCounts SlurmJob::counts() const {
  TaskCounts counts;
  counts.add(known);
  return counts;
}

TaskCounts SlurmStatus::counts() const {
  TaskCounts counts;
  for (const SlurmJob& job : jobs) {
    if (!job.is_report()) counts.add(job.known);
  }
  return counts;
}

bool SlurmStatus::any_live() const { return std::ranges::any_of(tasks, is_alive, &SlurmTask::state); }

std::vector<SlurmTask> SlurmStatus::held_after_failed_launch() const {
  std::vector<SlurmTask> held;
  std::ranges::copy_if(tasks, std::back_inserter(held), is_held_after_failed_launch);
  return held;
}

bool has_slurm_jobs(const fs::path& directory) {
  std::error_code error;
  return fs::exists(jobs_path(directory), error);
}

std::vector<SlurmJob> read_slurm_jobs(const fs::path& directory) {
  std::vector<SlurmJob> jobs;
  if (!has_slurm_jobs(directory)) return jobs;
  const fs::path path = jobs_path(directory);
  const Json file = read_json_file(path);
  try {
    if (file.at("version").get<int>() > kVersion)
      throw DataError(fmt::format("{}: was written by a newer version of the program", path.string()));
    for (const Json& entry : file.at("jobs")) {
      jobs.push_back({.id = entry.at("job").get<std::string>(),
                      .shape = entry.at("shape").get<std::string>(),
                      .tasks = entry.at("tasks").get<std::size_t>(),
                      .comment = entry.at("comment").get<std::string>(),
                      .submitted = entry.at("submitted").get<std::string>(),
                      .cancelled = entry.at("cancelled").get<bool>()});
    }
  } catch (const Json::exception&) {
    throw DataError(fmt::format("{}: is not the list of jobs that sweep writes", path.string()));
  }
  return jobs;
}

SlurmStatus slurm_status(const fs::path& directory, SlurmClient& client) {
  SlurmStatus status;
  status.jobs = read_slurm_jobs(directory);
  static_cast<TaskQueue&>(status) = client.recent_tasks(known_ids(status.jobs));
  share_out_tasks(status);
  return status;
}

LockedSlurmJobs::LockedSlurmJobs(const fs::path& directory, SlurmClient& client)
    : directory_(directory), client_(client), lock_(open_lock(directory)) {
  for (int tries = 0; ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK && errno != EINTR) break;  // A file system without locks.
    if (tries == kLockTries)
      throw IoError(
          fmt::format("{}: another process is submitting or cancelling its jobs", directory.string()));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  remove_temporaries(directory / kSlurmFolder);
  status_.jobs = read_slurm_jobs(directory);
  settle_unanswered();
  ask();
}

void LockedSlurmJobs::settle_unanswered() {
  bool changed = false;
  for (SlurmJob& job : jobs()) {
    if (!job.id.empty()) continue;
    const std::vector<std::string> found = client_.find_by_comment(job.comment);
    if (!found.empty()) job.id = found.front();
    changed = true;
  }
  if (!changed) return;
  std::erase_if(jobs(), [](const SlurmJob& job) { return job.id.empty(); });
  write();
}

void LockedSlurmJobs::ask() {
  status_.tasks = client_.tasks(known_ids(jobs()));
  status_.known = true;
  share_out_tasks(status_);
}

void LockedSlurmJobs::write() const {
  Json list = Json::array();
  for (const SlurmJob& job : status_.jobs) {
    list.push_back({{"job", job.id},
                    {"shape", job.shape},
                    {"tasks", job.tasks},
                    {"comment", job.comment},
                    {"submitted", job.submitted},
                    {"cancelled", job.cancelled}});
  }
  const Json file = {{"version", kVersion}, {"jobs", std::move(list)}};
  write_file_atomically(jobs_path(directory_), json_text(file));
}

std::size_t LockedSlurmJobs::release_failed_launches() {
  const std::vector<SlurmTask> held = status_.held_after_failed_launch();
  if (held.empty()) return 0;
  client_.release(held);
  ask();
  return held.size();
}

std::size_t cancel_jobs(const fs::path& directory, SlurmClient& client) {
  LockedSlurmJobs jobs(directory, client);
  std::vector<std::string> ids;
  for (SlurmJob& job : jobs.jobs()) {
    if (job.live() == 0) continue;
    ids.push_back(job.id);
    job.cancelled = true;
  }
  if (ids.empty()) return 0;
  client.cancel(ids);
  jobs.write();
  return jobs.status().counts().live();
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

std::string reason_text(const std::string& reason) {
  // "ReqNodeNotAvail, UnavailableNodes:n3", "launch failed requeued held", "job_requeued_in_held_state".
  std::string words = reason.substr(0, reason.find(','));
  std::ranges::replace(words, '_', ' ');
  for (const Reason& known : kReasons) {
    if (known.word == words) return fmt::format("{}: {}", reason, known.meaning);
  }
  return reason;
}

std::string slurm_line(const SlurmStatus& status) {
  if (!status.known) return "Slurm does not answer";
  const TaskCounts counts = status.counts();
  std::vector<std::string> reasons;
  for (const auto& [reason, count] : counts.reasons) reasons.push_back(reason);
  return fmt::format("Slurm: {} run{}, {} wait{}", counted(counts.running, "task"),
                     counts.running == 1 ? "s" : "", counts.waiting,
                     reasons.empty() ? "" : printable(fmt::format(" ({})", fmt::join(reasons, "; "))));
}

std::string slurm_status_text(const SlurmStatus& status, std::size_t unfinished, const fs::path& directory) {
  if (!status.known)
    return fmt::format("Slurm: unknown, since it did not answer {:.0f} s ago: {}\n", status.age,
                       printable(status.error));
  std::string text;
  for (const SlurmJob& job : status.jobs) {
    if (is_of_interest(job)) text += job_text(job);
  }
  if (!text.empty()) text = fmt::format("Slurm, {:.0f} s ago:\n", status.age) + text;
  if (status.any_live() || unfinished == 0) return text;
  text += fmt::format(
      "{} {} not done, and no task is left to train {}. What the tasks said is in {}; to go on: {}\n",
      counted(unfinished, "run"), unfinished == 1 ? "is" : "are", unfinished == 1 ? "it" : "them",
      printable((directory / kSlurmFolder).string()), shell_command({typed_program(), "resume"}, directory));
  return text;
}

Json to_json(const SlurmStatus& status) {
  Json jobs = Json::array();
  for (const SlurmJob& job : status.jobs) {
    const TaskCounts counts = job.counts();
    jobs.push_back({{"job", job.id},
                    {"kind", job.is_report() ? "report" : job.shape},
                    {"tasks", job.tasks},
                    {"running", counts.running},
                    {"waiting", counts.waiting},
                    {"reasons", Json(counts.reasons)},
                    {"ended", Json(counts.ended)},
                    {"cancelled", job.cancelled}});
  }
  const TaskCounts all = status.counts();
  return {{"known", status.known},  {"error", status.error},  {"age_seconds", status.age},
          {"running", all.running}, {"waiting", all.waiting}, {"jobs", std::move(jobs)}};
}

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

constexpr int kStopped = 75;

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

int end_slurm_task(int exit_code, const fs::path& directory, bool failed_fast, SlurmClient& client) {
  try {
    if (exit_code == kStopped) requeue(client);
    if (failed_fast) {
      std::cerr << "A run failed: all tasks of the sweep are ended (--fail-fast).\n";
      cancel_jobs(directory, client);
    }
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
  }
  return exit_code;
}

}  // namespace sweep

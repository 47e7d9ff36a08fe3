#include "runmanager/slurm/slurm_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/printable.h"
#include "core/base/text.h"
#include "runmanager/records/provenance.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

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
std::string tasks_text(const SlurmJobStatus& job) {
  std::vector<std::string> parts;
  if (job.running > 0) parts.push_back(fmt::format("{} run", job.running));
  if (job.waiting > 0) {
    std::vector<std::string> reasons;
    for (const auto& [reason, count] : job.reasons) reasons.push_back(reason_text(reason));
    parts.push_back(fmt::format("{} wait ({})", job.waiting, fmt::join(reasons, "; ")));
  }
  for (const auto& [how, count] : job.ended) {
    parts.push_back(fmt::format("{} {}", count, lower_case(how)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string job_text(const SlurmJobStatus& job) {
  const std::string what = job.job.is_report() ? "report" : fmt::format("tasks on {}", job.job.shape);
  const std::string tasks = tasks_text(job);
  return fmt::format("  job {}, {}: {}{}\n", job.job.id.empty() ? "?" : job.job.id, what,
                     tasks.empty() ? "ended" : printable(tasks), job.job.cancelled ? "; cancelled" : "");
}

// Whether something is to be said of a job: it lives, or some of it ended badly.
bool is_of_interest(const SlurmJobStatus& job) {
  if (job.live() > 0) return true;
  return !job.job.cancelled && std::ranges::any_of(job.ended, [](const auto& entry) {
    return entry.first != "COMPLETED" && entry.first != "CANCELLED";
  });
}

}  // namespace

std::size_t SlurmStatus::running() const {
  std::size_t count = 0;
  for (const SlurmJobStatus& job : jobs) count += job.job.is_report() ? 0 : job.running;
  return count;
}

std::size_t SlurmStatus::waiting() const {
  std::size_t count = 0;
  for (const SlurmJobStatus& job : jobs) count += job.job.is_report() ? 0 : job.waiting;
  return count;
}

bool SlurmStatus::any_live() const {
  return std::ranges::any_of(jobs, [](const SlurmJobStatus& job) { return job.live() > 0; });
}

std::size_t SlurmStatus::held_after_failed_launch() const {
  std::size_t count = 0;
  for (const SlurmJobStatus& job : jobs) count += job.held_after_failed_launch;
  return count;
}

SlurmStatus slurm_status(const std::vector<SubmittedJob>& jobs, const TaskQueue& queue) {
  SlurmStatus status;
  status.known = queue.known;
  status.error = queue.error;
  status.age = queue.age;
  for (const SubmittedJob& job : jobs) {
    SlurmJobStatus& one = status.jobs.emplace_back();
    one.job = job;
    for (const SlurmTask& task : queue.tasks) {
      if (task.job != job.id) continue;
      if (!is_alive(task.state)) {
        ++one.ended[task.state];
      } else if (is_running(task.state)) {
        ++one.running;
      } else {
        ++one.waiting;
        one.held_after_failed_launch += is_held_after_failed_launch(task) ? 1 : 0;
        ++one.reasons[task.reason];
      }
    }
  }
  return status;
}

SlurmStatus slurm_status(const fs::path& directory, SlurmClient& client) {
  const std::vector<SubmittedJob> jobs = read_slurm_jobs(directory);
  return slurm_status(jobs, client.recent_tasks(known_ids(jobs)));
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
  std::set<std::string> reasons;
  for (const SlurmJobStatus& job : status.jobs) {
    for (const auto& [reason, count] : job.reasons) {
      if (!job.job.is_report()) reasons.insert(reason);
    }
  }
  const std::size_t running = status.running();
  return fmt::format("Slurm: {} run{}, {} wait{}", counted(running, "task"), running == 1 ? "s" : "",
                     status.waiting(),
                     reasons.empty() ? "" : printable(fmt::format(" ({})", fmt::join(reasons, "; "))));
}

std::string slurm_status_text(const SlurmStatus& status, std::size_t unfinished, const fs::path& directory) {
  if (!status.known)
    return fmt::format("Slurm: unknown, since it did not answer {:.0f} s ago: {}\n", status.age,
                       printable(status.error));
  std::string text;
  for (const SlurmJobStatus& job : status.jobs) {
    if (is_of_interest(job)) text += job_text(job);
  }
  if (!text.empty()) text = fmt::format("Slurm, {:.0f} s ago:\n", status.age) + text;
  if (status.any_live() || unfinished == 0) return text;
  text += fmt::format(
      "{} {} not done, and no task is left to train {}. What the tasks said is in {}; to go on: {}\n",
      counted(unfinished, "run"), unfinished == 1 ? "is" : "are", unfinished == 1 ? "it" : "them",
      printable((directory / kSlurmFolder).string()), shell_command({"sweep", "resume", directory.string()}));
  return text;
}

Json to_json(const SlurmStatus& status) {
  Json jobs = Json::array();
  for (const SlurmJobStatus& job : status.jobs) {
    Json reasons = Json::object(), ended = Json::object();
    for (const auto& [reason, count] : job.reasons) reasons[reason] = count;
    for (const auto& [how, count] : job.ended) ended[how] = count;
    Json entry = {{"job", job.job.id},         {"kind", job.job.is_report() ? "report" : job.job.shape},
                  {"tasks", job.job.tasks},    {"running", job.running},
                  {"waiting", job.waiting},    {"reasons", std::move(reasons)},
                  {"ended", std::move(ended)}, {"cancelled", job.job.cancelled}};
    jobs.push_back(std::move(entry));
  }
  return {{"known", status.known},       {"error", status.error},       {"age_seconds", status.age},
          {"running", status.running()}, {"waiting", status.waiting()}, {"jobs", std::move(jobs)}};
}

}  // namespace sweep

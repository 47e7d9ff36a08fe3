#include "runmanager/slurm/slurm_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <span>

#include "core/base/text.h"

namespace sweep {
namespace {

constexpr std::size_t kFallbackArraySize = 1001;  // Slurm's default

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

// Without colours, and the carriage returns of texts that were written elsewhere.
std::string plain(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("\x1b[")) {
      i = std::min(text.find_first_not_of("0123456789;", i + 2), text.size());
    } else if (text[i] != '\r') {
      result += text[i];
    }
  }
  return result;
}

// What `program` has said, all of it: "sbatch: error: …", or below each other what has several lines, as
// those of a site's own rules.
std::string said_by(const std::string& program, std::string_view text) {
  const std::string whole = plain(trimmed(text));
  if (whole.find('\n') == std::string::npos)
    return whole.starts_with(program) ? whole : program + ": " + whole;
  std::string lines = program + ":";
  for (const std::string_view line : split(whole, '\n')) {
    if (!trimmed(line).empty()) lines += "\n  " + std::string(line);
  }
  return lines;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

using Signs = std::span<const std::string_view>;

bool contains_any(std::string_view text, Signs signs) {
  return std::ranges::any_of(
      signs, [&](std::string_view sign) { return text.find(sign) != std::string_view::npos; });
}

// What Slurm's programs say when the controller is down, restarts, or has too much to do.
constexpr std::string_view kUnreachable[] = {"Unable to contact slurm controller",
                                             "Socket timed out",
                                             "Connection refused",
                                             "Connection timed out",
                                             "Transport endpoint",
                                             "Zero Bytes were transmitted",
                                             "Slurm temporarily unable to accept",
                                             "Slurm controller not",
                                             "Unexpected message received"};
// What they say of jobs that ended long ago.
constexpr std::string_view kUnknownJob[] = {"Invalid job id", "Job/step already completing or completed",
                                            "Invalid job array specification"};
// What scontrol says of a job that started meanwhile, or has ended.
constexpr std::string_view kNotWaiting[] = {"Job is no longer pending execution", "Job has already finished"};

bool is_of_unknown_job(std::string_view error) { return contains_any(error, kUnknownJob); }

// There is a line for each task that was not let go.
bool is_of_tasks_that_wait_no_more(std::string_view error) {
  return std::ranges::all_of(split(trimmed(error), '\n'), [](std::string_view line) {
    return contains_any(line, kUnknownJob) || contains_any(line, kNotWaiting);
  });
}

constexpr std::string_view kEnded[] = {"COMPLETED", "CANCELLED", "FAILED",   "TIMEOUT",       "NODE_FAIL",
                                       "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "REVOKED"};
constexpr std::string_view kRunning[] = {"RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED",
                                         "STOPPED", "SIGNALING",  "STAGE_OUT"};
constexpr std::string_view kHolds[] = {"JobHeldUser", "JobHeldAdmin", "job requeued in held state"};

bool is_one_of(std::string_view word, Signs words) { return std::ranges::find(words, word) != words.end(); }

// Slurm writes a reason of several words with blanks or with underscores, by version.
std::string words_of(std::string reason) {
  std::ranges::replace(reason, '_', ' ');
  return reason;
}

}  // namespace

std::string task_name(const SlurmTask& task) {
  return task.index.empty() ? task.job : task.job + "_" + task.index;
}

bool is_alive(std::string_view state) { return !is_one_of(state, kEnded); }
bool is_running(std::string_view state) { return is_one_of(state, kRunning); }

bool is_held_after_failed_launch(const SlurmTask& task) {
  return is_alive(task.state) && !is_running(task.state) &&
         words_of(task.reason) == "launch failed requeued held";
}

bool is_held_by_others(const SlurmTask& task) {
  if (!is_alive(task.state) || is_running(task.state) || is_held_after_failed_launch(task)) return false;
  return task.state == "REQUEUE_HOLD" || is_one_of(words_of(task.reason), kHolds);
}

CommandResult SlurmClient::run(const std::vector<std::string>& words,
                               bool (*forgives)(std::string_view error)) {
  const auto end = std::chrono::steady_clock::now() + limit_;
  CommandResult result = run_command(words, [end] { return std::chrono::steady_clock::now() < end; });
  if (!result.started)
    throw ConfigError(
        fmt::format("{}: not installed, or not in PATH; Slurm's programs are needed here, as on a login node "
                    "of a cluster",
                    words[0]));
  if (result.ended)
    throw SlurmUnreachable(fmt::format("{}: Slurm did not answer within {} s", words[0],
                                       std::chrono::duration_cast<std::chrono::seconds>(limit_).count()));
  if (result.code == 0) return result;
  if (contains_any(result.err, kUnreachable)) throw SlurmUnreachable(said_by(words[0], result.err));
  if (forgives != nullptr && forgives(result.err)) return result;
  const std::string_view said = trimmed(result.err.empty() ? result.out : result.err);
  throw ConfigError(said.empty() ? fmt::format("{}: ended with exit code {}", words[0], result.code)
                                 : said_by(words[0], said));
}

std::string SlurmClient::submit(const std::vector<std::string>& options, const std::string& script) {
  std::vector<std::string> words = {"sbatch", "--parsable"};
  words.insert(words.end(), options.begin(), options.end());
  words.push_back(script);
  const CommandResult result = run(words);
  // "4711", or "4711;cluster" if there are several. A site's plug-ins may have printed something before.
  const std::vector<std::string_view> lines = split(trimmed(result.out), '\n');
  const std::string_view job = split(trimmed(lines.back()), ';').front();
  if (!is_number(job))
    throw ConfigError(fmt::format("sbatch: answered \"{}\", want the number of a job", trimmed(result.out)));
  return std::string(job);
}

std::vector<SlurmTask> SlurmClient::tasks(const std::vector<std::string>& jobs) {
  std::vector<SlurmTask> tasks;
  if (jobs.empty()) return tasks;
  const std::string list = fmt::format("{}", fmt::join(jobs, ","));
  const CommandResult result =
      run({"squeue", "-h", "-r", "-t", "all", "-j", list, "-o", "%F|%K|%T|%r"}, is_of_unknown_job);
  if (result.code != 0) return tasks;
  for (const std::string_view line : split(result.out, '\n')) {
    const std::vector<std::string_view> fields = split(trimmed(line), '|');
    if (fields.size() != 4 || !is_number(fields[0])) continue;
    tasks.push_back({std::string(fields[0]), is_number(fields[1]) ? std::string(fields[1]) : "",
                     std::string(fields[2]), std::string(fields[3])});
  }
  return tasks;
}

TaskQueue SlurmClient::recent_tasks(const std::vector<std::string>& jobs) {
  const auto now = std::chrono::steady_clock::now();
  recent_.age = std::chrono::duration<double>(now - asked_).count();
  if (recent_jobs_ == jobs && recent_.age < kQueueSeconds) return recent_;
  recent_ = {};
  recent_jobs_ = jobs;
  asked_ = now;
  try {
    recent_.tasks = tasks(jobs);
    recent_.known = true;
  } catch (const Error& error) {
    recent_.error = error.what();
  }
  return recent_;
}

std::vector<std::string> SlurmClient::find_by_comment(const std::string& comment) {
  const CommandResult result = run({"squeue", "-h", "--me", "-t", "all", "-o", "%F|%k"});
  std::vector<std::string> jobs;
  for (const std::string_view line : split(result.out, '\n')) {
    const std::vector<std::string_view> fields = split(trimmed(line), '|');
    if (fields.size() != 2 || fields[1] != comment || !is_number(fields[0])) continue;
    const std::string job(fields[0]);
    if (std::ranges::find(jobs, job) == jobs.end()) jobs.push_back(job);
  }
  return jobs;
}

void SlurmClient::cancel(const std::vector<std::string>& jobs) {
  std::vector<std::string> words = {"scancel"};
  words.insert(words.end(), jobs.begin(), jobs.end());
  run(words, is_of_unknown_job);
}

void SlurmClient::requeue(const std::string& task) { run({"scontrol", "requeue", task}); }

void SlurmClient::release(const std::vector<SlurmTask>& tasks) {
  if (tasks.empty()) return;
  std::vector<std::string> words = {"scontrol", "release"};
  for (const SlurmTask& task : tasks) words.push_back(task_name(task));
  run(words, is_of_tasks_that_wait_no_more);
}

std::size_t SlurmClient::max_array_size() {
  const CommandResult result = run({"scontrol", "show", "config"});
  for (const std::string_view line : split(result.out, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || trimmed(line.substr(0, equals)) != "MaxArraySize") continue;
    const auto size = number_in<std::size_t>(trimmed(line.substr(equals + 1)));
    if (size && *size >= 1) return *size;
  }
  return kFallbackArraySize;
}

}  // namespace sweep

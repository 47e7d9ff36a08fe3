#include "runmanager/slurm/submission.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/file.h"
#include "runmanager/records/lock_file.h"
#include "runmanager/records/provenance.h"
#include "runmanager/slurm/slurm_task.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// By which a job is found whose number was never told.
std::string new_comment() { return "sweep-" + random_id(); }

int this_round() {
  const char* round = std::getenv(kSlurmRoundVariable);
  return round == nullptr ? 0 : std::atoi(round);
}

// The runs of each task of an array. They are dealt out one by one, because long runs are neighbours in
// `runs`. There are four lists for each task that may run at once, or as many as runs_per_task asks for, but
// no more than `largest`.
TaskLists task_lists(const SlurmSpec& spec, const std::vector<std::string>& runs, std::size_t largest) {
  constexpr std::size_t kListsPerTask = 4;
  std::size_t count = kListsPerTask * static_cast<std::size_t>(spec.tasks);
  if (spec.runs_per_task > 0) {
    const auto each = static_cast<std::size_t>(spec.runs_per_task);
    count = (runs.size() + each - 1) / each;
  }
  TaskLists lists(std::min({count, runs.size(), largest}));
  for (std::size_t i = 0; i < runs.size(); ++i) lists[i % lists.size()].push_back(runs[i]);
  return lists;
}

class Submitter {
 public:
  Submitter(const SubmissionOptions& options, SlurmClient& client)
      : options_(options),
        directory_(fs::canonical(options.directory)),
        client_(client),
        jobs_(directory_, client),
        script_{.directory = directory_,
                .program = options.spec.program.empty() ? options.program : options.spec.program,
                .setup = {},
                .max_restarts = options.spec.max_restarts} {}

  Submission run(const std::map<SlurmShape, std::vector<std::string>>& runs) {
    submission_.released = jobs_.release_failed_launches();
    std::map<std::string, std::size_t> live;  // tasks, by the name of their shape
    for (const SlurmJob& job : jobs_.jobs()) {
      std::ranges::copy_if(job.known, std::back_inserter(submission_.held), is_held_by_others);
      if (!job.cancelled) live[job.shape] += job.live();
      if (!job.cancelled && !job.is_report()) submission_.live_tasks += job.live();
      if (job.cancelled && job.live() > 0) ending_ += ":" + job.id;
    }
    for (const auto& [shape, names] : runs) {
      const std::size_t alive = live[shape_name(shape)];
      if (options_.shared_tasks > 0)
        submit_shape(shape, std::max(alive, options_.shared_tasks) - alive, {}, alive);
      else if (const auto open = without_tasks(shape, names); !open.empty())
        submit_lists(shape, open, alive);
    }
    if (options_.spec.report && !submission_.jobs.empty()) submit_report();
    return std::move(submission_);
  }

 private:
  // Those of `runs` that are in the list of no task that runs or waits. A task that was cancelled trains no
  // more.
  std::vector<std::string> without_tasks(const SlurmShape& shape, std::vector<std::string> runs) {
    std::set<std::string> in_lists;
    for (const SlurmJob& job : jobs_.jobs()) {
      if (job.cancelled || job.shape != shape_name(shape) || job.live() == 0) continue;
      const std::optional<TaskLists> lists = read_task_lists(directory_, job.comment);
      if (!lists) return {};  // of an earlier version: it trains whatever there is
      for (const SlurmTask& task : job.known) {
        const auto index = static_cast<std::size_t>(std::strtoul(task.index.c_str(), nullptr, 10));
        if (is_alive(task.state) && index < lists->size())
          in_lists.insert((*lists)[index].begin(), (*lists)[index].end());
      }
    }
    std::erase_if(runs, [&](const std::string& run) { return in_lists.contains(run); });
    return runs;
  }

  void submit_lists(const SlurmShape& shape, const std::vector<std::string>& runs, std::size_t live) {
    const TaskLists lists = task_lists(options_.spec, runs, client_.max_array_size());
    const std::string comment = new_comment();
    write_task_lists(directory_, comment, lists);
    submit_shape(shape, lists.size(), comment, live);
  }

  // `lists`: the comment of the job, if it has lists.
  void submit_shape(const SlurmShape& shape, std::size_t tasks, const std::string& lists, std::size_t live) {
    if (tasks == 0) return;
    const std::string name = shape_name(shape);
    const SlurmTasks asked = tasks_of(shape, options_.spec);
    const SlurmJob job{.shape = name,
                       .tasks = tasks,
                       .comment = lists.empty() ? new_comment() : lists,
                       .submitted = utc_time()};
    script_.setup = asked.setup;
    const fs::path script = directory_ / kSlurmFolder / (name + ".sh");
    write_file_atomically(
        script, worker_script(script_, name, lists, options_.options, options_.jobs, options_.threads));
    const auto most = static_cast<std::size_t>(options_.spec.tasks);
    const std::size_t at_once = most - std::min(live, most - 1);
    std::vector<std::string> more =
        array_options(directory_, name, tasks, at_once, options_.spec.warning_seconds);
    // Tasks that were cancelled may still write their last checkpoints.
    if (!ending_.empty()) more.push_back("--dependency=afterany" + ending_);
    submit(job, asked, more, script);
  }

  // After the new arrays and those of earlier submissions that are not over.
  void submit_report() {
    std::string dependency = "--dependency=afterany";
    for (const SlurmJob& job : jobs_.jobs()) {
      if (!job.is_report() && job.live() > 0) dependency += ":" + job.id;
    }
    for (const SlurmJob& job : submission_.jobs) dependency += ":" + job.id;
    SlurmTasks asked = options_.spec.cpu;
    asked.cpus = 1;
    asked.gres.clear();
    if (!asked.time.empty()) asked.time = "30";
    script_.setup = asked.setup;
    const fs::path script = directory_ / kSlurmFolder / "report.sh";
    write_file_atomically(script, report_script(script_, options_.options, round_));
    submit({.comment = new_comment(), .submitted = utc_time()}, asked,
           {output_option(directory_, "report-%j"), "--open-mode=append", "--requeue", dependency}, script);
  }

  // The job is in the file before Slurm hears of it: if this process dies in between, it is found by its
  // comment.
  void submit(const SlurmJob& job, const SlurmTasks& asked, const std::vector<std::string>& more,
              const fs::path& script) {
    std::vector<SlurmJob>& jobs = jobs_.jobs();
    jobs.push_back(job);
    jobs_.write();
    const std::string name = job.is_report() ? options_.name + " report" : options_.name;
    std::vector<std::string> options = job_options(directory_, name, job.comment, asked);
    options.insert(options.end(), more.begin(), more.end());
    try {
      jobs.back().id = client_.submit(options, script.string());
    } catch (const SlurmUnreachable& error) {
      // Slurm may have taken it all the same.
      std::vector<std::string> found;
      try {
        found = client_.find_by_comment(job.comment);
      } catch (const Error&) {
        throw SlurmUnreachable(
            fmt::format("{}\n{}", error.what(), what_next("whether the job was taken is unknown")));
      }
      if (found.empty()) {
        forget_last();
        throw SlurmUnreachable(fmt::format("{}\n{}", error.what(), what_next("the job was not taken")));
      }
      jobs.back().id = found.front();
    } catch (const ConfigError& error) {
      forget_last();
      throw ConfigError(submission_.jobs.empty()
                            ? error.what()
                            : fmt::format("{}\n{}", error.what(), what_next("not all was submitted")));
    }
    jobs_.write();
    submission_.jobs.push_back(jobs.back());
  }

  void forget_last() {
    jobs_.jobs().pop_back();
    jobs_.write();
  }

  std::string what_next(const std::string& what) const {
    return fmt::format("{}; \"{}\" submits what is missing", what,
                       shell_command({"sweep", "resume", options_.directory.string()}));
  }

  const SubmissionOptions& options_;
  const fs::path directory_;
  SlurmClient& client_;
  LockedSlurmJobs jobs_;
  BatchScript script_;
  std::string ending_;  // ":101:103", those that were cancelled and have not ended
  const int round_ = this_round();
  Submission submission_;
};

}  // namespace

Submission submit_runs(const SubmissionOptions& options,
                       const std::map<SlurmShape, std::vector<std::string>>& runs, SlurmClient& client) {
  return Submitter(options, client).run(runs);
}

}  // namespace sweep

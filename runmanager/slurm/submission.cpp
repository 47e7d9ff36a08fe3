#include "runmanager/slurm/submission.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/printable.h"
#include "runmanager/records/lock_file.h"
#include "runmanager/records/provenance.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// By which a job is found whose number was never told.
std::string new_comment() { return "sweep-" + random_id(); }

int this_round() {
  const char* round = std::getenv(kSlurmRoundVariable);
  return round == nullptr ? 0 : std::atoi(round);
}

// Whether the last job finds that somebody has ended it: what it left is not submitted again unasked.
bool is_given_up(const SlurmTask& task) { return this_round() > 0 && task.state == "CANCELLED"; }

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

std::string quoted(const std::string& word) { return shell_command({word}); }

// The text of a comment must not end it.
std::string in_comment(std::string text) {
  text = printable(text);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

// The scripts of jobs, and the options that say where and with what they run.
class BatchScripts {
 public:
  BatchScripts(const SubmissionOptions& options, fs::path directory)
      : options_(options),
        directory_(std::move(directory)),
        program_((options.spec.program.empty() ? options.program : options.spec.program).string()),
        names_output_(directory_.string().find_first_of("%\\") == std::string::npos) {}

  // The script of a task that trains runs of the shape `name`. `lists`: the comment of the job, see
  // read_task_lists(); empty: it trains whatever there is.
  std::string of_task(const std::string& name, const std::string& lists, const SlurmTasks& asked) const {
    std::string text = beginning(fmt::format("A task that trains runs of the kind {} of", name),
                                 name + "-${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID", asked);
    // Without it, runs on "auto" would take a GPU that the task has not asked for.
    if (name == "cpu") text += "export CUDA_VISIBLE_DEVICES=\n";
    text += fmt::format("export {}={}\n", kSlurmRestartsVariable, options_.spec.max_restarts);
    // With --jobs auto, the program divides the cores.
    const bool sets_threads = options_.threads > 0 || options_.jobs > 0;
    if (options_.threads > 0) {
      text += fmt::format("threads={}\n", options_.threads);
    } else if (sets_threads) {
      text += "cores=${SLURM_CPUS_PER_TASK:-${SLURM_CPUS_ON_NODE:-1}}\n";
      text += fmt::format("threads=$((cores > {0} ? cores / {0} : 1))\n", options_.jobs);
    }
    std::vector<std::string> words = {"--join", "--leave", "--quiet"};
    if (!lists.empty()) words.insert(words.end(), {"--list", lists});
    words.insert(words.end(), options_.options.begin(), options_.options.end());
    // The program itself takes the signal that Slurm sends to the script.
    return text +
           fmt::format("exec {}{}\n", resume_command(words), sets_threads ? " --threads \"$threads\"" : "");
  }

  // The script of the job that writes the report when all others have ended. It then submits unfinished runs
  // again, up to max_restarts times.
  std::string of_report(const SlurmTasks& asked) const {
    const std::string program = quoted(program_), directory = quoted(directory_.string());
    std::string text =
        beginning("Tells, when all tasks have ended, how far they came with", "report-$SLURM_JOB_ID", asked) +
        fmt::format("{0} report {1} || echo \"There is no report.\" >&2\n", program, directory) +
        fmt::format("{0} show {1} || echo \"There are no results.\" >&2\n", program, directory);
    if (const int round = this_round(); round < options_.spec.max_restarts) {
      // What has failed fails again; the rest was lost with a task.
      std::vector<std::string> words = options_.options;
      words.insert(words.end(), {"--launcher", "slurm", "--no-retry-failed"});
      text += fmt::format("{}={} {} || echo \"Nothing was submitted again.\" >&2\n", kSlurmRoundVariable,
                          round + 1, resume_command(words));
    }
    return text + fmt::format("exec {} status {} --expect-done\n", program, directory);
  }

  std::vector<std::string> job_options(const std::string& name, const std::string& comment,
                                       const SlurmTasks& asked) const {
    std::vector<std::string> options = {"--job-name=" + name, "--comment=" + comment,
                                        "--chdir=" + directory_.string(), "--nodes=1", "--ntasks=1"};
    const std::pair<const char*, const std::string&> words[] = {{"partition", asked.partition},
                                                                {"account", asked.account},
                                                                {"qos", asked.qos},
                                                                {"reservation", asked.reservation},
                                                                {"time", asked.time},
                                                                {"mem", asked.memory},
                                                                {"gres", asked.gres},
                                                                {"constraint", asked.constraint},
                                                                {"exclude", asked.exclude}};
    for (const auto& [option, value] : words) {
      if (!value.empty()) options.push_back(fmt::format("--{}={}", option, value));
    }
    if (asked.cpus > 0) options.push_back(fmt::format("--cpus-per-task={}", asked.cpus));
    options.insert(options.end(), asked.options.begin(), asked.options.end());
    return options;
  }

  // The file of a job's output: STEM.out in the folder "slurm" of the sweep.
  std::string output_option(const std::string& stem) const {
    return names_output_ ? fmt::format("--output={}/{}.out", kSlurmFolder, stem) : "--output=/dev/null";
  }

 private:
  // `stem`: the name of the file of its output as the shell expands it.
  std::string beginning(const std::string& what, const std::string& stem, const SlurmTasks& asked) const {
    std::string text = fmt::format(
        "#!/bin/bash\n# {} the sweep in {}\n# Written by sweep; \"sweep resume\" writes it anew.\n", what,
        in_comment(directory_.string()));
    if (!names_output_) text += fmt::format("exec >>\"{}/{}.out\" 2>&1\n", kSlurmFolder, stem);
    // A module that cannot be loaded must not end in a training without it.
    text += "set -e\n";
    for (const std::string& line : asked.setup) text += line + "\n";
    if (const char* data = std::getenv("SWEEP_DATA"); data != nullptr && *data != '\0')
      text += fmt::format("export SWEEP_DATA={}\n", quoted(fs::absolute(data).string()));
    return text;
  }

  std::string resume_command(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {program_, "resume", directory_.string()};
    words.insert(words.end(), more.begin(), more.end());
    return shell_command(words);
  }

  const SubmissionOptions& options_;
  const fs::path directory_;
  const std::string program_;  // as nodes have it
  // Slurm puts the directory of a job in front of the name of its output, and then takes % and \ in all of it
  // for marks of its own. If there are any, the script opens the file itself.
  const bool names_output_;
};

class Submitter {
 public:
  Submitter(const SubmissionOptions& options, SlurmClient& client)
      : options_(options),
        directory_(fs::canonical(options.directory)),
        client_(client),
        jobs_(directory_, client),
        scripts_(options, directory_) {}

  Submission run(const std::map<SlurmShape, std::vector<std::string>>& runs) {
    submission_.released = jobs_.release_failed_launches();
    std::map<std::string, std::size_t> live, given_up;  // tasks, by the name of their shape
    for (const SlurmJob& job : jobs_.jobs()) {
      std::ranges::copy_if(job.known, std::back_inserter(submission_.held), is_held_by_others);
      if (!job.cancelled) live[job.shape] += job.live();
      if (!job.cancelled && !job.is_report())  // Later jobs have what earlier ones left.
        given_up[job.shape] = static_cast<std::size_t>(std::ranges::count_if(job.known, is_given_up));
      if (!job.cancelled && !job.is_report()) submission_.live_tasks += job.live();
      if (job.cancelled && job.live() > 0) ending_ += ":" + job.id;
    }
    for (const auto& [shape, names] : runs) {
      const std::size_t alive = live[shape_name(shape)];
      if (options_.shared_tasks > 0) {
        const std::size_t ended = given_up[shape_name(shape)];
        submission_.given_up += ended;
        if (ended == 0) submit_shape(shape, std::max(alive, options_.shared_tasks) - alive, {}, alive);
      } else if (const auto open = without_tasks(shape, names); !open.empty()) {
        submit_lists(shape, open, alive);
      }
    }
    if (options_.spec.report && !submission_.jobs.empty()) submit_report();
    return std::move(submission_);
  }

 private:
  // Those of `runs` that are in the list of no task that runs, waits or is given up. A task that was
  // cancelled trains no more.
  std::vector<std::string> without_tasks(const SlurmShape& shape, std::vector<std::string> runs) {
    std::map<std::string, const SlurmTask*> in_lists;  // by run
    for (const SlurmJob& job : jobs_.jobs()) {
      if (job.cancelled || job.shape != shape_name(shape)) continue;
      const std::optional<TaskLists> lists = read_task_lists(directory_, job.comment);
      if (!lists && job.live() > 0) return {};  // of an earlier version: it trains whatever there is
      if (!lists) continue;
      for (const SlurmTask& task : job.known) {
        const auto index = static_cast<std::size_t>(std::strtoul(task.index.c_str(), nullptr, 10));
        if (index >= lists->size()) continue;
        const auto& list = (*lists)[index];
        if (is_alive(task.state) || is_given_up(task))
          for (const std::string& run : list) in_lists[run] = &task;
        else  // Of jobs with the same run, the last one counts.
          for (const std::string& run : list) in_lists.erase(run);
      }
    }
    std::set<const SlurmTask*> ended;
    std::erase_if(runs, [&](const std::string& run) {
      const auto found = in_lists.find(run);
      if (found == in_lists.end()) return false;
      if (is_given_up(*found->second)) ended.insert(found->second);
      return true;
    });
    submission_.given_up += ended.size();
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
    const fs::path script = directory_ / kSlurmFolder / (name + ".sh");
    write_file_atomically(script, scripts_.of_task(name, lists, asked));
    const auto most = static_cast<std::size_t>(options_.spec.tasks);
    const std::size_t at_once = most - std::min(live, most - 1);
    std::vector<std::string> more = {
        scripts_.output_option(name + "-%A_%a"), "--open-mode=append", "--requeue",
        fmt::format("--signal=B:USR2@{}", options_.spec.warning_seconds),
        fmt::format("--array=0-{}{}", tasks - 1, at_once < tasks ? fmt::format("%{}", at_once) : "")};
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
    const fs::path script = directory_ / kSlurmFolder / "report.sh";
    write_file_atomically(script, scripts_.of_report(asked));
    submit({.comment = new_comment(), .submitted = utc_time()}, asked,
           {scripts_.output_option("report-%j"), "--open-mode=append", "--requeue", dependency}, script);
  }

  // The job is in the file before Slurm hears of it: if this process dies in between, it is found by its
  // comment.
  void submit(const SlurmJob& job, const SlurmTasks& asked, const std::vector<std::string>& more,
              const fs::path& script) {
    std::vector<SlurmJob>& jobs = jobs_.jobs();
    jobs.push_back(job);
    jobs_.write();
    const std::string name = job.is_report() ? options_.name + " report" : options_.name;
    std::vector<std::string> options = scripts_.job_options(name, job.comment, asked);
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
                       shell_command({typed_program(), "resume"}, options_.directory));
  }

  const SubmissionOptions& options_;
  const fs::path directory_;
  SlurmClient& client_;
  LockedSlurmJobs jobs_;
  const BatchScripts scripts_;
  std::string ending_;  // ":101:103", those that were cancelled and have not ended
  Submission submission_;
};

}  // namespace

Submission submit_runs(const SubmissionOptions& options,
                       const std::map<SlurmShape, std::vector<std::string>>& runs, SlurmClient& client) {
  return Submitter(options, client).run(runs);
}

}  // namespace sweep

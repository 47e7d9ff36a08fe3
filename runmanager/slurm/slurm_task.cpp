#include "runmanager/slurm/slurm_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "runmanager/records/provenance.h"
#include "runmanager/slurm/slurm_jobs.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string quoted(const std::string& word) { return shell_command({word}); }

// The text of a comment must not end it.
std::string in_comment(std::string text) {
  text = printable(text);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

// Slurm puts the directory of a job in front of the name of its output, and then takes % and \ in all of it
// for marks of its own. The script then opens the file itself.
bool can_name_output(const fs::path& directory) {
  return directory.string().find_first_of("%\\") == std::string::npos;
}

// `stem`: the name of the file as the shell expands it.
std::string beginning(const BatchScript& script, const std::string& what, const std::string& stem) {
  std::string text =
      fmt::format("#!/bin/bash\n# {} the sweep in {}\n# Written by sweep; \"sweep resume\" writes it anew.\n",
                  what, in_comment(script.directory.string()));
  if (!can_name_output(script.directory))
    text += fmt::format("exec >>\"{}/{}.out\" 2>&1\n", kSlurmFolder, stem);
  // A module that cannot be loaded must not end in a training without it.
  text += "set -e\n";
  for (const std::string& line : script.setup) text += line + "\n";
  if (const std::string data = variable("SWEEP_DATA"); !data.empty())
    text += fmt::format("export SWEEP_DATA={}\n", quoted(fs::absolute(data).string()));
  return text;
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

std::string worker_script(const BatchScript& script, const std::string& shape, const std::string& lists,
                          const std::vector<std::string>& options, int jobs, int threads) {
  std::string text = beginning(script, fmt::format("A task that trains runs of the kind {} of", shape),
                               shape + "-${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID");
  // Without it, runs on "auto" would take a GPU that the task has not asked for.
  if (shape == "cpu") text += "export CUDA_VISIBLE_DEVICES=\n";
  text += fmt::format("export {}={}\n", kSlurmRestartsVariable, script.max_restarts);
  // With --jobs auto, the program divides the cores.
  const bool sets_threads = threads > 0 || jobs > 0;
  if (threads == 0 && sets_threads) {
    text += "cores=${SLURM_CPUS_PER_TASK:-${SLURM_CPUS_ON_NODE:-1}}\n";
    text += fmt::format("threads=$((cores > {0} ? cores / {0} : 1))\n", jobs);
  } else if (sets_threads) {
    text += fmt::format("threads={}\n", threads);
  }
  std::vector<std::string> words = {
      script.program.string(), "resume", script.directory.string(), "--join", "--leave", "--quiet"};
  if (!lists.empty()) words.insert(words.end(), {"--list", lists});
  words.insert(words.end(), options.begin(), options.end());
  // The program itself takes the signal that Slurm sends to the script.
  return text +
         fmt::format("exec {}{}\n", shell_command(words), sets_threads ? " --threads \"$threads\"" : "");
}

std::string report_script(const BatchScript& script, const std::vector<std::string>& options, int round) {
  const std::string program = quoted(script.program.string()), directory = quoted(script.directory.string());
  std::string text =
      beginning(script, "Tells, when all tasks have ended, how far they came with", "report-$SLURM_JOB_ID") +
      fmt::format("{0} report {1} || echo \"There is no report.\" >&2\n", program, directory) +
      fmt::format("{0} show {1} || echo \"There are no results.\" >&2\n", program, directory);
  if (round < script.max_restarts) {
    // What has failed fails again; the rest was lost with a task.
    std::vector<std::string> words = {script.program.string(), "resume", script.directory.string()};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--launcher", "slurm", "--no-retry-failed"});
    text += fmt::format("{}={} {} || echo \"Nothing was submitted again.\" >&2\n", kSlurmRoundVariable,
                        round + 1, shell_command(words));
  }
  return text + fmt::format("exec {} status {} --expect-done\n", program, directory);
}

std::vector<std::string> job_options(const fs::path& directory, const std::string& name,
                                     const std::string& comment, const SlurmTasks& tasks) {
  std::vector<std::string> options = {"--job-name=" + name, "--comment=" + comment,
                                      "--chdir=" + directory.string(), "--nodes=1", "--ntasks=1"};
  const std::pair<const char*, const std::string&> words[] = {{"partition", tasks.partition},
                                                              {"account", tasks.account},
                                                              {"qos", tasks.qos},
                                                              {"reservation", tasks.reservation},
                                                              {"time", tasks.time},
                                                              {"mem", tasks.memory},
                                                              {"gres", tasks.gres},
                                                              {"constraint", tasks.constraint},
                                                              {"exclude", tasks.exclude}};
  for (const auto& [option, value] : words) {
    if (!value.empty()) options.push_back(fmt::format("--{}={}", option, value));
  }
  if (tasks.cpus > 0) options.push_back(fmt::format("--cpus-per-task={}", tasks.cpus));
  options.insert(options.end(), tasks.options.begin(), tasks.options.end());
  return options;
}

std::string output_option(const fs::path& directory, const std::string& stem) {
  return can_name_output(directory) ? fmt::format("--output={}/{}.out", kSlurmFolder, stem)
                                    : "--output=/dev/null";
}

std::vector<std::string> array_options(const fs::path& directory, const std::string& shape, std::size_t tasks,
                                       std::size_t at_once, int warning_seconds) {
  return {output_option(directory, shape + "-%A_%a"), "--open-mode=append", "--requeue",
          fmt::format("--signal=B:USR2@{}", warning_seconds),
          fmt::format("--array=0-{}{}", tasks - 1, at_once < tasks ? fmt::format("%{}", at_once) : "")};
}

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

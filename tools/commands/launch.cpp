#include "tools/commands/launch.h"

#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <thread>

#include "core/base/error.h"
#include "core/base/text.h"
#include "runmanager/records/provenance.h"
#include "runmanager/slurm/launch.h"
#include "runmanager/sweep/sweep_summary.h"
#include "runmanager/terminal/terminal.h"
#include "runmanager/training/stop_signals.h"
#include "tools/command_line.h"
#include "tools/output.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// A follower looks at records about as often as a sweep tells its progress.
constexpr std::chrono::milliseconds kWait{250};

// This program, as the nodes of the cluster find it on the file system that they share.
fs::path this_program() {
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error || program.string().ends_with(" (deleted)"))
    throw ConfigError(
        "the file of this program was replaced or removed while it runs; start it again, or name the one of "
        "the nodes: --slurm program=/path/of/sweep");
  return program;
}

std::string command_on(const char* command, const fs::path& directory) {
  return shell_command({typed_program(), command}, directory);
}

// Tasks that somebody holds are in the place of others, but do nothing.
void tell_of_held(const std::vector<SlurmTask>& held) {
  if (held.empty()) return;
  std::vector<std::string> words = {"scontrol", "release"};
  for (const SlurmTask& task : held) words.push_back(task_name(task));
  std::cerr << fmt::format("{} {} held ({}), and wait{} until somebody lets {} go: {}\n",
                           counted(held.size(), "task"), held.size() == 1 ? "is" : "are", held.front().reason,
                           held.size() == 1 ? "s" : "", held.size() == 1 ? "it" : "them",
                           shell_command(words));
}

void print_submission(const LaunchedSweep& launched, const RunnerOptions& runner) {
  if (runner.json) {
    nlohmann::ordered_json jobs = nlohmann::ordered_json::array();
    for (const SlurmJob& job : launched.submission.jobs) {
      jobs.push_back(
          {{"job", job.id}, {"kind", job.is_report() ? "report" : job.shape}, {"tasks", job.tasks}});
    }
    nlohmann::ordered_json held = nlohmann::ordered_json::array();
    for (const SlurmTask& task : launched.submission.held) held.push_back(task_name(task));
    print_json({{"directory", launched.directory.string()},
                {"unfinished", launched.unfinished},
                {"live_tasks", launched.submission.live_tasks},
                {"released", launched.submission.released},
                {"held", std::move(held)},
                {"jobs", std::move(jobs)}});
    return;
  }
  for (const SlurmJob& job : launched.submission.jobs) {
    std::cout << (job.is_report()
                      ? fmt::format("job {}: the report, when the others have ended\n", job.id)
                      : fmt::format("job {}: {} on {}\n", job.id, counted(job.tasks, "task"), job.shape));
  }
  std::cout.flush();
  if (runner.quiet) return;
  if (launched.unfinished == 0) {
    std::cerr << "Every run is done.\n";
    return;
  }
  if (const std::size_t released = launched.submission.released; released > 0)
    std::cerr << fmt::format("{} that a node could not start {} let go: Slurm had held {}.\n",
                             counted(released, "task"), released == 1 ? "was" : "were",
                             released == 1 ? "it" : "them");
  tell_of_held(launched.submission.held);
  const std::size_t given_up = launched.submission.given_up;
  if (given_up > 0)
    std::cerr << fmt::format(
        "{} ended by scancel: what is left of {} runs is submitted again only by \"{}\".\n",
        given_up == 1 ? "A task was" : fmt::format("{} tasks were", given_up),
        given_up == 1 ? "its" : "their", command_on("resume", launched.directory));
  const bool has_none = launched.submission.jobs.empty();
  if (has_none && given_up > 0 && launched.submission.live_tasks == 0) return;
  if (has_none)
    std::cerr << fmt::format("Nothing to submit: {} of it run or wait, which train what is not done.\n",
                             counted(launched.submission.live_tasks, "task"));
  std::cerr << fmt::format("{} to be trained. How far they are: {}\nTo end them: {}\n",
                           counted(launched.unfinished, "run"), command_on("status", launched.directory),
                           command_on("cancel", launched.directory));
}

int follow(const Sweep& sweep, const RunnerOptions& runner, const fs::path& directory, SlurmClient& client) {
  FollowedSweep followed;
  int signal = 0;
  {
    const StopSignals signals;
    followed = follow_sweep(sweep, directory, client,
                            {.terminal = Terminal::of_process(),
                             .quiet = runner.quiet || runner.json,
                             .stop_requested = [] { return StopSignals::requested() != 0; },
                             .wait = [] { std::this_thread::sleep_for(kWait); }});
    signal = StopSignals::requested();
  }
  if (signal != 0) {
    std::cerr << fmt::format(
        "Stopped by {}; the tasks on the cluster go on. How far they are: {}\nTo end them: {}\n",
        signal_name(signal), command_on("status", directory), command_on("cancel", directory));
    return exit_code_of({}, signal);
  }
  SweepEnvironment environment;
  environment.out = &std::cout;
  print_summary({.sweep = sweep, .directory = directory, .runs = followed.runs}, runner, environment);
  if (followed.unfinished == 0) return exit_code_of(followed.runs, 0);
  std::cerr << fmt::format("{} {} not done, and no task is left for {}. To go on: {}\n",
                           counted(followed.unfinished, "run"), followed.unfinished == 1 ? "is" : "are",
                           followed.unfinished == 1 ? "it" : "them", command_on("resume", directory));
  return kExitFailed;
}

}  // namespace

int launch(const Sweep& sweep, const RunOptions& options) {
  SlurmClient client;
  const RunnerOptions& runner = options.runner;
  const LaunchedSweep launched =
      launch_sweep(sweep, runner, this_program(), environment_with_workers(), client);
  if (!options.wait || !runner.json) print_submission(launched, runner);
  return options.wait ? follow(sweep, runner, launched.directory, client) : kExitDone;
}

}  // namespace sweep

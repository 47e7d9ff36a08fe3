// `sweep SWEEP.json`, or `sweep run SWEEP.json`: trains the runs of a sweep file, or resumes them; and
// `sweep resume DIR`, the same for what a sweep has left in its directory.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/parallel/mpi_session.h"
#include "core/parallel/replicated_engine.h"
#include "runmanager/answers/comparison.h"
#include "runmanager/plan/plan.h"
#include "runmanager/records/provenance.h"
#include "runmanager/slurm/launch.h"
#include "runmanager/slurm/slurm_jobs.h"
#include "runmanager/sweep/sweep_summary.h"
#include "runmanager/training/stop_signals.h"
#include "tools/commands/run_options.h"
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

// Submits the runs of `sweep` to a cluster and, if the options say so, waits for them and prints the results.
// Returns the exit code.
int launch(const Sweep& sweep, const RunOptions& options) {
  SlurmClient client;
  const RunnerOptions& runner = options.runner;
  const LaunchedSweep launched =
      launch_sweep(sweep, runner, this_program(), environment_with_workers(), client);
  if (!options.wait || !runner.json) print_submission(launched, runner);
  return options.wait ? follow(sweep, runner, launched.directory, client) : kExitDone;
}

// The question that devices are swept for. Says nothing unless runs on two devices are completed.
void print_device_comparison(const SweepOutcome& outcome) {
  const std::vector<SourceRun> runs = source_runs(outcome.directory, outcome.runs);
  const std::vector<std::string> keys = varying_keys(runs);
  if (std::find(keys.begin(), keys.end(), "device") == keys.end()) return;
  std::cout << "\n"
            << comparison_text(compare_runs(runs, "device", ""), style_of(TableFormat::kText)) << std::flush;
}

// Several ranks train each run together, and this one is among them: a worker would be none.
SweepEnvironment environment_with(MpiSession& session) {
  SweepEnvironment environment;
  Communicator& world = session.world();
  const int sharers = session.ranks_on_these_cores();
  environment.make_engine = [&world, sharers](const Network& network, EngineOptions options) {
    if (options.parallel.data > 1) options.threads = std::max(1, options.threads / sharers);
    return make_engine_on(world, network, options);
  };
  environment.parallel_missing_reason = [size = world.size()](const Network& network,
                                                              const EngineOptions& options) {
    return group_unavailable_reason(network, options, size);
  };
  return environment;
}

// Trains the runs of `sweep` and prints their results, with a comparison of the devices if there are several.
// `session`: the processes that train together with this one, which then trains in this process; nullptr: it
// has workers.
SweepOutcome train_sweep(const Sweep& sweep, const RunnerOptions& options, MpiSession* session) {
  const auto begin = std::chrono::steady_clock::now();
  SweepOutcome outcome =
      run_sweep(sweep, options, session != nullptr ? environment_with(*session) : environment_with_workers());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const std::string prediction = compare_with_prediction(
      outcome.directory, outcome.runs, runs_at_once(options.jobs, sweep.runs.size()), seconds.count());
  if (!prediction.empty() && !options.quiet && !options.json) std::cerr << prediction << std::endl;
  if (!options.json) print_device_comparison(outcome);
  return outcome;
}

// A task of a cluster trains the runs that it was submitted for.
int train_as_task(const Sweep& sweep, RunOptions& options, MpiSession* session) {
  if (!options.list.empty()) {
    const std::vector<std::string> runs = runs_of_this_task(options.runner.logdir / sweep.name, options.list);
    options.runner.takes = [names = std::set<std::string>(runs.begin(), runs.end())](const RunConfig& run) {
      return names.contains(run.name);
    };
  }
  const SweepOutcome outcome = train_sweep(sweep, options.runner, session);
  SlurmClient client;
  return end_slurm_task(outcome.exit_code, outcome.directory, outcome.failed_fast, client);
}

int print_dry_run(const RunOptions& options) {
  refuse_given({{"--yes", options.yes},
                {"--wait", options.wait},
                {"--slurm", !options.sweep.load.slurm.empty()},
                {"--leave", options.runner.leave}},
               "is not for --dry-run, which gets no data and trains nothing");
  return print_plan({.sweep = options.sweep,
                     .runner = options.runner,
                     .is_dry_run = true,
                     .format = options.runner.json ? TableFormat::kJson : TableFormat::kText});
}

int run(RunOptions& options, const std::vector<std::string>& typed, MpiSession* session) {
  if (options.dry_run) return print_dry_run(options);
  // Also a signal that comes while the file is read stops the sweep.
  std::optional<StopSignals> signals;
  if (options.launcher != kSlurm) signals.emplace();
  const Sweep sweep = load_sweep(options.sweep, options.runner.fresh);
  if (options.yes) {
    if (const int code = get_missing_datasets(sweep); code != kExitDone) return code;
  }
  options.runner.logdir = logdir_of(options.sweep);
  options.runner.command = typed;
  if (has_directory(options.sweep)) {
    if (is_slurm_task()) return train_as_task(sweep, options, session);
    if (options.launcher.empty() && has_slurm_jobs(options.runner.logdir / sweep.name)) {
      signals.reset();
      options.launcher = kSlurm;
    }
  }
  if (options.launcher == kSlurm) return launch(sweep, options);
  refuse_given({{"--wait", options.wait}, {"--slurm", !options.sweep.load.slurm.empty()}},
               "only with --launcher slurm");
  if (const auto reason = unknown_ranks_reason(); reason && !options.runner.join) throw ConfigError(*reason);
  SlurmClient client;
  if (!options.runner.fresh) check_no_live_tasks(options.runner.logdir / sweep.name, client);
  return train_sweep(sweep, options.runner, session).exit_code;
}

CommandAction add_run(CLI::App& app, MpiSession* session, bool wants_directory) {
  auto options = std::make_shared<RunOptions>();
  add_run_options(app, *options);
  if (wants_directory)
    app.get_option("file")->description("the directory of a sweep, runs/NAME")->type_name("DIR");
  return [options, session, wants_directory](const std::vector<std::string>& typed) {
    if (wants_directory && !has_directory(options->sweep)) check_is_directory(options->sweep);
    return run(*options, typed, session);
  };
}

}  // namespace

Command run_command(MpiSession* session) {
  return {.name = kDefaultCommand,
          .description = "train all runs of a sweep file, or resume; \"run\" may be left out",
          .missing_argument = "a sweep file is needed: sweep SWEEP.json [key=v1,v2,... ...] [options]",
          .add_to = [session](CLI::App& app) { return add_run(app, session, false); }};
}

Command resume_command(MpiSession* session) {
  return {.name = "resume",
          .description = "go on with the sweep in a directory, without its sweep file",
          .missing_argument = "a directory is needed: sweep resume runs/NAME [options]",
          .add_to = [session](CLI::App& app) { return add_run(app, session, true); }};
}

}  // namespace sweep

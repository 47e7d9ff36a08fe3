#include "tools/commands/run_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/json/json_text.h"
#include "runmanager/records/run_files.h"
#include "runmanager/sweep/sweep_json.h"
#include "runmanager/sweepfile/settings/settings.h"
#include "tools/output.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

// The keys of a sweep file, from the table that the reader checks them by.
std::string keys_help() {
  std::string text = "Keys of a sweep file:\n";
  for (const Setting& setting : top_level_settings()) {
    if (!setting.is_shown) continue;
    text += fmt::format(
        "  {:<14}  {}{}\n", setting.name, setting.help,
        setting.default_value ? fmt::format(" (default {})", to_string(*setting.default_value)) : "");
  }
  return text + "\"sweep schema\" prints all of them with types and limits.";
}

// Replaces "auto" by 0, which RunnerOptions::jobs has for it; 0 itself is refused.
CLI::Validator jobs_validator() {
  return CLI::Validator(
      [](std::string& word) {
        constexpr int kMaxJobs = 1024;
        if (word == "auto") {
          word = "0";
          return std::string();
        }
        const int jobs = number_in<int>(word).value_or(0);
        return jobs >= 1 && jobs <= kMaxJobs ? std::string()
                                             : fmt::format("got {}, want 1 to {}, or auto", word, kMaxJobs);
      },
      "");
}

// "train" of `python3 train.py --lr={lr}`: the first word that names a file of a script, or else the program.
std::string program_name(const std::vector<std::string>& program) {
  for (const std::string& word : program) {
    const fs::path path = word;
    if (!word.starts_with('-') && path.has_extension() && path.stem().string().front() != '.' &&
        fs::exists(path))
      return path.stem().string();
  }
  return fs::path(program.front()).stem().string();
}

// How runs are trained.
void add_training_options(CLI::App& app, RunnerOptions& runner) {
  const CLI::Validator seconds = number_not_negative("a number of seconds >= 0");
  add_jobs_options(app, runner.jobs, runner.threads);
  app.add_flag(
      "--replace", runner.replace,
      "retrain existing runs whose settings differ; each old one is removed when its new one has finished");
  app.add_flag("--join", runner.join,
               "work on the sweep together with other processes, on any machines that share the directory");
  app.add_flag("--leave", runner.leave,
               "with --join: end when no run is left to claim, also while others still train");
  app.add_flag("--fail-fast", runner.fail_fast, "end at the first run that fails");
  add_count(app, "--retry", runner.retry,
            "try a run that failed up to N times again, from its last finished epoch", 0, 1000)
      ->capture_default_str();
  app.add_flag_callback(
      "--no-retry-failed", [&runner] { runner.retry_failed = false; },
      "leave runs alone that failed in an earlier start");
  add_value(app, "--timeout SECONDS", runner.timeout, "a run that takes longer has failed; 0: any time")
      ->check(seconds)
      ->capture_default_str();
  add_value(app, "--max-time SECONDS", runner.max_time,
            "stop after this time, with exit code 75: the same command goes on; 0: never")
      ->check(seconds)
      ->capture_default_str();
  app.add_flag("--strict", runner.strict, "a run whose device is missing fails instead of being skipped");
  app.add_flag("--quiet", runner.quiet, "no progress");
  app.add_flag(
      "--json", runner.json,
      "results as JSON on standard output instead of the table, and progress as a line of JSON per event on "
      "standard error");
}

// Without a slash at the end, and with a name: "." has none.
fs::path named_directory(fs::path directory) {
  if (directory.filename().empty()) directory = directory.parent_path();
  const bool has_name =
      !directory.filename().empty() && directory.filename() != "." && directory.filename() != "..";
  return has_name ? directory : fs::weakly_canonical(directory);
}

}  // namespace

bool has_directory(const SweepArguments& arguments) {
  std::error_code ignored;
  return arguments.program.empty() && fs::is_directory(arguments.file, ignored);
}

void check_is_directory(const SweepArguments& arguments) {
  std::error_code error;
  const fs::path file = arguments.file / "sweep.json";
  if (!fs::exists(file, error) && !error) {
    refuse_directory(arguments.file, "has no sweep.json", "the directory of a sweep, with sweep.json in it");
  }
  const auto sweep = parse_json_text(sweep_record_text(file), file.string() + ":");
  if (sweep.contains("imported")) {
    throw ConfigError(fmt::format("{}: was imported from {}; there is nothing to go on with",
                                  arguments.file.string(), sweep["imported"].dump()));
  }
}

fs::path logdir_of(const SweepArguments& arguments) {
  // A hint with a path that begins with a dash could not be typed: other programs take it for an option.
  if (!arguments.logdir.empty())
    return arguments.logdir.native().front() == '-' ? "." / arguments.logdir : arguments.logdir;
  if (!has_directory(arguments)) return "runs";
  return directory_of(named_directory(arguments.file));
}

Sweep load_sweep(const SweepArguments& arguments, bool fresh) {
  LoadOptions load = arguments.load;
  if (!fresh) load.logdir = logdir_of(arguments);
  std::vector<std::string> overrides = arguments.overrides;
  if (!arguments.name.empty()) overrides.push_back("name=" + arguments.name);
  if (has_directory(arguments)) {
    check_is_directory(arguments);
    // The directory may be called otherwise than the sweep: --fresh makes NAME-2.
    const fs::path directory = named_directory(arguments.file);
    const auto is_name = [](const std::string& word) { return word.starts_with("name="); };
    if (std::ranges::none_of(overrides, is_name))
      overrides.push_back("name=" + directory.filename().string());
    return load_sweep(directory / "sweep.json", overrides, load);
  }
  if (arguments.program.empty()) {
    refuse_other_than_file(arguments.file.string());
    return load_sweep(arguments.file, overrides, load);
  }
  const std::string name = arguments.name.empty() ? program_name(arguments.program) : arguments.name;
  return make_command_sweep(name, arguments.program, arguments.overrides, load);
}

void add_sweep_arguments(CLI::App& app, SweepArguments& arguments) {
  add_value(app, "file SWEEP.json", arguments.file,
            "the sweep file, or the directory of a sweep, runs/NAME; - reads standard input")
      ->required();
  add_value(app, "overrides KEY=VALUE", arguments.overrides,
            "key=value replaces a value of the file, key=v1,v2,... an axis: lr=0.1,0.01 epochs=3");
  add_value(app, "--name NAME", arguments.name, "name of the sweep; default: that of the file or the program")
      ->check([](const std::string& name) {
        return name.empty() ? "want a name with a character at least" : "";
      });
  const auto without_colon = [](std::string& word) {
    word.erase(0, 1);
    return std::string();
  };
  app.add_option("--program-word", arguments.program)
      ->group("")
      ->allow_extra_args(false)
      ->transform(CLI::Validator(without_colon, ""));
  LoadOptions& load = arguments.load;
  add_value(app, "--epochs N", load.epochs, "epochs of every run");
  add_value(app, "--seed N", load.seed, "seed of every run");
  // Two options for one value, which has a third state: neither was given, and the file decides.
  app.add_flag_callback(
      "--deterministic", [&load] { load.deterministic = true; },
      "the same run gives the same bits each time, on CUDA too, which is the default");
  app.add_flag_callback(
         "--no-deterministic", [&load] { load.deterministic = false; },
         "NVIDIA's libraries may add up in any order if that is faster")
      ->excludes(app.get_option("--deterministic"));
  app.footer(keys_help());
}

void add_run_options(CLI::App& app, RunOptions& options) {
  add_sweep_arguments(app, options.sweep);
  RunnerOptions& runner = options.runner;
  add_logdir_option(app, options.sweep);
  app.add_flag("--fresh", runner.fresh, "start anew in NAME-2, NAME-3, ... instead of resuming");
  add_training_options(app, runner);
  add_value(app, "--launcher NAME", options.launcher,
            "where the runs are trained: local, or slurm, which submits them to a cluster and ends; default: "
            "local, and for a sweep that was submitted: slurm")
      ->check(one_of({kLocal, kSlurm}));
  add_value(app, "--slurm KEY=VALUE", options.sweep.load.slurm,
            "with --launcher slurm: sets a key of the file's \"slurm\": partition=gpu, time=4:00:00, "
            "cuda.gres=gpu:2")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
  app.add_flag("--wait", options.wait, "with --launcher slurm: show the runs until all have ended");
  app.add_flag("--yes", options.yes, "first download a known data set that is missing, as \"data get\" does");
  app.add_flag("--dry-run", options.dry_run, "train nothing: print what `sweep plan` prints");
  // For the scripts of tasks.
  app.add_option("--list", options.list)->group("");
}

void add_logdir_option(CLI::App& app, SweepArguments& arguments) {
  add_value(app, "--logdir DIR", arguments.logdir,
            "where the sweep's directory is made; default: runs, or where the directory given is");
}

void add_jobs_options(CLI::App& app, int& jobs, int& threads) {
  add_value(app, "--jobs N|auto", jobs,
            "runs at once; auto: one per core. More than one share the cores, so their times are longer")
      ->transform(jobs_validator())
      ->default_str("1");
  add_count(app, "--threads", threads, "CPU threads per run; 0: the cores, divided over the runs at once", 0,
            4096)
      ->capture_default_str();
}

}  // namespace sweep

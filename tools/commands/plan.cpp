// `sweep plan`: prints what `sweep run` would train, keep, continue or refuse, and what that would cost.
#include "runmanager/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "core/base/printable.h"
#include "core/base/threads.h"
#include "core/data/dataset.h"
#include "core/engine/device.h"
#include "runmanager/config/data_check.h"
#include "runmanager/kinds/command/command_kind.h"
#include "runmanager/kinds/command/command_words.h"
#include "runmanager/kinds/network/network_kind.h"
#include "runmanager/records/earlier_starts/existing_runs.h"
#include "tools/commands/run_options.h"
#include "tools/output.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The fate of a run, or "replaced", or "pruned" if a search has ended it and will again.
std::string_view fate_text(const Sweep& sweep, const ExistingRun& existing, bool replace) {
  if (existing.fate == RunFate::kInTheWay && replace) return "replaced";
  const bool is_pruned = sweep.search && existing.fate == RunFate::kContinued && existing.record &&
                         existing.record->status == RunStatus::kPruned;
  return is_pruned ? "pruned" : to_string(existing.fate);
}

// What else a start says or does about what is left of a run: the differences, or the former name, the epochs
// that are there, and the note.
std::string note_of(const ExistingRun& existing, const RunConfig& config) {
  if (existing.fate == RunFate::kInTheWay) return to_string(existing.differences);
  std::vector<std::string> notes;
  if (existing.is_adopted(config)) notes.push_back("now called " + existing.directory);
  if (existing.fate == RunFate::kContinued && existing.record && config.epochs > 0)  // 0: of a program
    notes.push_back(fmt::format("after {} of {} epochs", existing.record->epochs.size(), config.epochs));
  if (!existing.note.empty()) notes.push_back(existing.note);
  return fmt::format("{}", fmt::join(notes, "; "));
}

void set_fates(SweepPlan& plan, const std::vector<ExistingRun>& existing, bool replace) {
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    PlannedRun& run = plan.runs[i];
    run.fate = fate_text(*plan.sweep, existing[i], replace);
    run.note = note_of(existing[i], *run.config);
    if (existing[i].fate == RunFate::kContinued && existing[i].record)
      run.trained_epochs = existing[i].record->epochs.size();
  }
}

// Bytes that can be written where the directory is, or will be.
std::optional<std::uint64_t> free_bytes(fs::path directory) {
  std::error_code error;
  directory = fs::absolute(directory, error);
  while (!fs::exists(directory, error) && directory.has_relative_path()) directory = directory.parent_path();
  const fs::space_info space = fs::space(directory, error);
  if (error) return std::nullopt;
  return space.available;
}

// Measures each shape that is to be trained, once.
void run_pilots(SweepPlan& plan, NetworkKind& kind) {
  std::vector<const PlannedRun*> pilots;
  std::set<const RunCost*> seen;
  for (const PlannedRun& run : plan.runs) {
    if (run.trains() && seen.insert(run.cost.get()).second) pilots.push_back(&run);
  }
  const Terminal terminal = Terminal::of_process();
  LiveRegion region(terminal);
  for (std::size_t i = 0; i < pilots.size(); ++i) {
    if (terminal.interactive) region.draw({fmt::format("pilot {} of {}", i + 1, pilots.size())});
    const RunConfig& config = *pilots[i]->config;
    PreparedRun run;
    run.config = &config;
    run.device = parse_device(config.device);
    run.data = kind.dataset(config.dataset);
    run.network = std::make_shared<const Network>(config.network, run.data->shape);
    pilots[i]->cost->times = run_pilot(run, plan.threads);
  }
}

std::vector<ExistingRun> find_existing(const Sweep& sweep, const fs::path& directory, RunKind& kind,
                                       const RunnerOptions& runner) {
  std::error_code error;
  if (runner.fresh || (!fs::exists(directory, error) && !error))
    return std::vector<ExistingRun>(sweep.runs.size());
  return find_existing_runs(directory, sweep.runs, kind.identities(), runner.retry_failed);
}

SweepPlan plan_program(const Sweep& sweep, const fs::path& directory, const PlanOptions& options,
                       std::vector<ExistingRun>& existing) {
  if (!options.is_dry_run)
    refuse_given({{"--pilot", options.pilot},
                  {"--jobs", options.runner.jobs != 1},
                  {"--threads", options.runner.threads > 0}},
                 "is for networks; what a program takes is not known", sweep.file.string());
  CommandKind kind(Json::object(), unavailable_reason);
  kind.load(sweep);
  kind.check(sweep);
  existing = find_existing(sweep, directory, kind, options.runner);
  SweepPlan plan{.sweep = &sweep, .directory = directory, .gpus = kind.gpus(sweep)};
  for (const RunConfig& run : sweep.runs)
    plan.runs.push_back(
        {.config = &run,
         .command = command_words({.config = run, .run_directory = fs::absolute(directory) / run.name})});
  set_fates(plan, existing, options.runner.replace);
  return plan;
}

SweepPlan plan_networks(const Sweep& sweep, const fs::path& directory, const PlanOptions& options,
                        std::vector<ExistingRun>& existing) {
  NetworkKind kind({.load_dataset = load_dataset,
                    .unavailable_reason = unavailable_reason,
                    .parallel_missing_reason = parallel_unavailable_reason,
                    .parse_device = parse_device},
                   {});
  kind.load(sweep);
  existing = find_existing(sweep, directory, kind, options.runner);
  const auto is_kept = [](const ExistingRun& run) { return run.fate == RunFate::kKept; };
  if (!std::ranges::all_of(existing, is_kept)) kind.check_loaded();
  // Data that is gone is no matter if all runs are finished and the sizes are known by its name.
  const auto sizes_of_data = [&kind](const DatasetSpec& spec) {
    const auto known = kind.has_loaded(spec) ? std::nullopt : known_data_sizes(spec);
    return known ? *known : sizes_of(*kind.dataset(spec));
  };
  check_against_data(sweep, sizes_of_data);
  for (const RunConfig& run : sweep.runs) {
    if (!run.init.empty() && !is_kept(existing[run.index]))
      kind.check_weights(run, sizes_of_data(run.dataset).shape);
  }
  const int at_once = runs_at_once(options.runner.jobs, sweep.runs.size()), threads = options.runner.threads;
  SweepPlan plan{.sweep = &sweep,
                 .directory = directory,
                 .jobs = at_once,
                 .threads = threads > 0 ? threads : std::max(1, available_cores() / at_once),
                 .disk_free = free_bytes(directory)};
  plan_runs(plan, sizes_of_data, unavailable_reason);
  set_fates(plan, existing, options.runner.replace);
  if (options.pilot) {
    run_pilots(plan, kind);
    if (!options.runner.fresh) save_prediction(plan);
  }
  return plan;
}

void print(const SweepPlan& plan, TableFormat format) {
  if (format == TableFormat::kJson) {
    write_plan_json(plan, std::cout);
  } else if (format == TableFormat::kText) {
    std::cout << printable(plan_text(plan, stdout_width(), stdout_unicode()));
  } else {
    std::cout << formatted_table(plan_table(plan, format), style_of(format));
  }
  std::cout << std::flush;
}

}  // namespace

int print_plan(const PlanOptions& options) {
  const Sweep sweep = load_sweep(options.sweep, options.runner.fresh);
  const fs::path directory = logdir_of(options.sweep) / sweep.name;
  std::vector<ExistingRun> existing;
  SweepPlan plan = sweep.runs.front().command ? plan_program(sweep, directory, options, existing)
                                              : plan_networks(sweep, directory, options, existing);
  print(plan, options.format);
  if (!options.runner.replace) refuse_runs_in_the_way(directory, sweep.runs, existing);
  return kExitDone;
}

Command plan_command() {
  return {.name = "plan",
          .description =
              "print every run of a sweep file, what an earlier start has left of it, and what it "
              "will take: memory, disk, time; trains nothing",
          .missing_argument = "a sweep file is needed: sweep plan SWEEP.json [key=v1,v2,... ...]",
          .add_to = command_with<PlanOptions>(print_plan, [](CLI::App& app, PlanOptions& options) {
            add_sweep_arguments(app, options.sweep);
            add_logdir_option(app, options.sweep);
            app.add_flag("--fresh", options.runner.fresh, "as if nothing were there yet");
            app.add_flag("--replace", options.runner.replace,
                         "runs that are there with other settings would be trained again");
            add_jobs_options(app, options.runner.jobs, options.runner.threads);
            app.add_flag("--pilot", options.pilot,
                         "train a few batches of each kind of run to predict the time; the sweep then tells "
                         "how wrong that was");
            add_format_option(app, options.format);
          })};
}

}  // namespace sweep

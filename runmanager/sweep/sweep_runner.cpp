#include "runmanager/sweep/sweep_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/json/json_text.h"
#include "runmanager/records/earlier_starts/existing_runs.h"
#include "runmanager/records/earlier_starts/replaced_runs.h"
#include "runmanager/records/earlier_starts/sweep_changes.h"
#include "runmanager/records/judge.h"
#include "runmanager/records/provenance.h"
#include "runmanager/records/run_files.h"
#include "runmanager/sweep/make_run_kind.h"
#include "runmanager/sweep/sweep_json.h"
#include "runmanager/sweep/sweep_runner_steps.h"
#include "runmanager/sweep/sweep_summary.h"

namespace sweep {

SweepRunner::SweepRunner(const Sweep& sweep, const RunnerOptions& options, SweepEnvironment environment)
    : growing_(copy_if_growing(sweep)),
      sweep_(growing_ ? *growing_ : sweep),
      options_(options),
      environment_(std::move(environment)),
      program_(program_provenance(options.command)),
      kind_(make_run_kind(sweep_,
                          {.load_dataset = environment_.load_dataset,
                           .unavailable_reason = environment_.unavailable_reason,
                           .parallel_missing_reason = environment_.parallel_missing_reason,
                           .parse_device = environment_.parse_device},
                          program_)) {
  if (!environment_.clock) environment_.clock = steady_seconds;
  if (!environment_.stop_requested) {
    signals_.emplace();
    environment_.stop_requested = StopSignals::requested;
  }
  if (options_.max_time > 0) {
    const double end = environment_.clock() + options_.max_time;
    environment_.stop_requested = [asked = environment_.stop_requested, clock = environment_.clock, end] {
      const int signal = asked();
      return signal != 0 ? signal : clock() >= end ? kTimeIsUp : 0;
    };
  }
  if (environment_.out == nullptr) environment_.out = &std::cout;
}

SweepOutcome SweepRunner::run() {
  check_options();
  gpus_ = kind_->gpus(sweep_);
  if (const auto problem = gpus_.problem()) throw ConfigError(*problem);
  if (options_.join) return run_joined();
  set_up();
  train_runs();
  return conclude();
}

PlannedSweep SweepRunner::plan() {
  check_options();
  set_up();
  PlannedSweep planned{.directory = directory_->path(), .done = {}};
  for (std::size_t i = 0; i < sweep_.runs.size(); ++i) planned.done.push_back(is_kept(i));
  return planned;
}

void SweepRunner::set_up() {
  SweepDirectory::check(options_.logdir, sweep_.name, options_.fresh);
  // An existing directory is locked before it is read. A new one is made only when the sweep can start.
  if (!options_.fresh && std::filesystem::exists(options_.logdir / sweep_.name)) open_directory();
  kind_->load(sweep_);  // The data is part of what a run is.
  find_existing();
  prepare();
  if (!directory_) open_directory();
  // The trials that earlier starts have added are not known yet, so they would seem to be gone.
  if (growing_)
    earlier_ = runs_of_sweep_file(directory_->path()).value_or(std::vector<std::string>());
  else
    changes_ = changes_since(directory_->path(), sweep_.runs, existing_);
  make_room(directory_->path(), sweep_.runs, existing_);
  write_sweep_file();
}

std::optional<Sweep> SweepRunner::copy_if_growing(const Sweep& sweep) {
  if (!sweep.search || !adds_trials(*sweep.search)) return std::nullopt;
  std::optional<Sweep> copy = sweep;
  copy->runs.reserve(std::max(sweep.runs.size(), total_trials(*sweep.search, sweep.runs.front().epochs)));
  return copy;
}

void SweepRunner::check_options() const {
  if (!options_.fresh) sweep_record_text(options_.logdir / sweep_.name / kSweepFile);  // throws
  check_can_be_joined();
  if (!environment_.worker_command.empty()) return;
  if (kind_->needs_workers())
    throw ConfigError("a command needs worker processes, which ranks of MPI do not have");
  for (const auto& [option, is_given] :
       {std::pair("--jobs", options_.jobs > 1), {"--timeout", options_.timeout > 0}}) {
    if (is_given)
      throw ConfigError(fmt::format("{}: needs worker processes, which ranks of MPI do not have", option));
  }
}

void SweepRunner::open_directory() {
  directory_.emplace(SweepDirectory::open(options_.logdir, sweep_.name, options_.fresh));
  clean_up();
}

void SweepRunner::clean_up() const {
  remove_temporaries(directory_->path());
  adopt_attempts(directory_->path());
}

void SweepRunner::make_records() {
  records_.resize(sweep_.runs.size());
  existing_.resize(sweep_.runs.size());
  for (std::size_t i = 0; i < sweep_.runs.size(); ++i) records_[i] = new_record(sweep_.runs[i]);
}

void SweepRunner::find_existing() {
  make_records();
  if (!directory_) return;
  existing_ = existing_runs(sweep_.runs, options_.retry_failed, Adopted::kAnyName);
  refuse_other_population();
  for (std::size_t i = 0; i < existing_.size(); ++i) {
    if (auto record = known_record(existing_[i], sweep_.runs[i])) records_[i] = *std::move(record);
  }
}

// Copies that other members made would be in the way only once new ones are to be made.
void SweepRunner::refuse_other_population() const {
  if (!sweep_.search || sweep_.search->method != SearchMethod::kPopulation || options_.replace) return;
  const auto is_there = [](const ExistingRun& run) { return run.record.has_value(); };
  const std::filesystem::path file = directory_->path() / kSweepFile;
  if (std::ranges::none_of(existing_, is_there) || !std::filesystem::exists(file)) return;
  const nlohmann::ordered_json recorded = read_json_file(file);
  const auto* const method = find_at(recorded, "search.method");
  if (method == nullptr || *method != "population") return;
  const SearchSpec &now = *sweep_.search, none;
  const auto check = [&](const char* key, auto number, auto by_default) {
    const auto* const before = find_at(recorded, std::string("search.") + key);
    const std::string was = before != nullptr ? before->dump() : std::to_string(by_default);
    if (was == std::to_string(number)) return;
    throw ConfigError(
        fmt::format("{}: the population there has other members: search.{}: {} -> {}\nNothing was changed. "
                    "--fresh starts "
                    "the search anew, in another directory",
                    directory_->path().string(), key, was, number));
  };
  check("trials", now.trials, none.trials);
  check("interval", now.interval, none.interval);
  check("reduction", now.reduction, none.reduction);
}

RunRecord SweepRunner::new_record(const RunConfig& config) {
  RunRecord record;
  record.name = config.name;
  record.params = config.params;
  record.not_swept = config.not_swept;
  record.config = config.resolved;
  return record;
}

std::optional<RunRecord> SweepRunner::known_record(const ExistingRun& existing,
                                                   const RunConfig& config) const {
  const bool is_kept = existing.fate == RunFate::kKept;
  if (!is_kept && !(sweep_.search && existing.fate == RunFate::kContinued)) return std::nullopt;
  RunRecord record = *existing.record;
  record.name = config.name;
  record.params = config.params;
  if (is_kept) return record;
  record.config = config.resolved;  // It may have more epochs now, and a worker trains what it says.
  // It is tried once more: what it had until it failed must not end it as the worst.
  if (record.status == RunStatus::kFailed) record.epochs.clear();
  if (record.status != RunStatus::kPruned) record.status = RunStatus::kInterrupted;
  return record;
}

void SweepRunner::prepare() {
  const auto is_open = [](const ExistingRun& run) { return run.fate != RunFate::kKept; };
  if (std::ranges::none_of(existing_, is_open) && !growing_) return;
  kind_->check(sweep_);
  for (std::size_t i = 0; i < sweep_.runs.size(); ++i) {
    if (is_kept(i)) continue;
    ScheduledRun run = scheduled(sweep_.runs[i]);
    records_[i].device = run.needs.device.name();
    records_[i].provenance = std::move(run.needs.provenance);
    (run.needs.unavailable ? unavailable_ : runs_).push_back(std::move(run));
  }
}

ScheduledRun SweepRunner::scheduled(const RunConfig& config) const {
  return {.run = config.index, .config = &config, .needs = kind_->needs(config)};
}

void SweepRunner::write_sweep_file() {
  write_file_atomically(directory_->path() / kSweepFile, sweep_file_text(sweep_, program_));
}

bool SweepRunner::is_done() const {
  const bool may_grow = growing_ && was_stopped_ &&
                        sweep_.runs.size() < total_trials(*sweep_.search, sweep_.runs.front().epochs);
  return !may_grow &&
         std::ranges::all_of(records_, [](const RunRecord& run) { return has_ended(run.status); });
}

SweepOutcome SweepRunner::conclude() {
  int signal = environment_.stop_requested();
  // It may come while the last files are written.
  if (signal != 0 && exit_code_of({}, signal) == kExitRunAgain && is_done()) signal = 0;
  print_summary({.sweep = sweep_,
                 .directory = directory_->path(),
                 .runs = records_,
                 .cost = cost_,
                 .means = means_,
                 .search = search_end_,
                 .signal = signal},
                options_, environment_);
  const int exit_code = exit_code_of(records_, signal);
  return {.runs = std::move(records_),
          .directory = directory_->path(),
          .exit_code = exit_code,
          .failed_fast = options_.fail_fast && has_failed_run_ && signal == 0};
}

SweepOutcome run_sweep(const Sweep& sweep, const RunnerOptions& options, SweepEnvironment environment) {
  return SweepRunner(sweep, options, std::move(environment)).run();
}

PlannedSweep plan_sweep(const Sweep& sweep, const RunnerOptions& options, SweepEnvironment environment) {
  environment.unavailable_reason = [](const Device&) { return std::nullopt; };
  environment.stop_requested = [] { return 0; };
  return SweepRunner(sweep, options, std::move(environment)).plan();
}

}  // namespace sweep

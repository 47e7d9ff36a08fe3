#include "runmanager/sweep/sweep_book.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "runmanager/records/run_files.h"
#include "runmanager/terminal/table.h"

namespace sweep {
namespace {

// The files of results hold all runs. In a sweep of many short ones, writing them after each would take
// longer than the training; so they are written as often as takes this part of the time.
constexpr double kPartOfTimeForResults = 0.02;

}  // namespace

std::string cost_text(const SweepCost& cost) {
  const double beside = cost.seconds - cost.training_seconds;
  return fmt::format(
      "{} run{} took {}, of which beside training {} per run ({:.2f}%); logs and checkpoints are {:.2f}%",
      cost.runs, cost.runs == 1 ? "" : "s", human_seconds(cost.seconds),
      human_seconds(std::max(0.0, beside) / static_cast<double>(cost.runs)), 100 * beside / cost.seconds,
      100 * cost.logging_seconds / cost.seconds);
}

SweepBook::SweepBook(const SweepBookOptions& options, std::span<const RunConfig> runs,
                     std::vector<RunRecord> records)
    : clock_(options.clock),
      manager_({.directory = options.directory,
                .name = options.name,
                .keys = options.keys,
                .provenance = {},
                .clock = options.clock,
                .layout_run = runs.empty() ? "" : runs.front().name,
                .survives = Survives::kKill}),
      aggregates_(options.directory, runs),
      progress_(options.terminal, options.clock, options.quiet, options.name, runs.size(), options.work),
      disk_(options.directory) {
  manager_.expect(std::move(records));
  save();
  aggregates_.update_all(manager_.records());
}

void SweepBook::begin_run(std::size_t run) {
  begun_[run] = clock_();
  disk_.begin_run(record(run).name);
}

void SweepBook::end_epoch(std::size_t run, const EpochRecord& epoch) {
  RunRecord changed = record(run);
  changed.epochs.push_back(epoch);
  manager_.update(std::move(changed));
}

void SweepBook::end_run(std::size_t run) {
  disk_.end_run(record(run).name);
  aggregates_.update(run, manager_.records());
  progress_.end_run(run + 1, record(run));
  count_cost(run);
}

void SweepBook::count_cost(std::size_t run) {
  const auto begun = begun_.find(run);
  if (begun == begun_.end()) return;
  const double seconds = clock_() - begun->second;
  begun_.erase(begun);
  const RunRecord& ended = record(run);
  const double run_seconds = ended.run_seconds.value_or(0);
  // A resumed run's own time is longer than this start's.
  if (ended.status != RunStatus::kCompleted || run_seconds > seconds) return;
  ++cost_.runs;
  cost_.seconds += seconds;
  cost_.training_seconds += run_seconds - ended.logging_seconds;
  cost_.logging_seconds += ended.logging_seconds;
}

void SweepBook::save() {
  const double begin = clock_();
  manager_.save(kResults);
  const double end = clock_();
  next_save_ = end + (end - begin) / kPartOfTimeForResults;
}

void SweepBook::save_if_due() {
  if (clock_() >= next_save_) save();
}

void SweepBook::finish() {
  save();
  disk_.finish();
}

void SweepBook::save_what_can_be() {
  try {
    save();
  } catch (const IoError&) {
  }
}

}  // namespace sweep

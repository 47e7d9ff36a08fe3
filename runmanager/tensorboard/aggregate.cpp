#include "runmanager/tensorboard/aggregate.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "core/base/error.h"
#include "runmanager/records/judge.h"
#include "runmanager/records/repeats.h"
#include "runmanager/records/run_files.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/tensorboard/run_log.h"
#include "tbwriter/event_files.h"
#include "tbwriter/summary_writer.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;

void remove_run(const fs::path& directory) {
  if (!fs::exists(directory)) return;
  prepare_run_directory(directory);
  std::error_code not_empty;  // Other files in the directory keep it.
  fs::remove(directory, not_empty);
}

bool have(std::span<const EpochSpreads> epochs, const char* key) {
  const Metric* const metric = &metric_named(key);
  return std::ranges::any_of(epochs,
                             [metric](const EpochSpreads& epoch) { return epoch.values.contains(metric); });
}

void write_run(const fs::path& directory, const Params& params, const Params& not_swept,
               const LogOptions& log, std::span<const EpochSpreads> epochs) {
  prepare_run_directory(directory);
  tbwriter::WriterOptions options;
  options.end_session_on_close = false;
  tbwriter::SummaryWriter writer(directory, options);
  const bool session = log.hparams && !params.empty();
  if (session) writer.add_hparams_start(to_hparams(params, not_swept));
  if (log.layout) {
    writer.add_custom_scalars_layout(scalars_layout(have(epochs, "mae"), have(epochs, "validation_loss")));
  }
  for (const EpochSpreads& epoch : epochs) {
    std::map<std::string_view, Spread> of_tags;
    for (const auto& [metric, spread] : epoch.values)
      if (!metric->tag.empty()) of_tags.emplace(metric->tag, spread);
    std::vector<tbwriter::ScalarPoint> points;
    for (const auto& [tag, spread] : of_tags) points.push_back({tag, spread.mean});
    std::deque<std::string> tags;  // A point refers to its tag.
    for (const auto& [tag, spread] : of_tags)
      points.push_back({tags.emplace_back(fmt::format("Std/{}", tag)), spread.deviation});
    writer.add_scalar_batch(points, static_cast<std::int64_t>(epoch.epoch));
  }
  if (session) writer.add_hparams_end(tbwriter::SessionStatus::kSuccess);
  writer.close();
}

}  // namespace

fs::path mean_directory(const fs::path& sweep_directory) { return fs::path(sweep_directory) += ".mean"; }

AggregateRuns::AggregateRuns(const fs::path& directory, std::span<const RunConfig> runs)
    : directory_(mean_directory(directory)) {
  std::vector<Params> params;
  for (const RunConfig& run : runs) params.push_back(run.params);
  for (RepeatGroup& group : repeat_groups(params)) {
    const RunConfig& first = runs[group.runs[0]];
    combinations_.push_back({std::move(group), first.log, first.not_swept});
  }
}

void AggregateRuns::update(std::size_t run, std::span<const RunRecord> records) const {
  for (const Combination& combination : combinations_) {
    if (std::ranges::find(combination.group.runs, run) != combination.group.runs.end())
      write(combination, records);
  }
}

void AggregateRuns::update_all(std::span<const RunRecord> records) const {
  remove_old();
  for (const Combination& combination : combinations_) write(combination, records);
}

std::vector<std::string> AggregateRuns::written() const {
  std::vector<std::string> names;
  for (const Combination& combination : combinations_) {
    if (!tbwriter::list_event_files(directory_ / combination.group.name).empty())
      names.push_back(combination.group.name);
  }
  return names;
}

// Combinations have other names when the sweep has another axis.
void AggregateRuns::remove_old() const {
  std::set<std::string> wanted;
  for (const Combination& combination : combinations_) wanted.insert(combination.group.name);
  for (const fs::directory_entry& entry : directory_entries(directory_)) {
    if (!entry.is_symlink() && entry.is_directory() && !wanted.contains(entry.path().filename().string()))
      remove_run(entry.path());
  }
  std::error_code not_empty;
  fs::remove(directory_, not_empty);
}

void AggregateRuns::write(const Combination& combination, std::span<const RunRecord> records) const {
  const bool all_ended = std::ranges::all_of(combination.group.runs,
                                             [&](std::size_t run) { return is_over(records[run].status); });
  const auto completed = all_ended ? completed_repeats(combination.group, records) : std::nullopt;
  const fs::path directory = directory_ / combination.group.name;
  if (completed) {
    write_run(directory, combination.group.params, combination.not_swept, combination.log,
              spreads_of(*completed));
  } else {
    remove_run(directory);
  }
}

}  // namespace sweep

#include "runmanager/inspect/recorded_progress.h"

#include <algorithm>
#include <utility>

namespace sweep {
namespace {

// The number that the live table could show.
constexpr std::size_t kLatestKept = 32;

LiveRun live_run(const RunRecord& record, std::size_t number) {
  LiveRun run{.number = number, .name = record.name, .params = record.params, .has_begun = true};
  if (const auto epochs = record.config.find("epochs");
      epochs != record.config.end() && epochs->is_number_integer())
    run.epochs = epochs->get<int>();
  run.finished_epochs = static_cast<int>(record.epochs.size());
  if (!record.epochs.empty()) run.last = record.epochs.back();
  return run;
}

}  // namespace

bool has_ended(RunStatus status) {
  return status != RunStatus::kPending && status != RunStatus::kRunning && status != RunStatus::kInterrupted;
}

RecordedProgress::RecordedProgress(std::string name) { live_.name = std::move(name); }

const LiveSweep& RecordedProgress::update(const std::vector<RunRecord>& runs, const Goals& goals) {
  live_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  live_.runs = runs.size();
  live_.work = static_cast<double>(runs.size());
  live_.ended.clear();
  live_.active.clear();
  std::vector<std::size_t> newly_ended;
  ended_.resize(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& run = runs[i];
    const bool ended = has_ended(run.status);
    if (ended) ++live_.ended[run.status];
    if (ended && !ended_[i]) newly_ended.push_back(i);
    ended_[i] = ended;  // One that failed may be trained again.
    if (run.status == RunStatus::kRunning) live_.active[i + 1] = live_run(run, i + 1);
  }
  live_.ended_work = static_cast<double>(std::ranges::count(ended_, true));
  // UTC times of one format sort as texts.
  std::ranges::stable_sort(newly_ended, {}, [&runs](std::size_t i) { return runs[i].ended; });
  live_.ends += newly_ended.size();
  for (const std::size_t i : newly_ended) live_.latest.push_back(summary_of(runs[i]));
  while (live_.latest.size() > kLatestKept) live_.latest.pop_front();
  live_.best.reset();
  if (const auto best = best_run(runs, goals)) live_.best = summary_of(runs[*best]);
  return live_;
}

}  // namespace sweep

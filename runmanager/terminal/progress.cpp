#include "runmanager/terminal/progress.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runmanager/records/judge.h"

namespace sweep {
namespace {

// A phase that is over sooner is not worth a glance, and speeds over less time would flicker.
constexpr double kShortestPhase = 0.3, kShortestSpeed = 1;

// Brings what depends on the time, and what is costlier than counting, into the LiveRun.
void update(LiveRun& run, const auto& meter, double now) {
  if (!run.has_begun) return;
  run.seconds = now - meter.start;
  run.phase = now - meter.phase_since >= kShortestPhase ? meter.phase : "";
  if (meter.totals.samples == 0) return;
  const auto samples = static_cast<double>(meter.totals.samples);
  run.loss = meter.totals.loss / samples;
  if (meter.has_classes) run.accuracy = static_cast<double>(meter.totals.correct) / samples;
}

}  // namespace

Progress::Progress(ProgressOptions options) : options_(std::move(options)), start_(options_.clock()) {
  state_.name = options_.sweep;
  state_.runs = options_.runs;
  state_.work = options_.work;
}

LiveRun& Progress::active_run(std::size_t number) {
  const auto [run, is_new] = state_.active.try_emplace(number, LiveRun{.number = number});
  // A run that had ended goes on: it does not count as finished any more.
  if (is_new) set_end(number, {.work = ended_[number].work});
  return run->second;
}

void Progress::start_run(std::size_t number, const RunRecord& run) {
  LiveRun& live = active_run(number);
  // Another attempt.
  if (live.has_begun) set_end(number, {.work = live.fraction() * live.work()});
  live = {.number = number, .name = run.name, .params = run.params, .phase = "start"};
  show_change(options_.clock());
}

void Progress::report(std::size_t number, const RunEvent& event) {
  LiveRun& run = active_run(number);
  std::visit([&](const auto& of_kind) { take(run, meters_[number], of_kind); }, event);
}

void Progress::take(LiveRun& run, Meter& meter, const RunPlan& plan) {
  run = {.number = run.number,
         .name = plan.name,
         .params = std::move(run.params),
         .has_begun = true,
         .epochs = plan.epochs,
         .trained_epochs = plan.trained_epochs,
         .finished_epochs = plan.trained_epochs,
         .batches = plan.batches,
         .samples = plan.samples};
  set_end(run.number, {});
  const double now = options_.clock();
  meter = {.start = now, .phase = "start", .phase_since = now, .has_classes = plan.has_classes};
  show_begin(run);
  show_change(now);
}

void Progress::take(LiveRun& run, Meter& meter, const TrainedBatches& batches) {
  const double now = options_.clock();
  if (std::exchange(meter.epoch, batches.epoch) != batches.epoch) {
    run.finished_epochs = batches.epoch - 1;
    run.batch = 0;
    meter.phase.clear();
    meter.totals = {};
    meter.trains_since = now;
  }
  if (batches.count == 0) return;
  run.batch += batches.count;
  meter.totals += batches.totals;
  meter.batches += static_cast<double>(batches.count);
  meter.samples += static_cast<double>(batches.totals.samples);
  const double seconds = meter.seconds + (meter.trains_since ? now - *meter.trains_since : 0);
  if (seconds >= kShortestSpeed) {
    run.batches_per_second = meter.batches / seconds;
    run.samples_per_second = meter.samples / seconds;
    meter.batches = meter.samples = meter.seconds = 0;
    if (meter.trains_since) meter.trains_since = now;
  }
  show_change(now);
}

void Progress::take(LiveRun&, Meter& meter, const RunPhase& phase) {
  const double now = options_.clock();
  if (meter.phase.empty()) meter.phase_since = now;
  meter.phase = phase.name;
  if (meter.trains_since) meter.seconds += now - *meter.trains_since;
  meter.trains_since.reset();
  show_change(now);
}

void Progress::take(LiveRun& run, Meter& meter, const EpochRecord& epoch) {
  run.last = epoch;
  if (meter.totals.samples == 0) {  // A program reports whole epochs only.
    run.finished_epochs = std::max(run.finished_epochs, epoch.epoch);
    run.loss = epoch["loss"];
    run.accuracy = epoch["accuracy"];
  }
  show_epoch(run, epoch);
  show_change(options_.clock());
}

void Progress::set_end(std::size_t number, const End& end) {
  const End before = std::exchange(ended_[number], end);
  if (before.status) --state_.ended[*before.status];
  if (end.status) ++state_.ended[*end.status];
  state_.ended_work += end.work - before.work;
}

void Progress::leave_run(std::size_t number, std::optional<RunStatus> status) {
  double work = ended_[number].work;
  // For the time left, a run that ended early counts as all of its work. What a search trains of those that
  // it ends is known.
  if (const auto active = state_.active.find(number); active != state_.active.end()) {
    const LiveRun& live = active->second;
    if (live.has_begun)
      work = status && status != RunStatus::kPruned ? live.work() : live.fraction() * live.work();
    state_.active.erase(active);
    meters_.erase(number);
  }
  set_end(number, {status, work});
}

void Progress::end_run(std::size_t number, const RunRecord& run) {
  leave_run(number, run.status);
  ++state_.ends;
  state_.latest.push_back(summary_of(run));
  if (state_.latest.size() > kLatestKept) state_.latest.pop_front();
  consider(run);
  show_end(number, run);
}

void Progress::pause_run(std::size_t number) {
  leave_run(number, std::nullopt);
  show_change(options_.clock());
}

void Progress::consider(const RunRecord& run) {
  if (run.status != RunStatus::kCompleted) return;
  std::vector<RunRecord> runs;
  if (state_.best && state_.best->name != run.name) runs.push_back(std::move(*state_.best));
  runs.push_back(summary_of(run));
  state_.best.reset();
  if (const auto best = best_run(runs, default_goals(runs, goals_))) state_.best = std::move(runs[*best]);
}

void Progress::keep_runs(std::size_t count) {
  state_.kept += count;
  if (count > 0) show_kept(count);
}

void Progress::know_work(std::size_t number, double work, bool is_earlier) {
  set_end(number, {.work = work});
  if (is_earlier) state_.earlier_work += work;
}

void Progress::pass_time() { show_change(options_.clock()); }

const LiveSweep& Progress::state() {
  const double now = options_.clock();
  state_.seconds = now - start_;
  for (auto& [number, run] : state_.active) update(run, meters_[number], now);
  return state_;
}

}  // namespace sweep

#include "runmanager/terminal/progress.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runmanager/records/judge.h"

namespace sweep {
namespace {

// A phase that is over sooner is not worth a glance.
constexpr double kShortestPhase = 0.3;

}  // namespace

// The speed of training for people to read: batches and samples per second, each over a second or more of the
// time that counts. Times in seconds of one clock.
class Progress::LiveRate {
 public:
  struct Rates {
    double batches = 0, samples = 0;  // per second
  };

  // Time counts from `now` on.
  void resume(double now) { since_ = now; }
  // Time counts no more until resume().
  void pause(double now) {
    if (since_) seconds_ += now - *since_;
    since_.reset();
  }
  // Adds finished batches and their samples.
  void add(double batches, double samples, double now) {
    counted_.batches += batches;
    counted_.samples += samples;
    const double seconds = seconds_ + (since_ ? now - *since_ : 0);
    if (seconds < kShortest) return;
    rates_ = {counted_.batches / seconds, counted_.samples / seconds};
    counted_ = {};
    seconds_ = 0;
    if (since_) since_ = now;
  }
  // The latest rates; none before the first second is over.
  const std::optional<Rates>& latest() const { return rates_; }

 private:
  static constexpr double kShortest = 1;
  std::optional<double> since_;
  std::optional<Rates> rates_;
  double seconds_ = 0;  // since the latest rates, and before since_
  Rates counted_;       // since the latest rates; not yet divided
};

// Keeps the LiveRun of one run. The events of the run come here, and each may redraw everything.
class Progress::ActiveRun {
 public:
  ActiveRun(Progress& progress, LiveRun& run) : progress_(progress), run_(run) {}

  LiveRun& live() const { return run_; }

  void take(const RunPlan& plan) {
    run_ = {.number = run_.number,
            .name = plan.name,
            .params = std::move(run_.params),
            .has_begun = true,
            .epochs = plan.epochs,
            .trained_epochs = plan.trained_epochs,
            .finished_epochs = plan.trained_epochs,
            .batches = plan.batches,
            .samples = plan.samples};
    has_classes_ = plan.has_classes;
    epoch_ = 0;
    start_ = progress_.clock_();
    phase_ = "start";
    phase_since_ = start_;
    rate_ = {};
    totals_ = {};
    progress_.show_begin(run_);
    progress_.show_change(start_);
  }

  void take(const TrainedBatches& batches) {
    const double now = progress_.clock_();
    if (std::exchange(epoch_, batches.epoch) != batches.epoch) {
      run_.finished_epochs = batches.epoch - 1;
      run_.batch = 0;
      phase_.clear();
      totals_ = {};
      rate_.resume(now);
    }
    if (batches.count == 0) return;
    run_.batch += batches.count;
    totals_ += batches.totals;
    rate_.add(static_cast<double>(batches.count), static_cast<double>(batches.totals.samples), now);
    progress_.show_change(now);
  }

  void take(const RunPhase& phase) {
    const double now = progress_.clock_();
    if (phase_.empty()) phase_since_ = now;
    phase_ = phase.name;
    rate_.pause(now);
    progress_.show_change(now);
  }

  void take(const EpochRecord& epoch) {
    run_.last = epoch;
    if (totals_.samples == 0) {  // A program reports whole epochs only.
      run_.finished_epochs = std::max(run_.finished_epochs, epoch.epoch);
      run_.loss = epoch["loss"];
      run_.accuracy = epoch["accuracy"];
    }
    progress_.show_epoch(run_, epoch);
    progress_.show_change(progress_.clock_());
  }

  void take(const auto&) {}  // end_run() tells of the ends.

  // Brings what depends on the time, and what is costlier than counting, into the LiveRun.
  void update(double now) {
    if (!run_.has_begun) return;
    run_.seconds = now - start_;
    run_.phase = now - phase_since_ >= kShortestPhase ? phase_ : "";
    if (totals_.samples > 0) {
      const auto samples = static_cast<double>(totals_.samples);
      run_.loss = totals_.loss / samples;
      if (has_classes_) run_.accuracy = static_cast<double>(totals_.correct) / samples;
    }
    if (rate_.latest()) {
      run_.batches_per_second = rate_.latest()->batches;
      run_.samples_per_second = rate_.latest()->samples;
    }
  }

 private:
  Progress& progress_;
  LiveRun& run_;
  double start_ = 0;
  std::string phase_;  // in work; "" while it trains
  double phase_since_ = 0;
  int epoch_ = 0;  // in work, from 1
  bool has_classes_ = true;
  LiveRate rate_;  // of training
  Totals totals_;  // of the epoch
};

Progress::Progress(std::function<double()> clock, const std::string& sweep, std::size_t runs, double work)
    : clock_(std::move(clock)), start_(clock_()) {
  state_.name = sweep;
  state_.runs = runs;
  state_.work = work;
}

Progress::~Progress() = default;

Progress::ActiveRun& Progress::active_run(std::size_t number) {
  std::unique_ptr<ActiveRun>& run = active_[number];
  if (!run) {
    LiveRun& live = state_.active[number];  // A map: references to its elements stay valid.
    live.number = number;
    run = std::make_unique<ActiveRun>(*this, live);
    // A run that had ended goes on: it does not count as finished any more.
    forget_end(number);
  }
  return *run;
}

void Progress::start_run(std::size_t number, const RunRecord& run) {
  LiveRun& live = active_run(number).live();
  live = {.number = number, .name = run.name, .params = run.params, .phase = "start"};
  show_change(clock_());
}

void Progress::report(std::size_t number, const RunEvent& event) {
  std::visit([&run = active_run(number)](const auto& of_kind) { run.take(of_kind); }, event);
}

// As if the run had not ended.
void Progress::forget_end(std::size_t number) {
  const auto end = ended_.find(number);
  if (end == ended_.end()) return;
  if (end->second.status) --state_.ended[*end->second.status];
  state_.ended_work -= end->second.work;
  ended_.erase(end);
}

void Progress::leave_run(std::size_t number, std::optional<RunStatus> status) {
  double work = 0;
  if (const auto end = ended_.find(number); end != ended_.end()) work = end->second.work;
  forget_end(number);
  // For the time left, a run that ended early counts as all of its work. What a search trains of those that
  // it ends is known.
  if (const auto active = active_.find(number); active != active_.end()) {
    const LiveRun& live = active->second->live();
    work = status && status != RunStatus::kPruned ? live.work() : live.fraction() * live.work();
    active_.erase(active);
    state_.active.erase(number);
  }
  ended_[number] = {status, work};
  if (status) ++state_.ended[*status];
  state_.ended_work += work;
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
  show_change(clock_());
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

void Progress::pass_time() { show_change(clock_()); }

const LiveSweep& Progress::state() {
  const double now = clock_();
  state_.seconds = now - start_;
  for (auto& [number, run] : active_) run->update(now);
  return state_;
}

}  // namespace sweep

#include "runmanager/terminal/live_sweep.h"

#include <algorithm>

#include "runmanager/records/run_metric.h"

namespace sweep {
namespace {

// Before this fraction of the work, or this time, an estimate of the time left would be noise.
constexpr double kMinEstimateFraction = 0.005, kMinEstimateSeconds = 0.5;

// Assumes that the rest goes on at the mean speed so far.
std::optional<double> time_left(double fraction, double seconds) {
  if (fraction >= 1) return 0;
  if (fraction < kMinEstimateFraction || seconds < kMinEstimateSeconds) return std::nullopt;
  return seconds / fraction * (1 - fraction);
}

}  // namespace

double LiveRun::epoch_fraction() const {
  if (has_begun && finished_epochs >= epochs) return 1;
  return batches == 0 ? 0 : std::min(1.0, static_cast<double>(batch) / static_cast<double>(batches));
}

int LiveRun::current_epoch() const {
  return epochs == 0 ? finished_epochs : std::min(finished_epochs + 1, epochs);
}

std::string LiveRun::of_epochs() const { return epochs == 0 ? "" : "/" + std::to_string(epochs); }

double LiveRun::fraction() const {
  if (epochs == 0 || batches == 0) return 0;
  const double done = finished_epochs + static_cast<double>(batch) / static_cast<double>(batches);
  return std::min(1.0, done / epochs);
}

std::optional<double> LiveRun::seconds_left() const {
  if (!has_begun) return std::nullopt;
  // A resumed run has not trained the epochs before its first one, so they must not count for its speed.
  const double first = epochs == 0 ? 0 : static_cast<double>(trained_epochs) / epochs;
  return first < 1 ? time_left((fraction() - first) / (1 - first), seconds) : 0;
}

std::size_t LiveSweep::count(RunStatus status) const {
  const auto found = ended.find(status);
  return found == ended.end() ? 0 : found->second;
}

std::size_t LiveSweep::finished() const {
  std::size_t sum = kept;
  for (const auto& [status, runs_of_it] : ended) sum += runs_of_it;
  return sum;
}

double LiveSweep::fraction() const {
  double done = ended_work;
  for (const auto& [number, run] : active) done += run.fraction() * run.work();
  return work > 0 ? std::clamp(done / work, 0.0, 1.0) : 0;
}

std::optional<double> LiveSweep::seconds_left() const { return time_left(fraction(), seconds); }

std::optional<double> LiveSweep::samples_per_second() const {
  std::optional<double> sum;
  for (const auto& [number, run] : active) {
    if (run.samples_per_second) sum = sum.value_or(0) + *run.samples_per_second;
  }
  return sum;
}

LiveKeys keys_of(const LiveSweep& sweep) {
  LiveKeys keys;
  std::map<std::string, std::string> first;
  sweep.for_each_known([&](const std::string&, const Params& params) {
    for (const auto& [key, value] : params) {
      const std::string text = param_text(value);
      const auto [at, is_new] = first.emplace(key, text);
      if (is_new) {
        keys.all.push_back(key);
      } else if (at->second != text) {
        keys.varying.insert(key);
      }
    }
  });
  if (!keys.varying.empty()) return keys;
  // One run, say. Its name has the keys that vary in the sweep.
  sweep.for_each_known([&](const std::string& name, const Params& params) {
    for (const auto& [key, value] : params) {
      if (name.starts_with(key + "=") || name.find("," + key + "=") != std::string::npos)
        keys.varying.insert(key);
    }
  });
  return keys;
}

RunRecord summary_of(const RunRecord& run) {
  RunRecord summary;
  summary.name = run.name;
  summary.status = run.status;
  summary.params = run.params;
  summary.device = run.device;
  summary.jobs = run.jobs;
  if (const auto result = result_values(run)) {
    summary.best_epoch = run.best_epoch;
    summary.epochs = {*result};
    if (result->epoch != run.epochs.back().epoch) summary.epochs.push_back(run.epochs.back());
  }
  summary.started = run.started;
  summary.ended = run.ended;
  summary.run_seconds = run.run_seconds;
  summary.setup_seconds = run.setup_seconds;
  summary.error = run.error;
  summary.stop_reason = run.stop_reason;
  summary.metrics = run.metrics;
  return summary;
}

}  // namespace sweep

#include "runmanager/terminal/live_sweep.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/json/json_text.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/text/json_output.h"

namespace sweep {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LiveRun, number, name, epochs, trained_epochs, finished_epochs, batch,
                                   batches, samples, phase, seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LiveSweep, runs, kept, ends, work, ended_work, seconds)

namespace {

using Json = nlohmann::ordered_json;

// Before this fraction of the work, or this time, an estimate of the time left would be noise.
constexpr double kMinEstimateFraction = 0.005, kMinEstimateSeconds = 0.5;

// Assumes that the rest goes on at the mean speed so far.
std::optional<double> time_left(double fraction, double seconds) {
  if (fraction >= 1) return 0;
  if (fraction < kMinEstimateFraction || seconds < kMinEstimateSeconds) return std::nullopt;
  return seconds / fraction * (1 - fraction);
}

Json run_json(const LiveRun& run) {
  return {{"number", run.number},
          {"name", run.name},
          {"params", to_json(run.params)},
          {"begun", run.has_begun},
          {"epoch", run.has_begun ? run.current_epoch() : 0},
          {"epochs", run.epochs},
          {"trained_epochs", run.trained_epochs},
          {"finished_epochs", run.finished_epochs},
          {"batch", run.batch},
          {"batches", run.batches},
          {"samples", run.samples},
          {"epoch_fraction", run.epoch_fraction()},
          {"fraction", run.fraction()},
          {"loss", json_number(run.loss)},
          {"accuracy", json_number(run.accuracy)},
          {"last_epoch", run.last ? to_json(*run.last) : Json(nullptr)},
          {"batches_per_second", json_number(run.batches_per_second)},
          {"samples_per_second", json_number(run.samples_per_second)},
          {"phase", run.phase},
          {"seconds", run.seconds},
          {"seconds_left", json_number(run.seconds_left())}};
}

constexpr int kMaxEpochs = 1'000'000'000;

LiveRun run_from_json(const Json& json, std::string_view where) {
  auto run = json.get<LiveRun>();
  run.params = params_from_json(json.at("params"));
  json.at("begun").get_to(run.has_begun);
  run.loss = optional_number(json, "loss");
  run.accuracy = optional_number(json, "accuracy");
  if (!json.at("last_epoch").is_null()) run.last = epoch_record_from_json(json.at("last_epoch"), where);
  run.batches_per_second = optional_number(json, "batches_per_second");
  run.samples_per_second = optional_number(json, "samples_per_second");
  if (run.trained_epochs < 0 || run.finished_epochs < 0 || run.epochs < 0 ||
      std::max(run.finished_epochs, run.epochs) > kMaxEpochs)
    throw DataError(fmt::format("{}: not the progress of a sweep: a run with {} of {} epochs", where,
                                run.finished_epochs, run.epochs));
  return run;
}

LiveSweep sweep_from_json(const Json& json, std::string_view where) {
  auto sweep = json.get<LiveSweep>();
  json.at("sweep").get_to(sweep.name);
  sweep.earlier_work = json.value("earlier_work", 0.0);  // which 0.1.0 does not write
  for (const auto& [status, count] : json.at("ended").items())
    sweep.ended[parse_run_status(status)] = count.get<std::size_t>();
  for (const Json& run : json.at("running")) {
    LiveRun live = run_from_json(run, where);
    sweep.active.emplace(live.number, std::move(live));
  }
  for (const Json& run : json.at("latest")) sweep.latest.push_back(run_record_from_json(run, where));
  if (!json.at("best").is_null()) sweep.best = run_record_from_json(json.at("best"), where);
  return sweep;
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

std::optional<double> LiveSweep::seconds_left() const {
  const double to_do = work - earlier_work;
  return time_left(to_do > 0 ? (fraction() * work - earlier_work) / to_do : fraction(), seconds);
}

std::optional<double> LiveSweep::samples_per_second() const {
  std::optional<double> sum;
  for (const auto& [number, run] : active) {
    if (run.samples_per_second) sum = sum.value_or(0) + *run.samples_per_second;
  }
  return sum;
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

Json to_json(const LiveSweep& sweep) {
  Json ended = Json::object(), running = Json::array(), latest = Json::array();
  for (const auto& [status, count] : sweep.ended) ended[std::string(to_string(status))] = count;
  for (const auto& [number, run] : sweep.active) running.push_back(run_json(run));
  for (const RunRecord& run : sweep.latest) latest.push_back(to_json(run));
  return {{"sweep", sweep.name},
          {"runs", sweep.runs},
          {"finished", sweep.finished()},
          {"kept", sweep.kept},
          {"ended", std::move(ended)},
          {"ends", sweep.ends},
          {"work", sweep.work},
          {"ended_work", sweep.ended_work},
          {"earlier_work", sweep.earlier_work},
          {"fraction", sweep.fraction()},
          {"seconds", sweep.seconds},
          {"seconds_left", json_number(sweep.seconds_left())},
          {"samples_per_second", json_number(sweep.samples_per_second())},
          {"running", std::move(running)},
          {"latest", std::move(latest)},
          {"best", sweep.best ? to_json(*sweep.best) : Json(nullptr)}};
}

LiveSweep live_sweep_from_json(const Json& json, std::string_view where) {
  try {
    return sweep_from_json(json, where);
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}: not the progress of a sweep: {}", where, json_reason(error)));
  }
}

}  // namespace sweep

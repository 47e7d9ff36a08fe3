#include "runmanager/terminal/live_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

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
  LiveRun run;
  json.at("number").get_to(run.number);
  json.at("name").get_to(run.name);
  run.params = params_from_json(json.at("params"));
  json.at("begun").get_to(run.has_begun);
  json.at("epochs").get_to(run.epochs);
  json.at("trained_epochs").get_to(run.trained_epochs);
  json.at("finished_epochs").get_to(run.finished_epochs);
  json.at("batch").get_to(run.batch);
  json.at("batches").get_to(run.batches);
  json.at("samples").get_to(run.samples);
  run.loss = optional_number(json, "loss");
  run.accuracy = optional_number(json, "accuracy");
  if (!json.at("last_epoch").is_null()) run.last = epoch_record_from_json(json.at("last_epoch"), where);
  run.batches_per_second = optional_number(json, "batches_per_second");
  run.samples_per_second = optional_number(json, "samples_per_second");
  json.at("phase").get_to(run.phase);
  json.at("seconds").get_to(run.seconds);
  if (run.trained_epochs < 0 || run.finished_epochs < 0 || run.epochs < 0 ||
      std::max(run.finished_epochs, run.epochs) > kMaxEpochs)
    throw DataError(fmt::format("{}: not the progress of a sweep: a run with {} of {} epochs", where,
                                run.finished_epochs, run.epochs));
  return run;
}

LiveSweep sweep_from_json(const Json& json, std::string_view where) {
  LiveSweep sweep;
  json.at("sweep").get_to(sweep.name);
  json.at("runs").get_to(sweep.runs);
  json.at("kept").get_to(sweep.kept);
  json.at("work").get_to(sweep.work);
  json.at("ended_work").get_to(sweep.ended_work);
  json.at("seconds").get_to(sweep.seconds);
  json.at("ends").get_to(sweep.ends);
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
    throw DataError(fmt::format("{}: not the progress of a sweep: {}", where, error.what()));
  }
}

}  // namespace sweep

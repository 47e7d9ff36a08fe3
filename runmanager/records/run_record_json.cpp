#include "runmanager/records/run_record_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/json/json_text.h"
#include "runmanager/records/epoch_columns.h"
#include "runmanager/text/json_output.h"
#include "tbwriter/crc32c.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

// The library would convert 1e72 as well, which no integer holds.
template <typename Integer>
Integer integer_from_json(const Json& json) {
  if (!json.is_number_integer()) throw DataError("a number that counts is no integer");
  return json.get<Integer>();
}

EpochRecord epoch_from_json(const Json& json) {
  EpochRecord epoch;
  epoch.epoch = integer_from_json<int>(json.at("epoch"));
  const bool is_untrained = epoch.epoch == 0 && json.at("loss").is_null();
  if (!is_untrained) epoch.loss = number_from_json(json.at("loss"));
  json.at("accuracy");  // is there, be it null
  epoch.accuracy = optional_number(json, "accuracy");
  if (!json.at("number_correct").is_null())
    epoch.number_correct = integer_from_json<std::int64_t>(json.at("number_correct"));
  epoch.validation_loss = optional_number(json, "validation_loss");
  epoch.validation_accuracy = optional_number(json, "validation_accuracy");
  if (json.contains("validation_number_correct")) {
    epoch.validation_number_correct = integer_from_json<std::int64_t>(json.at("validation_number_correct"));
  }
  epoch.run_seconds = number_from_json(json.at("run_seconds"));
  if (!is_untrained) {
    epoch.epoch_seconds = number_from_json(json.at("epoch_seconds"));
    epoch.images_per_second = number_from_json(json.at("images_per_second"));
  }
  epoch.data_wait_seconds = optional_number(json, "data_wait_seconds").value_or(0);
  epoch.device_seconds = optional_number(json, "device_seconds");
  epoch.communication_seconds = optional_number(json, "communication_seconds");
  for (std::size_t i = 0; i < kMeasures.size(); ++i) {
    epoch.measures[i] = optional_number(json, std::string(kMeasures[i].key).c_str());
    epoch.validation_measures[i] = optional_number(json, validation_key(kMeasures[i]).c_str());
  }
  return epoch;
}

std::string optional_text(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at == object.end() || at->is_null() ? "" : at->get<std::string>();
}

const Json& object_or_null(const Json& object, const char* key) {
  const Json& value = object.at(key);
  if (!value.is_object() && !value.is_null()) throw DataError(fmt::format("its \"{}\" is no object", key));
  return value;
}

// Calls `convert`. Turns its errors into a DataError: `where` is not a `type`.
template <typename Convert>
auto converted(std::string_view where, std::string_view type, const Convert& convert) {
  try {
    return convert();
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}: not a {}: {}", where, type, error.what()));
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: not a {}: {}", where, type, error.what()));
  }
}

ParamValue param_from_json(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  return json.get<std::string>();
}

enum class RecordParts { kAll, kBrief };

// Whether "metrics" of run.json has this value of the last epoch.
bool is_of_an_epoch(std::string_view name) {
  if (name.starts_with("validation_")) name.remove_prefix(std::string_view("validation_").size());
  return name == "loss" || name == "accuracy" ||
         std::ranges::any_of(kMeasures, [name](const Measure& measure) { return measure.key == name; });
}

// "metrics" of run.json: the values of the last epoch, then those of the whole run.
Json metrics_json(const RunRecord& run) {
  Json metrics = Json::object();
  if (!run.epochs.empty()) {
    const EpochRecord& last = run.epochs.back();
    metrics["loss"] = json_number(last.loss);
    if (last.accuracy) metrics["accuracy"] = json_number(*last.accuracy);
    if (last.validation_loss) metrics["validation_loss"] = json_number(*last.validation_loss);
    if (last.validation_accuracy) metrics["validation_accuracy"] = json_number(*last.validation_accuracy);
    add_measures(metrics, last);
  }
  for (const auto& [name, value] : run.metrics) metrics[name] = json_number(value);
  return metrics;
}

Json epochs_json(const RunRecord& run) {
  Json epochs = Json::array();
  for_each_epoch(run, [&epochs](const EpochRecord& epoch) { epochs.push_back(to_json(epoch)); });
  return epochs;
}

Json stopped_json(const RunRecord& run) {
  return {{"epoch", run.epochs.empty() ? 0 : run.epochs.back().epoch}, {"reason", run.stop_reason}};
}

Json record_json(const RunRecord& run, RecordParts parts) {
  const bool all = parts == RecordParts::kAll;
  Json json = {{"name", run.name}, {"status", to_string(run.status)}, {"params", to_json(run.params)}};
  if (all) json["config"] = run.config;
  json["metrics"] = metrics_json(run);
  if (all) json["epochs"] = epochs_json(run);
  json["seconds"] = {{"run", json_number(run.run_seconds)},
                     {"setup", json_number(run.setup_seconds)},
                     {"logging", json_number(run.logging_seconds)}};
  json["started"] = run.started.empty() ? Json(nullptr) : Json(run.started);
  json["ended"] = run.ended.empty() ? Json(nullptr) : Json(run.ended);
  json["error"] = run.error ? Json(*run.error) : Json(nullptr);
  if (!run.stop_reason.empty()) json["stopped"] = stopped_json(run);
  if (run.best_epoch) json["best_epoch"] = *run.best_epoch;
  json["device"] = run.device;
  json["placement"] = run.placement.empty() ? Json(nullptr) : Json(run.placement);
  json["jobs"] = run.jobs;
  if (all && !run.event_files.empty()) json["events"] = run.event_files;
  if (all) json["provenance"] = run.provenance;
  return json;
}

// How json_text() ends, and what run_record_text() has there instead.
constexpr std::string_view kRecordEnd = "\n}\n", kChecksumMember = ",\n  \"crc32c\": \"",
                           kChecksumEnd = "\"\n}\n";

// Whether a last member with digits as its value is the checksum of the text without it. A damaged name does
// not turn the member into any other, because no other has such a value.
bool has_right_checksum(std::string_view text, const Json& json) {
  const auto last = std::prev(json.end());
  const bool is_number = last->is_string() && last->get_ref<const std::string&>().find_first_not_of(
                                                  "0123456789") == std::string::npos;
  if (!is_number && last.key() != "crc32c") return true;
  const std::size_t at = text.rfind(kChecksumMember);
  if (at == std::string_view::npos || !text.ends_with(kChecksumEnd)) return false;
  const std::size_t begin = at + kChecksumMember.size();
  if (text.size() < begin + kChecksumEnd.size()) return false;
  const std::string_view written = text.substr(begin, text.size() - kChecksumEnd.size() - begin);
  return written == std::to_string(tbwriter::crc32c(kRecordEnd, tbwriter::crc32c(text.substr(0, at))));
}

}  // namespace

Json to_json(const ParamValue& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}

Json to_json(const Params& params) {
  Json object = Json::object();
  for (const auto& [key, value] : params) object[key] = to_json(value);
  return object;
}

Params params_from_json(const Json& json) {
  Params params;
  for (const auto& [key, value] : json.items()) params.emplace_back(key, param_from_json(value));
  return params;
}

Json to_json(const EpochRecord& epoch) {
  Json json = epoch_json(epoch);
  if (epoch.validation_number_correct) json["validation_number_correct"] = *epoch.validation_number_correct;
  if (epoch.epoch > 0) json["data_wait_seconds"] = json_number(epoch.data_wait_seconds);
  if (epoch.device_seconds) json["device_seconds"] = json_number(*epoch.device_seconds);
  return json;
}

EpochRecord epoch_record_from_json(const Json& json, std::string_view where) {
  return converted(where, "record of an epoch", [&] { return epoch_from_json(json); });
}

Json to_json(const RunRecord& run) { return record_json(run, RecordParts::kAll); }

Json brief_json(const RunRecord& run) { return record_json(run, RecordParts::kBrief); }

Json ending_json(const RunRecord& run) {
  Json json = {{"status", to_string(run.status)}, {"metrics", metrics_json(run)}};
  if (run.error) json["error"] = *run.error;
  if (!run.stop_reason.empty()) json["stopped"] = stopped_json(run);
  if (run.run_seconds) json["run_seconds"] = json_number(*run.run_seconds);
  return json;
}

RunRecord run_record_from_json(const Json& json, std::string_view where) {
  return converted(where, "run record", [&] {
    RunRecord run;
    run.name = json.at("name").get<std::string>();
    run.status = parse_run_status(json.at("status").get_ref<const std::string&>());
    run.params = params_from_json(json.at("params"));
    const auto epochs = json.at("epochs").get<std::vector<Json>>();
    add_epochs(epochs, run);
    // metrics_json() has added the last epoch's values; only the others are the run's own.
    for (const auto& [name, value] : json.at("metrics").items()) {
      if (!is_of_an_epoch(name)) run.metrics[name] = number_from_json(value);
    }
    run.run_seconds = optional_number(json.at("seconds"), "run");
    run.setup_seconds = optional_number(json.at("seconds"), "setup");
    run.placement = optional_text(json, "placement");
    run.logging_seconds = optional_number(json.at("seconds"), "logging").value_or(0);
    if (!json.at("error").is_null()) run.error = json.at("error").get<std::string>();
    if (json.contains("stopped")) run.stop_reason = json["stopped"].at("reason").get<std::string>();
    if (json.contains("best_epoch")) run.best_epoch = integer_from_json<int>(json["best_epoch"]);
    run.device = json.at("device").get<std::string>();
    if (json.contains("jobs")) run.jobs = integer_from_json<int>(json["jobs"]);
    run.started = optional_text(json, "started");
    run.ended = optional_text(json, "ended");
    run.config = object_or_null(json, "config");
    if (json.contains("events")) {
      for (const auto& [name, bytes] : json.at("events").items())
        run.event_files[name] = integer_from_json<std::uint64_t>(bytes);
    }
    run.provenance = object_or_null(json, "provenance");
    return run;
  });
}

std::string run_record_text(const RunRecord& run) {
  std::string text = json_text(to_json(run));
  const std::uint32_t crc = tbwriter::crc32c(text);
  text.resize(text.size() - kRecordEnd.size());
  return text + fmt::format("{}{}{}", kChecksumMember, crc, kChecksumEnd);
}

bool add_epochs(std::span<const Json> epochs, RunRecord& run) {
  // Their epoch 0 was trained, so it has a loss, which the network before training has not.
  const bool from_zero =
      !epochs.empty() && epochs.front().at("epoch") == 0 && !epochs.front().at("loss").is_null();
  for (const Json& json : epochs) {
    EpochRecord epoch = epoch_from_json(json);
    if (from_zero) ++epoch.epoch;
    add_epoch(run, epoch);
  }
  return from_zero;
}

RunRecord parse_run_record(std::string_view text, std::string_view where) {
  const Json json = parse_json_text(text, fmt::format("{}: not a run record: it", where));
  if (json.is_object() && !json.empty() && !has_right_checksum(text, json))
    throw DataError(fmt::format("{}: is damaged: its checksum is not that of its content", where));
  return run_record_from_json(json, where);
}

RunRecord read_run_record(const std::filesystem::path& path) {
  return parse_run_record(read_file(path), path.string());
}

}  // namespace sweep

#include "runmanager/records/run_record_json.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/json/json_text.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/text/json_output.h"
#include "tbwriter/record.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

// The library would convert 1e72 as well, which no integer holds.
template <typename Integer>
Integer integer_from_json(const Json& json) {
  if (!json.is_number_integer()) throw DataError("a number that counts is no integer");
  return json.get<Integer>();
}

// Throws unless it is an object: items() would take a number for an object of one member.
const Json::object_t& members(const Json& json) { return json.get_ref<const Json::object_t&>(); }

// Whether every record of an epoch has the key, be it null.
bool is_required(const Metric& metric) {
  return metric.column > 0 && metric.column <= kLastCommonColumn && metric.part != MetricPart::kTest &&
         metric.part != MetricPart::kValidation;
}

EpochRecord epoch_from_json(const Json& json) {
  EpochRecord epoch(integer_from_json<int>(json.at("epoch")));
  for (const Metric* metric : epoch_metrics()) {
    if (is_required(*metric)) json.at(std::string(metric->key));
  }
  for (const auto& [key, value] : json.items()) {
    if (key == "epoch" || value.is_null()) continue;
    const Metric* const known = find_metric(key);
    const std::optional<double> number = known != nullptr ? number_from_json(value) : number_in_json(value);
    if (known != nullptr && known->unit == MetricUnit::kCount && value.is_number())
      integer_from_json<std::int64_t>(value);  // throws unless it is one
    if (number) epoch.set(key, number);
  }
  return epoch;
}

std::string optional_text(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at == object.end() || at->is_null() ? "" : at->get<std::string>();
}

// Moved out of `object`.
Json object_or_null(Json& object, const char* key) {
  Json& value = object.at(key);
  if (!value.is_object() && !value.is_null()) throw DataError(fmt::format("its \"{}\" is no object", key));
  return std::move(value);
}

// Calls `convert`. Turns its errors into a DataError: `where` is not a `type`.
template <typename Convert>
auto converted(std::string_view where, std::string_view type, const Convert& convert) {
  try {
    return convert();
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}: not a {}: {}", where, type, json_reason(error)));
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

// "metrics" of run.json: how good the run is after its last epoch, then the metrics of the whole run.
Json metrics_json(const RunRecord& run) {
  Json metrics = Json::object();
  if (const auto latest = latest_values(run.epochs)) {
    for (const Metric* metric : epoch_metrics()) {
      const std::optional<double> value = (*latest)[*metric];
      if (value && is_quality(*metric)) metrics[std::string(metric->key)] = json_number(*value);
    }
    for (const auto& [metric, value] : latest->values) {
      if (metric->column == 0 && is_quality(*metric)) metrics[std::string(metric->key)] = json_number(value);
    }
  }
  for (const auto& [name, value] : run.metrics) metrics[name] = json_number(value);
  return metrics;
}

Json stopped_json(const RunRecord& run) {
  return {{"epoch", run.epochs.empty() ? 0 : run.epochs.back().epoch}, {"reason", run.stop_reason}};
}

Json record_json(const RunRecord& run, bool all) {
  Json json = {{"name", run.name}, {"status", to_string(run.status)}, {"params", to_json(run.params)}};
  if (all && !run.not_swept.empty()) json["not_swept"] = to_json(run.not_swept);
  if (all) json["config"] = run.config;
  json["metrics"] = metrics_json(run);
  if (all) {
    Json& epochs = json["epochs"] = Json::array();
    for_each_epoch(run, [&epochs](const EpochRecord& epoch) { epochs.push_back(to_json(epoch)); });
  }
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
  if (!run.kernels.empty()) json["kernels"] = run.kernels;
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
  for (const auto& [key, value] : members(json)) params.emplace_back(key, param_from_json(value));
  return params;
}

Json metric_json(const Metric& metric, const std::optional<double>& value) {
  const bool is_count = value && std::isfinite(*value) && metric.unit == MetricUnit::kCount;
  return is_count ? Json(static_cast<std::int64_t>(*value)) : json_number(value);
}

Json to_json(const EpochRecord& epoch) {
  Json json = {{"epoch", epoch.epoch}};
  for (const Metric* metric : epoch_metrics()) {
    const std::optional<double> value = epoch[*metric];
    const bool is_common = metric->column <= kLastCommonColumn && metric->part != MetricPart::kTest;
    if (value || is_common) json[std::string(metric->key)] = metric_json(*metric, value);
  }
  for (const auto& [metric, value] : epoch.values) {
    if (metric->column == 0) json[std::string(metric->key)] = metric_json(*metric, value);
  }
  return json;
}

EpochRecord epoch_record_from_json(const Json& json, std::string_view where) {
  return converted(where, "record of an epoch", [&] { return epoch_from_json(json); });
}

Json to_json(const RunRecord& run) { return record_json(run, /*all=*/true); }

Json brief_json(const RunRecord& run) { return record_json(run, /*all=*/false); }

Json ending_json(const RunRecord& run) {
  Json json = {{"status", to_string(run.status)}, {"metrics", metrics_json(run)}};
  if (run.error) json["error"] = *run.error;
  if (!run.stop_reason.empty()) json["stopped"] = stopped_json(run);
  if (run.run_seconds) json["run_seconds"] = json_number(*run.run_seconds);
  return json;
}

RunRecord run_record_from_json(Json json, std::string_view where) {
  return converted(where, "run record", [&] {
    RunRecord run;
    run.name = json.at("name").get<std::string>();
    run.status = parse_run_status(json.at("status").get_ref<const std::string&>());
    run.params = params_from_json(json.at("params"));
    if (json.contains("not_swept")) run.not_swept = params_from_json(json["not_swept"]);
    for (const auto& [name, value] : members(json.at("metrics"))) run.metrics[name] = number_from_json(value);
    const auto epochs = json.at("epochs").get<std::vector<Json>>();
    add_epochs(epochs, run);
    const Json& seconds = json.at("seconds");
    members(seconds);  // throws unless it is an object
    run.run_seconds = optional_number(seconds, "run");
    run.setup_seconds = optional_number(seconds, "setup");
    run.placement = optional_text(json, "placement");
    run.kernels = optional_text(json, "kernels");
    run.logging_seconds = optional_number(seconds, "logging").value_or(0);
    if (!json.at("error").is_null()) run.error = json.at("error").get<std::string>();
    if (json.contains("stopped")) run.stop_reason = json["stopped"].at("reason").get<std::string>();
    if (json.contains("best_epoch")) run.best_epoch = integer_from_json<int>(json["best_epoch"]);
    run.device = json.at("device").get<std::string>();
    if (json.contains("jobs")) run.jobs = integer_from_json<int>(json["jobs"]);
    run.started = optional_text(json, "started");
    run.ended = optional_text(json, "ended");
    run.config = object_or_null(json, "config");
    lineage_of(run.config);  // throws if it is damaged
    if (json.contains("events")) {
      for (const auto& [name, bytes] : members(json["events"]))
        run.event_files[name] = integer_from_json<std::uint64_t>(bytes);
    }
    run.provenance = object_or_null(json, "provenance");
    if (run.provenance.is_null()) run.provenance = Json::object();
    run.provenance.value("directory", "");  // throws if it is no text
    return run;
  });
}

std::string run_record_text(const RunRecord& run) {
  std::string text = json_text(to_json(run));
  const std::uint32_t crc = tbwriter::crc32c(text);
  text.resize(text.size() - kRecordEnd.size());
  return text + fmt::format("{}{}{}", kChecksumMember, crc, kChecksumEnd);
}

void add_epochs(std::span<const Json> epochs, RunRecord& run) {
  for (const Json& json : epochs) add_epoch(run, epoch_from_json(json));
  if (const auto latest = latest_values(run.epochs)) {
    // metrics_json() has added these values; the others are the run's own.
    std::erase_if(run.metrics, [&latest](const auto& metric) {
      const std::optional<double> value = (*latest)[metric.first];
      return value && (*value == metric.second || (std::isnan(*value) && std::isnan(metric.second)));
    });
  }
}

RunRecord parse_run_record(std::string_view text, std::string_view where) {
  Json json = parse_json_text(text, fmt::format("{}: not a run record: it", where));
  if (json.is_object() && !json.empty() && !has_right_checksum(text, json))
    throw DataError(fmt::format("{}: is damaged: its checksum is not that of its content", where));
  return run_record_from_json(std::move(json), where);
}

Json to_json(const RunPosition& position) {
  Json json = {{"events", {{"file", position.events_file}, {"bytes", position.events_bytes}}},
               {"batches", position.batches}};
  if (position.earlier_files) json["events"]["earlier"] = *position.earlier_files;
  return json;
}

RunPosition run_position_from_json(const Json& json) {
  const Json& events = json.at("events");
  RunPosition position{events.at("file").get<std::string>(), events.at("bytes").get<std::uint64_t>(),
                       json.at("batches").get<std::int64_t>()};
  if (events.contains("earlier")) position.earlier_files.emplace(events["earlier"]);
  return position;
}

RunRecord read_run_record(const std::filesystem::path& path) {
  return parse_run_record(read_file(path), path.string());
}

std::optional<RunRecord> whole_record(RunRecord (*read)(const std::filesystem::path&),
                                      const std::filesystem::path& path) {
  try {
    return read(path);
  } catch (const ReadError&) {
    throw;
  } catch (const DataError&) {
    return std::nullopt;
  }
}

}  // namespace sweep

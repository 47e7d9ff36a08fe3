#include "runmanager/records/recorded_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "core/base/error.h"
#include "core/json/json_text.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/sweepfile/run_reader.h"
#include "runmanager/sweepfile/settings/settings.h"

namespace sweep {

using Json = nlohmann::ordered_json;

RunConfig recorded_config(const RunRecord& record) {
  try {
    Json settings = record.config;
    // The settings that are no keys of the sweep file, which has "repeats".
    const auto repeat = settings.at("repeat").get<std::uint32_t>();
    settings.erase("repeat");
    const Json lineage = settings.value(kLineageKey, Json());
    settings.erase(kLineageKey);
    Problems problems;
    // The record names the device; whether it is here was checked when the run was prepared.
    const char* data = std::getenv("SWEEP_DATA");
    const ReadContext context{.data_directory = data != nullptr ? data : "",
                              .cuda_device_count = std::numeric_limits<int>::max()};
    const JsonDocument tree = document_of(settings, fmt::format("configuration of {}", record.name));
    RunConfig config = read_run_config(tree, context, problems);
    problems.throw_if_any();
    config.repeat = repeat;
    config.name = record.name;
    config.params = record.params;
    config.not_swept = record.not_swept;
    config.resolved["repeat"] = repeat;
    if (config.command) config.resolved["params"] = settings.value("params", Json::object());
    if (!lineage.is_null()) config.resolved[kLineageKey] = lineage;
    return config;
  } catch (const nlohmann::json::exception& error) {
    throw DataError(
        fmt::format("{}: its configuration is not complete: {}", record.name, json_reason(error)));
  } catch (const ConfigError& error) {
    throw DataError(error.what());
  }
}

std::optional<Device> known_device(std::string_view name) try {
  return parse_device(name);
} catch (const ConfigError&) {
  return std::nullopt;
}

void resolve_paths(RunConfig& config, const RunRecord& record) {
  const std::filesystem::path directory = record.provenance.value("directory", "");
  if (!config.dataset.path.empty()) config.dataset.path = directory / config.dataset.path;
  if (!config.init.empty()) config.init = directory / config.init;
}

bool continues(const RunConfig& config) {
  const auto lineage = config.resolved.find(kLineageKey);
  return lineage != nullptr && !lineage->empty();
}

Json to_json(const Lineage& lineage) {
  Json list = Json::array();
  for (const Ancestor& ancestor : lineage)
    list.push_back({{"run", ancestor.run}, {"epoch", ancestor.until}, {"params", to_json(ancestor.params)}});
  return list;
}

bool is_member(const Json& config) {
  if (!config.is_object() || !config.contains(kLineageKey)) return false;
  const Json& lineage = config[kLineageKey];
  return lineage.is_array() && std::ranges::all_of(lineage, [](const Json& ancestor) {
           return ancestor.contains("run") && ancestor.contains("epoch") && ancestor.contains("params");
         });
}

Lineage lineage_of(const Json& config) {
  Lineage lineage;
  if (!is_member(config)) return lineage;
  for (const Json& ancestor : config.at(kLineageKey)) {
    lineage.push_back(
        {.run = ancestor.at("run"),
         .until = static_cast<int>(ancestor.at("epoch").get_ref<const Json::number_integer_t&>()),
         .params = params_from_json(ancestor.at("params"))});
  }
  return lineage;
}

const Params& params_at(const Lineage& lineage, const Params& params, int epoch) {
  const auto found =
      std::ranges::find_if(lineage, [epoch](const Ancestor& ancestor) { return epoch <= ancestor.until; });
  return found == lineage.end() ? params : found->params;
}

double own_seconds(const RunRecord& run) {
  const Lineage lineage = lineage_of(run.config);
  double until = 0, earlier = 0;
  for (const EpochRecord& epoch : run.epochs) {
    until = epoch["run_seconds"].value_or(until);
    if (!lineage.empty() && epoch.epoch <= lineage.back().until) earlier = until;
  }
  return run.run_seconds.value_or(until) - earlier;
}

}  // namespace sweep

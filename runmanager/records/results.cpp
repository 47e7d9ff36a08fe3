#include "runmanager/records/results.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/base/enum_names.h"
#include "core/base/error.h"
#include "runmanager/records/recorded_config.h"
#include "runmanager/records/repeats.h"
#include "runmanager/records/run_metric.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/text/json_output.h"
#include "runmanager/text/table_text.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

const EnumNames<RunStatus>& status_names() {
  static const EnumNames<RunStatus> names(
      "status", {"pending", "running", "completed", "failed", "skipped", "interrupted", "pruned"});
  return names;
}

}  // namespace

std::string_view to_string(RunStatus status) { return status_names().of(status); }

RunStatus parse_run_status(std::string_view text) {
  if (const auto status = status_names().find(text)) return *status;
  throw DataError("\"" + std::string(text) + "\" is no status of a run");
}

EpochRecord::EpochRecord(int number,
                         std::initializer_list<std::pair<std::string_view, std::optional<double>>> named)
    : epoch(number) {
  for (const auto& [key, value] : named) set(key, value);
}

std::optional<double> EpochRecord::operator[](const Metric& metric) const {
  for (const auto& [known, value] : values) {
    if (known == &metric) return value;
  }
  return std::nullopt;
}

std::optional<double> EpochRecord::operator[](std::string_view key) const {
  return (*this)[metric_named(key)];
}

void EpochRecord::set(const Metric& metric, std::optional<double> value) {
  std::erase_if(values, [&metric](const auto& entry) { return entry.first == &metric; });
  if (value) values.emplace_back(&metric, *value);
}

std::vector<std::string> param_keys(const std::vector<RunRecord>& runs) {
  std::vector<std::string> keys;
  for (const RunRecord& run : runs) {
    for (const auto& [key, value] : run.params) {
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
  }
  return keys;
}

std::optional<EpochRecord> latest_values(std::span<const EpochRecord> epochs) {
  if (epochs.empty()) return std::nullopt;
  EpochRecord latest = epochs.back();
  for (std::size_t i = epochs.size() - 1; i-- > 0;) {
    for (std::size_t at = 0; at < epochs[i].values.size(); ++at) {
      const auto& [metric, value] = epochs[i].values[at];
      // Epochs mostly have the same metrics in the same order.
      const bool is_known = at < latest.values.size() && latest.values[at].first == metric;
      if (!is_known && !latest[*metric]) latest.set(*metric, value);
    }
  }
  return latest;
}

std::int64_t step_of(const EpochRecord& epoch) {
  return static_cast<std::int64_t>(epoch["step"].value_or(epoch.epoch));
}

EpochRecord numbered(std::int64_t step, EpochRecord values, std::size_t number) {
  values.epoch = static_cast<int>(number);
  values.set("step", step == values.epoch ? std::nullopt : std::optional(static_cast<double>(step)));
  return values;
}

std::vector<EpochRecord> every_second(const std::vector<EpochRecord>& epochs) {
  std::vector<EpochRecord> kept;
  for (std::size_t i = 0; i < epochs.size(); i += 2)
    kept.push_back(numbered(step_of(epochs[i]), epochs[i], kept.size() + 1));
  return kept;
}

std::vector<EpochRecord> all_epochs(const RunRecord& run) {
  std::vector<EpochRecord> epochs;
  for_each_epoch(run, [&epochs](const EpochRecord& epoch) { epochs.push_back(epoch); });
  return epochs;
}

void add_epoch(RunRecord& run, EpochRecord epoch) {
  if (epoch.epoch == 0)
    run.untrained = std::move(epoch);
  else
    run.epochs.push_back(std::move(epoch));
}

namespace {

// What was measured of the whole run, not of its epochs.
std::optional<double> value_of_run(const Metric& metric, const RunRecord& run) {
  const auto found = run.metrics.find(std::string(metric.key));
  const bool is_of_run = metric.part == MetricPart::kTest && found != run.metrics.end();
  return is_of_run ? std::optional(found->second) : std::nullopt;
}

}  // namespace

std::optional<double> value_at(const Metric& metric, const RunRecord& run, const EpochRecord& epoch) {
  const bool is_last = !run.epochs.empty() && run.epochs.back().epoch == epoch.epoch;
  const std::optional<double> value = epoch[metric];
  return value || !is_last ? value : value_of_run(metric, run);
}

std::string csv_cell(const Metric& metric, const std::optional<double>& value) {
  const bool is_count = value && std::isfinite(*value) && metric.unit == MetricUnit::kCount;
  return is_count ? std::to_string(static_cast<std::int64_t>(*value)) : csv_number(value);
}

bool any_shared(const std::vector<RunRecord>& runs) {
  return std::any_of(runs.begin(), runs.end(), [](const RunRecord& run) { return run.jobs > 1; });
}

namespace {

using Columns = std::vector<const Metric*>;

bool has_value(const RunRecord& run, const Metric& metric) {
  bool has = false;
  for_each_epoch(run, [&](const EpochRecord& epoch) { has |= value_at(metric, run, epoch).has_value(); });
  return has;
}

// Those of every table, and the others that any run has. People's own come last, by name.
Columns columns_of(const std::vector<RunRecord>& runs) {
  Columns columns;
  for (const Metric* metric : epoch_metrics()) {
    const auto has = [metric](const RunRecord& run) { return has_value(run, *metric); };
    if (metric->column <= kLastCommonColumn ||
        (metric->column <= kLastColumn && std::ranges::any_of(runs, has)))
      columns.push_back(metric);
  }
  std::set<const Metric*> seen;
  std::map<std::string_view, const Metric*> own;
  const auto add_own = [&](const EpochRecord& epoch) {
    for (const auto& [metric, value] : epoch.values) {
      if (seen.insert(metric).second && find_metric(metric->key) == nullptr) own.emplace(metric->key, metric);
    }
  };
  for (const RunRecord& run : runs) for_each_epoch(run, add_own);
  for (const auto& [key, metric] : own) columns.push_back(metric);
  return columns;
}

Json epoch_json(const RunRecord& run, const EpochRecord& epoch) {
  Json json = {{"epoch", epoch.epoch}};
  for (const Metric* metric : epoch_metrics()) {
    const std::optional<double> value = value_at(*metric, run, epoch);
    if (metric->column <= kLastCommonColumn || (metric->column <= kLastColumn && value))
      json[std::string(metric->key)] = metric_json(*metric, value);
  }
  std::map<std::string_view, Json> own;
  for (const auto& [metric, value] : epoch.values) {
    if (find_metric(metric->key) == nullptr) own.emplace(metric->key, metric_json(*metric, value));
  }
  for (auto& [key, value] : own) json.emplace(key, std::move(value));
  return json;
}

using Row = std::vector<std::string>;

// The rows or members that repeats have for each epoch.
constexpr std::pair<std::string_view, double Spread::*> kSpreadParts[] = {
    {kMeanStatus, &Spread::mean}, {kDeviationStatus, &Spread::deviation}};

std::optional<double> spread_at(const EpochSpreads& epoch, double Spread::*part, const Metric& metric) {
  const auto spread = epoch.values.find(&metric);
  return spread == epoch.values.end() ? std::nullopt : std::optional(spread->second.*part);
}

Json repeats_json(const CompletedRepeats& repeats, const Columns& columns) {
  Json json = {{"name", repeats.name},
               {"params", to_json(repeats.params)},
               {"runs", repeats.runs.size()},
               {std::string(kMeanStatus), Json::array()},
               {std::string(kDeviationStatus), Json::array()}};
  for (const EpochSpreads& epoch : spreads_of(repeats)) {
    for (const auto& [status, part] : kSpreadParts) {
      Json& member = json[std::string(status)].emplace_back(Json{{"epoch", epoch.epoch}});
      for (const Metric* metric : columns)
        member[std::string(metric->key)] = json_number(spread_at(epoch, part, *metric));
    }
  }
  return json;
}

}  // namespace

std::string results_csv(const std::vector<RunRecord>& runs, const std::vector<std::string>& keys) {
  Row header = {"run", "status", "epoch"};
  Columns columns = columns_of(runs);
  const bool shared = any_shared(runs);
  // A metric of people's own whose name is that of a fixed column is in results.json only.
  std::erase_if(columns, [&](const Metric* metric) {
    return (shared && metric->key == "jobs") || std::ranges::find(header, metric->key) != header.end();
  });
  for (const Metric* metric : columns) header.emplace_back(metric->key);
  std::vector<std::string> others = header;
  if (shared) others.emplace_back("jobs");
  for (const std::string& key : keys) header.push_back(param_title(key, others));
  if (shared) header.emplace_back("jobs");
  std::string csv = csv_row(header);
  // `cells`: run, status and epoch.
  const auto add_row = [&](Row cells, const Params& params, const std::string& jobs, const auto& cell_of) {
    for (const Metric* metric : columns) cells.push_back(cell_of(*metric));
    for (const std::string& key : keys) cells.push_back(param_text(params, key));
    if (shared) cells.push_back(jobs);
    csv += csv_row(cells);
  };
  for (const RunRecord& run : runs) {
    const Lineage lineage = lineage_of(run.config);
    const std::string status(to_string(run.status)), jobs = std::to_string(run.jobs);
    for_each_epoch(run, [&](const EpochRecord& epoch) {
      add_row({run.name, status, std::to_string(epoch.epoch)}, params_at(lineage, run.params, epoch.epoch),
              jobs, [&](const Metric& metric) { return csv_cell(metric, value_at(metric, run, epoch)); });
    });
    if (run.epochs.empty() && !run.untrained) {
      add_row({run.name, status, ""}, run.params, jobs, [&run](const Metric& metric) {
        return metric.key == "run_seconds" ? csv_cell(metric, run.run_seconds) : "";
      });
    }
  }
  for (const CompletedRepeats& repeats : completed_repeats(runs)) {
    for (const EpochSpreads& epoch : spreads_of(repeats)) {
      for (const auto& [status, part] : kSpreadParts) {
        add_row(
            {repeats.name, std::string(status), std::to_string(epoch.epoch)}, repeats.params, "",
            [&, part = part](const Metric& metric) { return csv_number(spread_at(epoch, part, metric)); });
      }
    }
  }
  return csv;
}

Json results_json(const std::vector<RunRecord>& runs, std::string_view sweep) {
  Json list = Json::array();
  for (const RunRecord& run : runs) {
    Json epochs = Json::array();
    for_each_epoch(run, [&](const EpochRecord& epoch) { epochs.push_back(epoch_json(run, epoch)); });
    list.push_back({{"name", run.name},
                    {"status", to_string(run.status)},
                    {"params", to_json(run.params)},
                    {"epochs", std::move(epochs)},
                    {"run_seconds", json_number(run.run_seconds)},
                    {"error", run.error ? Json(*run.error) : Json(nullptr)}});
    if (run.setup_seconds) list.back()["setup_seconds"] = json_number(*run.setup_seconds);
    if (run.jobs > 1) list.back()["jobs"] = run.jobs;
    if (is_member(run.config)) list.back()[kLineageKey] = run.config[kLineageKey];
  }
  Json json = {{"sweep", sweep}, {"runs", std::move(list)}};
  const std::vector<CompletedRepeats> repeated = completed_repeats(runs);
  if (repeated.empty()) return json;
  const Columns columns = columns_of(runs);
  for (const CompletedRepeats& repeats : repeated) json["repeats"].push_back(repeats_json(repeats, columns));
  return json;
}

void save_results(const std::filesystem::path& base, const std::vector<RunRecord>& runs,
                  std::string_view sweep, std::vector<std::string> keys, Survives survives) {
  for (const std::string& key : param_keys(runs)) {
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  }
  std::filesystem::path csv = base, json = base;
  write_file_atomically(csv += ".csv", results_csv(runs, keys), survives);
  write_file_atomically(json += ".json", json_text(results_json(runs, sweep)), survives);
}

}  // namespace sweep

#include "runmanager/records/results.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error.h"
#include "runmanager/config/run_name.h"
#include "runmanager/records/epoch_columns.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/text/csv.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 6> kStatusNames = {"pending", "running", "completed",
                                                          "failed",  "skipped", "interrupted"};

const ParamValue* find_param(const Params& params, std::string_view key) {
  for (const auto& [name, value] : params) {
    if (name == key) return &value;
  }
  return nullptr;
}

}  // namespace

std::string_view to_string(RunStatus status) { return kStatusNames.at(static_cast<std::size_t>(status)); }

RunStatus parse_run_status(std::string_view text) {
  for (std::size_t i = 0; i < kStatusNames.size(); ++i) {
    if (kStatusNames[i] == text) return static_cast<RunStatus>(i);
  }
  throw DataError("\"" + std::string(text) + "\" is no status of a run");
}

std::vector<EpochRecord> all_epochs(const RunRecord& run) {
  std::vector<EpochRecord> epochs;
  for_each_epoch(run, [&epochs](const EpochRecord& epoch) { epochs.push_back(epoch); });
  return epochs;
}

void add_epoch(RunRecord& run, EpochRecord epoch) {
  if (epoch.epoch == 0)
    run.untrained = epoch;
  else
    run.epochs.push_back(epoch);
}

bool any_shared(const std::vector<RunRecord>& runs) {
  return std::any_of(runs.begin(), runs.end(), [](const RunRecord& run) { return run.jobs > 1; });
}

namespace {

bool has_value(const RunRecord& run, const EpochColumn& column) {
  const auto has = [&column](const EpochRecord& epoch) {
    return !std::holds_alternative<std::monostate>(column.get(epoch));
  };
  return (run.untrained && has(*run.untrained)) || std::ranges::any_of(run.epochs, has);
}

// Those of every table, and those of the measures that any run has.
std::vector<EpochColumn> columns_of(const std::vector<RunRecord>& runs) {
  std::vector<EpochColumn> columns(epoch_columns().begin(), epoch_columns().end());
  for (const EpochColumn& column : measure_columns()) {
    if (std::ranges::any_of(runs, [&column](const RunRecord& run) { return has_value(run, column); }))
      columns.push_back(column);
  }
  return columns;
}

}  // namespace

std::string results_csv(const std::vector<RunRecord>& runs, const std::vector<std::string>& keys) {
  const std::vector<EpochColumn> columns = columns_of(runs);
  std::vector<std::string> header = {"run", "status"};
  for (const EpochColumn& column : columns) header.push_back(column.name);
  header.insert(header.end(), keys.begin(), keys.end());
  const bool shared = any_shared(runs);
  if (shared) header.emplace_back("jobs");
  std::string csv = csv_row(header);
  for (const RunRecord& run : runs) {
    std::vector<std::string> params;
    for (const std::string& key : keys) {
      const ParamValue* value = find_param(run.params, key);
      params.push_back(value != nullptr ? param_text(*value) : "");
    }
    if (shared) params.push_back(std::to_string(run.jobs));
    const auto add_row = [&](const auto& cell_of) {
      std::vector<std::string> cells = {run.name, std::string(to_string(run.status))};
      for (const EpochColumn& column : columns) cells.push_back(cell_of(column));
      cells.insert(cells.end(), params.begin(), params.end());
      csv += csv_row(cells);
    };
    for_each_epoch(run, [&add_row](const EpochRecord& epoch) {
      add_row([&epoch](const EpochColumn& column) { return csv_cell(column.get(epoch)); });
    });
    if (run.epochs.empty() && !run.untrained) {
      add_row([&run](const EpochColumn& column) {
        return column.name == "run_seconds" ? csv_number(run.run_seconds) : "";
      });
    }
  }
  return csv;
}

Json results_json(const std::vector<RunRecord>& runs, std::string_view sweep) {
  Json list = Json::array();
  for (const RunRecord& run : runs) {
    Json epochs = Json::array();
    for_each_epoch(run, [&epochs](const EpochRecord& epoch) { epochs.push_back(epoch_json(epoch)); });
    list.push_back({{"name", run.name},
                    {"status", to_string(run.status)},
                    {"params", to_json(run.params)},
                    {"epochs", std::move(epochs)},
                    {"run_seconds", json_number(run.run_seconds)},
                    {"error", run.error ? Json(*run.error) : Json(nullptr)}});
    if (run.setup_seconds) list.back()["setup_seconds"] = json_number(*run.setup_seconds);
    if (run.jobs > 1) list.back()["jobs"] = run.jobs;
  }
  return {{"sweep", sweep}, {"runs", std::move(list)}};
}

}  // namespace sweep

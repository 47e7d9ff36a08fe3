// The values of an epoch that results.csv, results.json and run.json have, in one table.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "runmanager/records/results.h"

namespace sweep {

/// A count, a number, or nothing where it was not measured.
using EpochValue = std::variant<std::monostate, std::int64_t, double>;

/// One value of an epoch: a column of results.csv, and a member of the epoch's object in the JSON files.
struct EpochColumn {
  std::string name;
  /// Empty for a metric of the whole run, RunRecord::metrics[name], which stands at its last epoch.
  std::function<EpochValue(const EpochRecord&)> get{};
};

/// The value of the column at `epoch`, one of the run's.
EpochValue value_at(const EpochColumn& column, const RunRecord& run, const EpochRecord& epoch);

/// The columns that every table has, in its order.
std::span<const EpochColumn> epoch_columns();
/// Those behind them that only a table has of which some run has a value, in its order:
/// "communication_seconds", and of the measures "mae", "validation_mae" and "test_mae" and so on.
std::span<const EpochColumn> occasional_columns();

/// The name of a measure's validation value: "validation_mae".
std::string validation_key(const Measure& measure);

/// The cell of results.csv; "" for nothing.
std::string csv_cell(const EpochValue& value);
/// Null for nothing; see json_number().
nlohmann::ordered_json to_json(const EpochValue& value);
/// The inverse. Throws DataError if `json` is no such value.
EpochValue epoch_value_from_json(const nlohmann::ordered_json& json);

/// Adds the measures that the epoch has, without those of the whole run.
void add_measures(nlohmann::ordered_json& json, const EpochRecord& epoch);
/// The object of an epoch: every column but those of the whole run, and the occasional ones that it has.
nlohmann::ordered_json epoch_json(const EpochRecord& epoch);
/// The object of an epoch of `run` in results.json: every column, and the occasional ones that it has.
nlohmann::ordered_json epoch_json(const RunRecord& run, const EpochRecord& epoch);

}  // namespace sweep

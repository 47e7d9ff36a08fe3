#include "runmanager/records/results.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error.h"
#include "runmanager/records/epoch_columns.h"
#include "runmanager/records/repeats.h"
#include "runmanager/records/run_record_json.h"
#include "runmanager/text/csv.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 7> kStatusNames = {"pending", "running",     "completed", "failed",
                                                          "skipped", "interrupted", "pruned"};

}  // namespace

std::string_view to_string(RunStatus status) { return kStatusNames.at(static_cast<std::size_t>(status)); }

RunStatus parse_run_status(std::string_view text) {
  for (std::size_t i = 0; i < kStatusNames.size(); ++i) {
    if (kStatusNames[i] == text) return static_cast<RunStatus>(i);
  }
  throw DataError("\"" + std::string(text) + "\" is no status of a run");
}

std::optional<double> metric_of(const RunRecord& run, const std::string& name) {
  const auto found = run.metrics.find(name);
  return found != run.metrics.end() ? std::optional(found->second) : std::nullopt;
}

double mean_epoch_seconds(const RunRecord& run) {
  double sum = 0;
  for (const EpochRecord& epoch : run.epochs) sum += epoch.epoch_seconds;
  return sum / static_cast<double>(run.epochs.size());
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
  const auto has = [&](const EpochRecord& epoch) {
    return !std::holds_alternative<std::monostate>(value_at(column, run, epoch));
  };
  return (run.untrained && has(*run.untrained)) || std::ranges::any_of(run.epochs, has);
}

// Those of every table, and the occasional ones that any run has.
std::vector<EpochColumn> columns_of(const std::vector<RunRecord>& runs) {
  std::vector<EpochColumn> columns(epoch_columns().begin(), epoch_columns().end());
  for (const EpochColumn& column : occasional_columns()) {
    if (std::ranges::any_of(runs, [&column](const RunRecord& run) { return has_value(run, column); }))
      columns.push_back(column);
  }
  return columns;
}

using Row = std::vector<std::string>;

Row params_row(const Params& params, const std::vector<std::string>& keys) {
  Row cells;
  for (const std::string& key : keys) cells.push_back(param_text(params, key));
  return cells;
}

// A combination of which two runs or more are completed.
struct Combination {
  RepeatGroup group;
  CompletedRepeats completed;
};

std::vector<Combination> repeated_combinations(const std::vector<RunRecord>& runs) {
  std::vector<Params> params;
  params.reserve(runs.size());
  for (const RunRecord& run : runs) params.push_back(run.params);
  std::vector<Combination> found;
  for (RepeatGroup& group : repeat_groups(params)) {
    if (auto completed = completed_repeats(group, runs))
      found.push_back({std::move(group), *std::move(completed)});
  }
  return found;
}

// The values of a column at epoch `number` in all repeats; none if one has no value. The metrics of whole
// runs belong to the last epoch that all have.
std::optional<Spread> column_spread(const EpochColumn& column, const CompletedRepeats& repeats,
                                    std::size_t number) {
  std::vector<double> values;
  for (const RunRecord* run : repeats.runs) {
    const bool of_run = !column.get && number == repeats.epochs;
    const EpochRecord& epoch = number == 0 ? *run->untrained
                               : of_run    ? run->epochs.back()
                                           : run->epochs[number - 1];
    const EpochValue value = column.get || of_run ? value_at(column, *run, epoch) : EpochValue();
    if (const auto* real = std::get_if<double>(&value)) values.push_back(*real);
    if (const auto* count = std::get_if<std::int64_t>(&value)) values.push_back(static_cast<double>(*count));
  }
  return values.size() == repeats.runs.size() ? std::optional(spread_of(values)) : std::nullopt;
}

// Calls visit(status, pick, number) for the mean and the deviation of each epoch that all repeats have.
template <typename Visit>
void for_each_spread(const CompletedRepeats& repeats, const Visit& visit) {
  for (std::size_t number = repeats.has_untrained ? 0 : 1; number <= repeats.epochs; ++number) {
    visit(kMeanStatus, &Spread::mean, number);
    visit(kDeviationStatus, &Spread::deviation, number);
  }
}

std::string repeats_csv(const Combination& repeats, const std::vector<EpochColumn>& columns,
                        const Row& params) {
  std::string csv;
  for_each_spread(repeats.completed, [&](std::string_view status, double Spread::*part, std::size_t number) {
    Row cells = {repeats.group.name, std::string(status)};
    for (const EpochColumn& column : columns) {
      const auto spread = column_spread(column, repeats.completed, number);
      cells.push_back(column.name == "epoch" ? std::to_string(number)
                      : spread               ? csv_number((*spread).*part)
                                             : "");
    }
    cells.insert(cells.end(), params.begin(), params.end());
    csv += csv_row(cells);
  });
  return csv;
}

Json repeats_json(const Combination& repeats, const std::vector<EpochColumn>& columns) {
  Json json = {{"name", repeats.group.name},
               {"params", to_json(repeats.group.params)},
               {"runs", repeats.completed.runs.size()},
               {std::string(kMeanStatus), Json::array()},
               {std::string(kDeviationStatus), Json::array()}};
  for_each_spread(repeats.completed, [&](std::string_view status, double Spread::*part, std::size_t number) {
    Json epoch = {{"epoch", number}};
    for (const EpochColumn& column : columns) {
      if (column.name == "epoch") continue;
      const auto spread = column_spread(column, repeats.completed, number);
      epoch[column.name] = spread ? json_number((*spread).*part) : Json();
    }
    json[std::string(status)].push_back(std::move(epoch));
  });
  return json;
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
    Row params = params_row(run.params, keys);
    if (shared) params.push_back(std::to_string(run.jobs));
    const auto add_row = [&](const auto& cell_of) {
      std::vector<std::string> cells = {run.name, std::string(to_string(run.status))};
      for (const EpochColumn& column : columns) cells.push_back(cell_of(column));
      cells.insert(cells.end(), params.begin(), params.end());
      csv += csv_row(cells);
    };
    for_each_epoch(run, [&](const EpochRecord& epoch) {
      add_row([&](const EpochColumn& column) { return csv_cell(value_at(column, run, epoch)); });
    });
    if (run.epochs.empty() && !run.untrained) {
      add_row([&run](const EpochColumn& column) {
        return column.name == "run_seconds" ? csv_number(run.run_seconds) : "";
      });
    }
  }
  for (const Combination& repeats : repeated_combinations(runs)) {
    Row params = params_row(repeats.group.params, keys);
    if (shared) params.emplace_back();
    csv += repeats_csv(repeats, columns, params);
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
  }
  Json json = {{"sweep", sweep}, {"runs", std::move(list)}};
  const std::vector<Combination> repeated = repeated_combinations(runs);
  if (repeated.empty()) return json;
  const std::vector<EpochColumn> columns = columns_of(runs);
  for (const Combination& repeats : repeated) json["repeats"].push_back(repeats_json(repeats, columns));
  return json;
}

}  // namespace sweep

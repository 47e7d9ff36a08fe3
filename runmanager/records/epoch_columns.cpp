#include "runmanager/records/epoch_columns.h"

#include <vector>

#include "core/base/error.h"
#include "runmanager/text/csv.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
EpochValue value_of(const std::optional<T>& value) {
  return value ? EpochValue(*value) : EpochValue();
}

// A value of training, which epoch 0 does not have.
EpochValue trained(const EpochRecord& epoch, double value) {
  return epoch.epoch == 0 ? EpochValue() : EpochValue(value);
}

std::span<const EpochColumn> measure_columns() {
  static const std::vector<EpochColumn> columns = [] {
    std::vector<EpochColumn> list;
    for (std::size_t i = 0; i < kMeasures.size(); ++i) {
      list.push_back(
          {std::string(kMeasures[i].key), [i](const EpochRecord& e) { return value_of(e.measures[i]); }});
      list.push_back({validation_key(kMeasures[i]),
                      [i](const EpochRecord& e) { return value_of(e.validation_measures[i]); }});
      list.push_back({"test_" + std::string(kMeasures[i].key)});
    }
    return list;
  }();
  return columns;
}

void add_values(Json& json, const EpochRecord& epoch, std::span<const EpochColumn> columns) {
  for (const EpochColumn& column : columns) {
    if (!column.get) continue;
    const EpochValue value = column.get(epoch);
    if (!std::holds_alternative<std::monostate>(value)) json[column.name] = to_json(value);
  }
}

}  // namespace

std::string validation_key(const Measure& measure) { return "validation_" + std::string(measure.key); }

std::span<const EpochColumn> epoch_columns() {
  static const std::vector<EpochColumn> columns = {
      {"epoch", [](const EpochRecord& e) { return EpochValue(std::int64_t{e.epoch}); }},
      {"loss", [](const EpochRecord& e) { return trained(e, e.loss); }},
      {"accuracy", [](const EpochRecord& e) { return value_of(e.accuracy); }},
      {"number_correct", [](const EpochRecord& e) { return value_of(e.number_correct); }},
      {"validation_loss", [](const EpochRecord& e) { return value_of(e.validation_loss); }},
      {"validation_accuracy", [](const EpochRecord& e) { return value_of(e.validation_accuracy); }},
      {"test_loss"},
      {"test_accuracy"},
      {"epoch_seconds", [](const EpochRecord& e) { return trained(e, e.epoch_seconds); }},
      {"run_seconds", [](const EpochRecord& e) { return EpochValue(e.run_seconds); }},
      {"images_per_second", [](const EpochRecord& e) { return trained(e, e.images_per_second); }}};
  return columns;
}

std::span<const EpochColumn> occasional_columns() {
  static const std::vector<EpochColumn> columns = [] {
    std::vector<EpochColumn> list = {
        {"communication_seconds", [](const EpochRecord& e) { return value_of(e.communication_seconds); }}};
    list.insert(list.end(), measure_columns().begin(), measure_columns().end());
    return list;
  }();
  return columns;
}

std::string csv_cell(const EpochValue& value) {
  if (const auto* count = std::get_if<std::int64_t>(&value)) return std::to_string(*count);
  if (const auto* number = std::get_if<double>(&value)) return csv_number(*number);
  return "";
}

Json to_json(const EpochValue& value) {
  if (const auto* count = std::get_if<std::int64_t>(&value)) return *count;
  if (const auto* number = std::get_if<double>(&value)) return json_number(*number);
  return nullptr;
}

EpochValue epoch_value_from_json(const Json& json) {
  if (json.is_null()) return {};
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (!json.is_number() && !json.is_string()) throw DataError("\"" + json.dump() + "\" is no number");
  return number_from_json(json);
}

EpochValue value_at(const EpochColumn& column, const RunRecord& run, const EpochRecord& epoch) {
  if (column.get) return column.get(epoch);
  const auto metric = run.metrics.find(column.name);
  const bool is_last = !run.epochs.empty() && run.epochs.back().epoch == epoch.epoch;
  return is_last && metric != run.metrics.end() ? EpochValue(metric->second) : EpochValue();
}

void add_measures(Json& json, const EpochRecord& epoch) { add_values(json, epoch, measure_columns()); }

Json epoch_json(const EpochRecord& epoch) {
  Json json = Json::object();
  for (const EpochColumn& column : epoch_columns()) {
    if (column.get) json[column.name] = to_json(column.get(epoch));
  }
  add_values(json, epoch, occasional_columns());
  return json;
}

Json epoch_json(const RunRecord& run, const EpochRecord& epoch) {
  Json json = Json::object();
  for (const EpochColumn& column : epoch_columns()) json[column.name] = to_json(value_at(column, run, epoch));
  for (const EpochColumn& column : occasional_columns()) {
    const EpochValue value = value_at(column, run, epoch);
    if (!std::holds_alternative<std::monostate>(value)) json[column.name] = to_json(value);
  }
  return json;
}

}  // namespace sweep

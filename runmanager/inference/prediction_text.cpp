#include "runmanager/inference/prediction_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "runmanager/tensorboard/predictions.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownClasses = 3;

std::span<const float> row_of(const std::vector<float>& values, std::size_t sample, std::size_t columns) {
  return std::span(values).subspan(sample * columns, columns);
}

std::string value_text(PredictionKind kind, float value, bool is_csv) {
  // The digits of a float, not of the double that it becomes: 0.1, not 0.10000000149011612.
  if (is_csv) return fmt::format("{}", value);
  if (kind == PredictionKind::kScores) return fmt::format("{:.4f}", value);
  if (kind == PredictionKind::kNumbers) return fmt::format("{:.6g}", value);
  return fmt::format("{:.2f}%", 100 * value);
}

const char* value_name(PredictionKind kind) {
  return kind == PredictionKind::kScores ? "score" : "probability";
}

// The places of the largest values, the largest first.
std::vector<std::size_t> largest_places(std::span<const float> values, std::size_t count) {
  std::vector<std::size_t> places(values.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::ranges::stable_sort(places, std::ranges::greater(), [&](std::size_t i) { return values[i]; });
  places.resize(std::min(places.size(), count));
  return places;
}

// The right numbers are next to those that are predicted, in CSV before all of them.
TextTable number_table(const Predictions& predictions, const Predictor& predictor, bool is_csv) {
  const std::vector<float>&predicted = predictions.values, &right = predictions.targets;
  const std::vector<std::string>& names = predictor.names();
  std::vector<std::pair<const std::vector<float>*, std::size_t>> columns;
  for (std::size_t c = 0; is_csv && !right.empty() && c < names.size(); ++c) columns.emplace_back(&right, c);
  for (std::size_t c = 0; c < names.size(); ++c) {
    columns.emplace_back(&predicted, c);
    if (!is_csv && !right.empty()) columns.emplace_back(&right, c);
  }
  TextTable table({"sample"});
  for (const auto& [values, c] : columns) table.add_column(names[c] + (values == &right ? " (right)" : ""));
  for (std::size_t i = 0; i < predictions.samples.size(); ++i) {
    std::vector<std::string> row = {predictions.samples[i]};
    for (const auto& [values, c] : columns)
      row.push_back(value_text(predictor.kind(), (*values)[i * names.size() + c], is_csv));
    table.rows.push_back(std::move(row));
  }
  return table;
}

TextTable class_table(const Predictions& predictions, const Predictor& predictor, bool is_csv) {
  TextTable table({"sample"});
  const bool has_labels = !predictions.labels.empty();
  const std::vector<std::string>& names = predictor.names();
  if (has_labels) table.add_column("label", false);
  table.add_column("class", false);
  table.add_column(value_name(predictor.kind()));
  const std::size_t shown = std::min(names.size(), kShownClasses);
  const char* const letter = predictor.kind() == PredictionKind::kScores ? "score" : "P";
  for (std::size_t c = 0; is_csv && c < names.size(); ++c)
    table.add_column(fmt::format("{}({})", letter, names[c]));
  for (std::size_t k = 1; !is_csv && k < shown; ++k) table.add_column(k == 1 ? "second" : "third");
  for (std::size_t i = 0; i < predictions.samples.size(); ++i) {
    const auto values = row_of(predictions.values, i, names.size());
    const auto text = [&](std::size_t c) { return value_text(predictor.kind(), values[c], is_csv); };
    const std::vector<std::size_t> places = largest_places(values, shown);
    std::vector<std::string> row = {predictions.samples[i]};
    if (has_labels) row.push_back(predictions.labels[i]);
    row.insert(row.end(), {names[places[0]], text(places[0])});
    for (std::size_t c = 0; is_csv && c < names.size(); ++c) row.push_back(text(c));
    for (std::size_t k = 1; !is_csv && k < shown; ++k)
      row.push_back(names[places[k]] + " " + text(places[k]));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

TextTable predictions_table(const Predictions& predictions, const Predictor& predictor, TableFormat format) {
  const bool is_csv = format == TableFormat::kCsv;
  return predictor.kind() == PredictionKind::kNumbers ? number_table(predictions, predictor, is_csv)
                                                      : class_table(predictions, predictor, is_csv);
}

Json predictions_json(const Predictions& predictions, const Predictor& predictor) {
  Json list = Json::array();
  const std::size_t width = predictor.names().size();
  for (std::size_t i = 0; i < predictions.samples.size(); ++i) {
    Json entry = {{"sample", predictions.samples[i]}};
    const auto values = row_of(predictions.values, i, width);
    const auto object = [&](std::span<const float> row) {
      Json named = Json::object();
      for (std::size_t c = 0; c < width; ++c)
        named[predictor.names()[c]] = json_number(static_cast<double>(row[c]));
      return named;
    };
    if (predictor.kind() == PredictionKind::kNumbers) {
      if (!predictions.targets.empty()) entry["targets"] = object(row_of(predictions.targets, i, width));
      entry["values"] = object(values);
    } else {
      if (!predictions.labels.empty()) entry["label"] = predictions.labels[i];
      const std::size_t best = largest(values);
      const bool is_score = predictor.kind() == PredictionKind::kScores;
      entry["class"] = predictor.names()[best];
      entry[value_name(predictor.kind())] = json_number(static_cast<double>(values[best]));
      entry[is_score ? "scores" : "probabilities"] = object(values);
    }
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace sweep

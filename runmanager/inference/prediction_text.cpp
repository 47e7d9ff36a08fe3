#include "runmanager/inference/prediction_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "runmanager/tensorboard/predictions.h"
#include "runmanager/text/csv.h"
#include "runmanager/text/json_output.h"

namespace sweep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownClasses = 3;

std::span<const float> row_of(const std::vector<float>& values, std::size_t sample, std::size_t columns) {
  return std::span(values).subspan(sample * columns, columns);
}

std::string value_text(PredictionKind kind, float value) {
  if (kind == PredictionKind::kScores) return fmt::format("{:.4f}", value);
  if (kind == PredictionKind::kNumbers) return fmt::format("{:.6g}", value);
  return fmt::format("{:.2f}%", 100 * value);
}

// The places of the largest values, the largest first.
std::vector<std::size_t> largest_places(std::span<const float> values, std::size_t count) {
  std::vector<std::size_t> places(values.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::ranges::stable_sort(places, std::ranges::greater(), [&](std::size_t i) { return values[i]; });
  places.resize(std::min(places.size(), count));
  return places;
}

TextTable number_table(const Predictions& predictions, const Predictor& predictor) {
  TextTable table({"sample"});
  for (const std::string& name : predictor.names()) {
    table.add_column(name);
    if (!predictions.targets.empty()) table.add_column(name + " (right)");
  }
  const std::size_t width = predictor.names().size();
  for (std::size_t i = 0; i < predictions.samples.size(); ++i) {
    std::vector<std::string> row = {predictions.samples[i]};
    for (std::size_t c = 0; c < width; ++c) {
      row.push_back(value_text(predictor.kind(), predictions.values[i * width + c]));
      if (!predictions.targets.empty())
        row.push_back(value_text(predictor.kind(), predictions.targets[i * width + c]));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

TextTable class_table(const Predictions& predictions, const Predictor& predictor) {
  TextTable table({"sample"});
  const bool has_labels = !predictions.labels.empty();
  if (has_labels) table.add_column("label", false);
  table.add_column("class", false);
  table.add_column(value_name(predictor.kind()));
  const std::size_t width = predictor.names().size(), shown = std::min(width, kShownClasses);
  for (std::size_t k = 1; k < shown; ++k) table.add_column(k == 1 ? "second" : "third");
  for (std::size_t i = 0; i < predictions.samples.size(); ++i) {
    const auto values = row_of(predictions.values, i, width);
    const std::vector<std::size_t> places = largest_places(values, shown);
    std::vector<std::string> row = {predictions.samples[i]};
    if (has_labels) row.push_back(predictions.labels[i]);
    row.push_back(predictor.names()[places[0]]);
    row.push_back(value_text(predictor.kind(), values[places[0]]));
    for (std::size_t k = 1; k < shown; ++k)
      row.push_back(predictor.names()[places[k]] + " " + value_text(predictor.kind(), values[places[k]]));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

TextTable predictions_table(const Predictions& predictions, const Predictor& predictor) {
  return predictor.kind() == PredictionKind::kNumbers ? number_table(predictions, predictor)
                                                      : class_table(predictions, predictor);
}

std::string csv_header(const Predictions& predictions, const Predictor& predictor) {
  std::vector<std::string> header = {"sample"};
  if (predictor.kind() == PredictionKind::kNumbers) {
    if (!predictions.targets.empty()) {
      for (const std::string& name : predictor.names()) header.push_back(name + " (right)");
    }
    header.insert(header.end(), predictor.names().begin(), predictor.names().end());
  } else {
    if (!predictions.labels.empty()) header.emplace_back("label");
    header.insert(header.end(), {"class", value_name(predictor.kind())});
    const char* letter = predictor.kind() == PredictionKind::kScores ? "score" : "P";
    for (const std::string& name : predictor.names()) header.push_back(fmt::format("{}({})", letter, name));
  }
  return csv_row(header);
}

std::string csv_rows(const Predictions& predictions, const Predictor& predictor) {
  std::string text;
  const std::size_t width = predictor.names().size();
  // The digits of a float, not of the double that it becomes: 0.1, not 0.10000000149011612.
  const auto number = [](float value) { return fmt::format("{}", value); };
  for (std::size_t i = 0; i < predictions.samples.size(); ++i) {
    std::vector<std::string> row = {predictions.samples[i]};
    const auto values = row_of(predictions.values, i, width);
    if (predictor.kind() != PredictionKind::kNumbers) {
      if (!predictions.labels.empty()) row.push_back(predictions.labels[i]);
      const std::size_t best = largest(values);
      row.push_back(predictor.names()[best]);
      row.push_back(number(values[best]));
    } else if (!predictions.targets.empty()) {
      for (const float target : row_of(predictions.targets, i, width)) row.push_back(number(target));
    }
    for (const float value : values) row.push_back(number(value));
    text += csv_row(row);
  }
  return text;
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

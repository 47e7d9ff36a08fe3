// Predictions as a table, as CSV and as JSON.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "runmanager/inference/predictor.h"
#include "runmanager/terminal/table.h"

namespace sweep {

/// The predictions of some samples by a Predictor, which gives them their kind and the names of their
/// columns.
struct Predictions {
  std::vector<std::string> samples;  // their names: "cat.jpg"
  std::vector<float> values;         // [samples, names]
  std::vector<std::string> labels;   // the right one of each sample; empty if not known
  std::vector<float> targets;        // likewise of numbers, [samples, names]
};

/// A row per sample: the class and its probability with the two that follow, or the numbers.
TextTable predictions_table(const Predictions& predictions, const Predictor& predictor);

/// "sample,class,probability,P(cat),P(dog)", or "sample" and the targets. If the right answers are known,
/// they come after the sample: "label", or "NAME (right)". csv_rows() then gives a line per sample.
std::string csv_header(const Predictions& predictions, const Predictor& predictor);
std::string csv_rows(const Predictions& predictions, const Predictor& predictor);

/// A list of {"sample", "class", "probability", "probabilities": {…}} or {"sample", "values": {…}}, with
/// "label" or "targets" if they are known.
nlohmann::ordered_json predictions_json(const Predictions& predictions, const Predictor& predictor);

}  // namespace sweep

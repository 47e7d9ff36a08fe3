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

/// A row per sample: the class and its probability with the two that follow, or the numbers. In CSV numbers
/// are plain, and of classes all have their probability: "P(cat)". If the right answers are known, there are
/// columns for them: "label", or "NAME (right)".
TextTable predictions_table(const Predictions& predictions, const Predictor& predictor, TableFormat format);

/// A list of {"sample", "class", "probability", "probabilities": {…}} or {"sample", "values": {…}}, with
/// "label" or "targets" if they are known.
nlohmann::ordered_json predictions_json(const Predictions& predictions, const Predictor& predictor);

}  // namespace sweep

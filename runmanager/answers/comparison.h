// Compares runs that differ in one setting: times, metrics, learning curves; as text, JSON, CSV, Markdown and
// LaTeX.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runmanager/answers/source_runs.h"
#include "runmanager/answers/statistics.h"
#include "runmanager/terminal/table.h"

namespace sweep {

/// Where an epoch is in its curve: at its number, or the step of the program that reported it.
std::int64_t position_of(const EpochRecord& epoch);

/// How far apart the learning curves of two runs are, over the epochs, or steps of a program, that both have.
struct CurveParity {
  std::size_t epochs = 0;
  bool same_bits = false;  // of all metrics except times, in every epoch
  /// Between training losses; NaN if one is not finite in one run alone. None if no epoch has one in both.
  std::optional<double> largest_loss_difference = {};
  std::int64_t epoch = 0;  // of that difference, from 1
  bool is_step = false;    // of a program, whose reports need not follow each other
};

/// What the base of a pair has, and what the other run has.
template <typename T>
struct Sides {
  T base, other;
};

/// Two runs that differ in the key alone.
struct ComparedPair {
  std::vector<std::pair<std::string, std::string>> settings;  // what both have, of the keys that vary
  Sides<std::string> runs;                                    // "runs/fashion/lr=0.01,…"
  Sides<std::optional<double>> metric;
  std::optional<double> ratio{};                               // of the metric, base / other
  Sides<std::optional<double>> first_epoch, setup, data_wait;  // seconds; the last per epoch
  Sides<int> jobs;                                             // how many runs were trained at once
  CurveParity curves{};
  std::vector<std::string> notes{};  // what else tells the two apart: "lr: 0.1 -> 0.01", "on other machines"
};

/// All pairs of one value of the key with the first value.
struct ComparedValue {
  std::string base, other;
  std::vector<ComparedPair> pairs{};
  std::vector<std::string> of_one{};         // keys that only runs with one of the values have
  std::optional<MeanEstimate> ratio{};       // geometric mean of the pairs' ratios
  std::optional<MeanEstimate> difference{};  // mean of other - base
};

/// Which of the two values is faster if `ratio` is that of their times, base / other, and how many times as
/// fast as the other one.
struct Faster {
  const std::string &faster, &slower;
  double times;
};
Faster faster_of(const ComparedValue& value, double ratio);

struct Comparison {
  std::string key;  // "device"
  const Metric* metric = nullptr;
  std::vector<ComparedValue> values{};
  std::vector<std::string> alone{};       // completed runs without a partner
  std::vector<std::string> unfinished{};  // "NAME: skipped"
};

/// Pairs the completed of `runs` that agree in all varying keys except `key`, and compares them in `metric`,
/// a name of metric_names(). An empty key means the first varying one if that is "device", or the only one;
/// an empty metric epoch_seconds. Runs of several sweeps are paired within each if possible. The first value
/// of the key in `runs` is the base. Throws ConfigError, which lists what there is, if it is not clear which
/// key is meant, if it has only one value, or for a metric that no run has.
Comparison compare_runs(const std::vector<SourceRun>& runs, const std::string& key,
                        const std::string& metric);

/// Per value a table of pairs and what it says in a sentence; then what was left out. kCsv: a row per pair,
/// with plain numbers and seconds. kJson is comparison_json().
std::string comparison_text(const Comparison& comparison, const TableStyle& style);

/// Everything, with plain numbers and seconds. JSON has no NaN: see json_number().
nlohmann::ordered_json comparison_json(const Comparison& comparison);

}  // namespace sweep

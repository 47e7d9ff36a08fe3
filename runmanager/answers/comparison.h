// Compares runs that differ in one setting: times, metrics, learning curves; as text, JSON, CSV, Markdown and
// LaTeX.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runmanager/answers/run_pairs.h"
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

struct ComparedPair {
  std::vector<std::pair<std::string, std::string>> settings;  // the varying keys that both runs agree in
  std::string base_run, other_run;                            // "runs/fashion/lr=0.01,…"
  std::optional<double> base, other;                          // the metric
  std::optional<double> ratio{};                              // base / other
  std::optional<double> first_epoch_base, first_epoch_other;  // seconds
  std::optional<double> setup_base, setup_other;              // seconds before the first epoch
  std::optional<double> data_wait_base, data_wait_other;      // seconds per epoch, see run_metric()
  CurveParity curves{};
  int base_jobs = 1, other_jobs = 1;  // how many runs were trained at once
  std::vector<std::string> notes{};   // what else tells the two apart: "lr: 0.1 -> 0.01", "on other machines"
};

/// All pairs of two values of the key.
struct ComparedValue {
  std::string base, other;
  std::vector<ComparedPair> pairs{};
  std::vector<std::string> of_one{};         // see PairedValue
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
  std::string key;     // "device"
  std::string metric;  // a name of run_metric()
  std::vector<ComparedValue> values{};
  std::vector<std::string> alone{};       // completed runs without a partner
  std::vector<std::string> unfinished{};  // "NAME: skipped"
};

/// Compares `runs` by `key` (see pair_runs()) in `metric`, a name of metric_names(); empty: epoch_seconds.
/// Throws ConfigError for a metric that no run has, and what pair_runs() throws.
Comparison compare_runs(const std::vector<SourceRun>& runs, const std::string& key,
                        const std::string& metric);

/// Per value a table of pairs and what it says in a sentence; then what was left out. kCsv: a row per pair,
/// with plain numbers and seconds. kJson is comparison_json().
/// `width`: of the terminal in columns, into which the tables of kText are fitted; 0: any.
std::string comparison_text(const Comparison& comparison, TableFormat format, bool unicode, int width = 0);

/// Everything, with plain numbers and seconds. JSON has no NaN: see json_number().
nlohmann::ordered_json comparison_json(const Comparison& comparison);

}  // namespace sweep

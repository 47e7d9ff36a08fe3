// The metrics of a run: one table of what they are called in files, in charts and in tables; and how the best
// run is chosen by them.
#pragma once

#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sweep {

/// What a metric is measured on.
enum class MetricPart { kTraining, kValidation, kTest, kTime };

enum class MetricUnit { kNumber, kShare, kCount, kSeconds, kRate };

/// Which targets a metric is measured for.
enum class MetricTargets { kAny, kClasses, kManyClasses, kNumbers };

/// A number that is measured of every epoch, or of a whole run.
struct Metric {
  std::string_view key;    ///< in run.json, the results and on the command line: "validation_accuracy"
  std::string_view tag;    ///< in TensorBoard: "Accuracy/validation"; "" for a metric without a chart
  std::string_view title;  ///< in tables: "val acc"
  std::string_view brief;  ///< in lines, which have less room
  std::string_view name;   ///< in sentences: "validation accuracy"
  MetricUnit unit = MetricUnit::kNumber;
  MetricPart part = MetricPart::kTest;
  bool larger_is_better = false;
  MetricTargets targets = MetricTargets::kAny;
  /// Its place among the values of an epoch in files: those up to kLastCommonColumn are in every table of
  /// results, those up to kLastColumn if a run has them, the others in run.json alone. 0: no value of an
  /// epoch.
  int column = 0;
  int importance = 0;       ///< in tables of runs, from which the least important goes first; 0: not in them
  int line_importance = 0;  ///< the same in the line of a run or an epoch that has ended
  int mean_importance = 0;  ///< the same in the table of means over repeats
};
inline constexpr int kLastCommonColumn = 10, kLastColumn = 30;

/// All metrics that the program itself measures, as tables of runs show them.
std::span<const Metric> metrics();
/// The metric with this key, or nullptr.
const Metric* find_metric(std::string_view key);
/// The metric with this key. A person's own metric has its key for a title and a name; what is returned lives
/// as long as the program. Thread-safe.
const Metric& metric_named(std::string_view key);
/// The metric with this tag, or nullptr.
const Metric* metric_tagged(std::string_view tag);
/// The metric with this tag or key; a person's own if there is none.
const Metric& metric_called(std::string_view name);
/// Those that have values of epochs in files, in the order of Metric::column.
std::span<const Metric* const> epoch_metrics();

/// Whether it measures quality: neither a time nor a rate.
bool is_quality(const Metric& metric);
/// What a search or early stopping may watch: those of training with a tag, then those of validation.
std::vector<const Metric*> watchable_metrics();
std::vector<std::string> watchable_tags();
/// Tags that may be one of several goals of a search: those, times of epochs, and kParameters.
std::vector<std::string> goal_tags();
/// The number of a network's parameters.
inline constexpr std::string_view kParameters = "parameters";

/// A value as people read it: "12.34%", "0.1234", "1.4 s", "12.3k"; `none` for no value. A NaN is "nan",
/// whatever its sign.
std::string metric_text(const Metric& metric, const std::optional<double>& value, const char* none = "");
/// `value`, or a NaN without a sign: fmt shows it, and which one an operation gives depends on the machine.
inline double shown(double value) { return std::isnan(value) ? std::abs(value) : value; }

/// Returns the one of `keys`, keys of metrics or other names, that is most similar to `asked` (such as
/// "val_acc"), also by its title. "" if none is near.
std::string nearest_key(std::string_view asked, const std::vector<std::string>& keys);
/// Returns the one of watchable_tags() whose metric has a key or a title like `asked`; "" if none is near.
std::string near_tag(std::string_view asked);

/// Four decimals, "0.9123"; of numbers that are very small or very large four digits, "9.123e-05"; none of
/// whole numbers from 10 on, "1133", which count something.
std::string short_number(double value);

/// "1.4 s", "2 m 05 s", "3 h 20 m"; "350 ms".
std::string human_seconds(double seconds);
/// "950", "12.3k", "1.25M".
std::string human_count(double count);

/// A metric by which runs are judged, and which end of it is the best.
struct Goal {
  const Metric* metric = nullptr;  // null: that of default_goals()
  bool largest_is_best = false;
  std::string asked = {};  // how the sweep file names the metric, by tag or key; "" if it asks for none

  /// Whether a run with the value `a` is better than one with `b`.
  bool is_better(double a, double b) const { return largest_is_best ? a > b : a < b; }
  /// `value` so that smaller is better.
  double cost(double value) const { return largest_is_best ? -value : value; }
  /// Compares the metrics, not their names in the sweep file.
  bool operator==(const Goal& other) const {
    return metric == other.metric && largest_is_best == other.largest_is_best;
  }
};

/// The goals of a sweep; the first one decides which run is best. Never empty unless a comment says so.
using Goals = std::vector<Goal>;

/// The goal whose metric a sweep file calls `name`, a tag or a key.
Goal asked_goal(const std::string& name, bool largest_is_best);
/// The one of `goals`, which may be empty, with the metric; or else the metric with its own better end.
Goal goal_for(const Metric& metric, const Goals& goals);

/// "validation accuracy and time per epoch".
std::string goal_names(const Goals& goals);
/// What decides which run is best: "highest validation accuracy", "…, the first of 2 goals".
std::string goal_text(const Goals& goals);

}  // namespace sweep

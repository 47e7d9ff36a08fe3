// How the best run is chosen.
#pragma once

#include <string>
#include <vector>

#include "runmanager/config/metrics.h"

namespace sweep {

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

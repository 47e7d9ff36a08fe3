// What each setting of a complete grid changes: analysis of variance of a factorial design, and the runs that
// no other run beats in both time and quality; as tables, text and JSON.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runmanager/answers/statistics.h"
#include "runmanager/config/metrics.h"
#include "runmanager/records/results.h"

namespace sweep {

/// The runs with one value of a setting.
struct EffectLevel {
  std::string value;
  MeanEstimate metric{};  // the interval is of the pooled error, if that is known
};

/// The effect of one setting, or what two of them do together beyond their own effects.
struct Effect {
  std::vector<std::string> keys;  // one or two
  double sum_squares = 0;
  double share = 0;         // of the total sum of squares, in [0, 1]
  std::size_t degrees = 0;  // 0: the setting changes no bit of the results, so there is nothing to test
  std::optional<double> f{}, p{};     // against the error; none without one
  std::vector<EffectLevel> levels{};  // of a single setting, in the order of the runs
  std::size_t best = 0;  // index of the level with the best mean; means nothing if sum_squares is 0
};

/// The origin of the error against which effects are tested.
enum class EffectError {
  kNone,          // a single setting without repeats
  kRepeats,       // runs that differ only in their seed, with other results
  kInteractions,  // effects of three or more settings together; with two settings that of both
};

/// A combination that no other one beats in both, best metric last.
struct FrontRun {
  std::vector<std::pair<std::string, std::string>> settings;  // of the varying keys
  double metric = 0;
  double run_seconds = 0;  // both are means over the repeats
};

struct Effects {
  Goal goal;
  std::size_t combinations = 0, repeats = 1;
  double mean = 0;  // of all runs
  std::vector<Effect>
      effects{};  // settings in their order, then pairs; two settings without repeats: no pair
  EffectError error = EffectError::kNone;
  double error_sum_squares = 0, error_share = 0;
  std::size_t error_degrees = 0;
  std::vector<FrontRun> front{};        // empty if the metric is a time
  std::vector<std::string> left_out{};  // completed runs that are more than the others have repeats
};

/// The effects of all settings that vary among the completed of `runs` in the metric of `goal`, which also
/// says which values are the best. Sums of squares are those of the balanced design; of combinations with
/// more repeats than others the first ones count. Runs that differ only in what changes no bit of the
/// results, such as the number of workers, count once. Throws ConfigError if no completed runs have the
/// metric as a finite number, if no setting varies, or if the grid has gaps, which it names.
Effects effects_of(const std::vector<RunRecord>& runs, const Goal& goal);

/// As tables: the share of each setting and pair in the differences, the mean of each value, and the runs
/// that no other run beats, if there are any. In CSV the shares are plain.
Answer answer_of(const Effects& effects, const TableStyle& style);

}  // namespace sweep

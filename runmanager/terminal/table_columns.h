// The columns that a table of results can have.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runmanager/records/results.h"

namespace sweep {

/// On a narrow terminal the columns of the least importance are left out, and of equal ones the widest: first
/// parameters that do not vary, then most times and the validation loss, then other parameters, which tell
/// the runs apart, then metrics. Never those from kAlwaysShown on: the status, and the last parameter that
/// varies.
inline constexpr int kConstantParameter = 10, kVaryingParameter = 450, kAlwaysShown = 900;

struct ResultColumn {
  std::string name;  // by which it is asked for: that of results.csv, where that has it
  std::string title;
  std::function<std::string(const RunRecord&)> text;  // "" where the run has no value
  bool right_aligned = true;
  int importance = 0;
  bool leads = false;                   // stands before the results, where a run without them has its reason
  std::vector<std::string> cells = {};  // by run
  int width = 0;                        // display columns
};

/// All columns for these runs: their parameters `keys`, status, metrics and times. Cells are not set.
std::vector<ResultColumn> table_columns(const std::vector<RunRecord>& runs,
                                        const std::vector<std::string>& keys);

/// Those of `columns` that `names` has, in its order. Throws ConfigError, which lists the names there are,
/// for any other.
std::vector<ResultColumn> chosen_columns(const std::vector<ResultColumn>& columns,
                                         const std::vector<std::string>& names);

}  // namespace sweep

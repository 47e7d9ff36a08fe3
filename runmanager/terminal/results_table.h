// The results of a sweep as a table.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runmanager/records/judge.h"
#include "runmanager/records/results.h"
#include "runmanager/terminal/table.h"

namespace sweep {

struct TableOptions {
  bool color = false;
  bool unicode = true;
  int width = 0;  // of the terminal in columns; less important columns are left out to fit; 0: no limit
  bool skipped = false;                   // also a line for each skipped run
  std::vector<std::string> columns = {};  // only these, by Column::key; empty: all that have values
  Goals goals = {};                       // by which the best run is chosen; completed by default_goals()
  std::size_t top = 0;                    // max number of runs; the best is that of all. 0: all
  std::string best = {};                  // the name of the best run; empty: the first of equal ones
};

/// The results of `runs` as a table with a line per run: its parameters `keys`, its metrics, see
/// run_metric(), and the reason if it failed. The best run is marked; with a goal that was asked for it is
/// also named. With several goals, front_runs() are also marked. Skipped runs are one line per reason, and
/// runs that have not started are only counted. Names the columns that were left out: first parameters that
/// do not vary or are wide, since metrics matter most. Means over repeats follow. Ends with a newline. Throws
/// ConfigError for an unknown column.
std::string results_table(const std::vector<RunRecord>& runs, const std::vector<std::string>& keys,
                          const TableOptions& options = {});

/// The same for programs and papers: every run, with all columns that have values, and nothing else. In CSV
/// numbers are plain. Throws ConfigError likewise.
std::string formatted_results(const std::vector<RunRecord>& runs, const std::vector<std::string>& keys,
                              TableFormat format, const TableOptions& options = {});

}  // namespace sweep

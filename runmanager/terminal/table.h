// The results of a sweep as a table for a terminal.
#pragma once

#include <string>
#include <vector>

#include "runmanager/records/results.h"

namespace sweep {

struct TableOptions {
  bool color = false;
  bool unicode = true;
  int width = 0;  // of the terminal in columns; less important columns are left out to fit; 0: no limit
  bool skipped = false;                   // a line for each skipped run, too
  std::vector<std::string> columns = {};  // only these, by ResultColumn::name; empty: all that have values
};

/// The results of `runs` as a table with a line per run: its parameters `keys`, the last epoch's loss and
/// accuracy, mean time per epoch, and the reason if it failed. The best run is marked. Skipped runs are one
/// line per reason, and runs that have not started are only counted. Columns that were left out are named;
/// those of parameters go first, which do not vary or are wide, since metrics are what a table is for. Means
/// over repeats follow. Ends with a newline. Throws ConfigError for a column that there is not.
std::string results_table(const std::vector<RunRecord>& runs, const std::vector<std::string>& keys,
                          const TableOptions& options = {});

/// "1.4 s", "2 m 05 s", "3 h 20 m"; "350 ms".
std::string human_seconds(double seconds);
/// "950", "12.3k", "1.25M".
std::string human_count(double count);

}  // namespace sweep

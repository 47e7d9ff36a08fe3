// The results of a sweep as a table for a terminal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runmanager/records/results.h"

namespace sweep {

struct TableOptions {
  bool color = false;
  bool unicode = true;
  int width = 0;  // of the terminal in columns; less important columns are left out to fit; 0: no limit
};

/// The results of `runs` as a table with a line per run: its parameters `keys`, the last epoch's loss and
/// accuracy, times, and the reason if it failed or was skipped. The best run is marked. Runs that have not
/// started are only counted. Ends with a newline.
std::string results_table(const std::vector<RunRecord>& runs, const std::vector<std::string>& keys,
                          const TableOptions& options = {});

/// The index of the completed run with the highest validation accuracy in its last epoch, or nullopt if there
/// is none. If no run has a validation set, training accuracy counts; where targets are numbers, the lowest
/// RMSE. Among equals the lower loss wins.
std::optional<std::size_t> best_run(const std::vector<RunRecord>& runs);

/// "1.4 s", "2 m 05 s", "3 h 20 m"; "350 ms".
std::string human_seconds(double seconds);
/// "950", "12.3k", "1.25M".
std::string human_count(double count);

}  // namespace sweep

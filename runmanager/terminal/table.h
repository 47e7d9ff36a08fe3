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
  int width = 0;  // columns; longer names are cut to fit; 0: no limit
};

/// One line per run: its parameters, last epoch's loss and accuracy, times; the best run marked; the reason
/// of a failed or skipped one. Ends with a newline.
std::string results_table(const std::vector<RunRecord>& runs, const std::vector<std::string>& keys,
                          const TableOptions& options = {});

/// The completed run with the highest validation accuracy of its last epoch (training accuracy where there is
/// no validation set; the lower loss among equals), or nothing. Index into `runs`.
std::optional<std::size_t> best_run(const std::vector<RunRecord>& runs);

/// "1.4 s", "2 m 05 s", "3 h 20 m"; "350 ms".
std::string human_seconds(double seconds);
/// "950", "12.3k", "1.25M".
std::string human_count(double count);

}  // namespace sweep

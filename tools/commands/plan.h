// What `sweep plan` and `sweep run --dry-run` print.
#pragma once

#include "runmanager/sweep/sweep_runner.h"
#include "runmanager/terminal/table.h"
#include "tools/commands/run_options.h"

namespace sweep {

struct PlanOptions {
  SweepArguments sweep;
  RunnerOptions runner;
  bool pilot = false;       // trains a few batches of each kind of run to predict the time
  bool is_dry_run = false;  // of the sweep's own command line, whose jobs and threads count later
  TableFormat format = TableFormat::kText;
};

/// Prints every run with what becomes of it and what it takes. Returns an exit code. Throws ConfigError and
/// DataError as the sweep itself would, and IoError.
int print_plan(const PlanOptions& options);

}  // namespace sweep

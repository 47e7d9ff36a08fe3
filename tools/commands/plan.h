// What `sweep plan` and `sweep run --dry-run` print.
#pragma once

#include <string>
#include <string_view>

#include "runmanager/config/run_config.h"
#include "runmanager/records/earlier_starts/existing_runs.h"
#include "runmanager/terminal/table.h"
#include "tools/commands/run_options.h"

namespace sweep {

struct PlanOptions {
  SweepArguments sweep;
  int jobs = 1, threads = 0;                                 // as RunnerOptions has them
  bool fresh = false, replace = false, retry_failed = true;  // likewise
  bool pilot = false;       // trains a few batches of each kind of run to predict the time
  bool is_dry_run = false;  // of the sweep's own command line, whose jobs and threads count later
  TableFormat format = TableFormat::kText;
};

/// Prints every run with what becomes of it and what it takes. Returns an exit code. Throws ConfigError and
/// DataError as the sweep itself would, and IoError.
int print_plan(const PlanOptions& options);

/// The fate of a run, or "replaced", or "pruned" if a search has ended it and will again.
std::string_view fate_text(const Sweep& sweep, const ExistingRun& existing, bool replace);

/// What else a start says or does about what is left of a run: the differences, or the former name, the
/// epochs that are there, and the note.
std::string note_of(const ExistingRun& existing, const RunConfig& config);

/// print_plan() for a sweep of a person's own program: how it would be started.
int print_program_plan(const Sweep& sweep, const PlanOptions& options);

}  // namespace sweep
